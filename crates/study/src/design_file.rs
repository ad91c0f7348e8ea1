//! A storage design in a file of its own, in the form of those that come with Underlay (`underlay show six-hosts`).
//!
//! Only where its volumes live is resolved: volumes and engine are of a study, and are read but not judged here.

use crate::entry::{Entry, Section};
use crate::file;
use crate::host_view::HostView;
use crate::options::PlanOptions;
use crate::parse::{Syntax, read_text};
use crate::plan::{DatastoreKind, Durability};
use crate::problem::{Problems, Source};
use crate::profile_text::parse_profile;
use crate::report::Report;
use crate::resolve::{Resolver, design};
use crate::section::Table;
use underlay_model::DeviceProfile;

/// Where the volumes of a design live that is nothing but this device.
pub fn single_device(profile: DeviceProfile) -> DatastoreKind {
    DatastoreKind::Emulated {
        devices: vec![(profile.name.clone(), profile)],
        link: None,
        durability: Durability::Profile,
        backing: None,
    }
}

/// Reads a design file: where its volumes live. A device profile in its place is a design of that device.
///
/// # Errors
/// Every problem of the file, at once: syntax, unknown and missing keys, unknown profiles, what cannot be built.
pub fn parse_design(source: &Source) -> Result<DatastoreKind, Problems> {
    if is_profile(source) {
        return parse_profile(source).map(single_device);
    }
    let mut report = Report::default();
    let (design, syntax) = read_text(&source.text, &mut report, file::Design::read);
    let kind = match syntax {
        Syntax::Sound => resolve(source, design, &mut report),
        Syntax::Broken => None,
    };
    match (kind, Problems::from_drafts(source, report.into_drafts())) {
        (Some(kind), None) => Ok(kind),
        (_, Some(problems)) => Err(problems),
        (None, None) => unreachable!("a design is refused only with a problem"),
    }
}

/// Only devices have a medium.
fn is_profile(source: &Source) -> bool {
    let (profile, _) = read_text(&source.text, &mut Report::default(), file::Profile::read);
    profile.medium.is_present()
}

fn resolve(source: &Source, design: file::Design, report: &mut Report) -> Option<DatastoreKind> {
    // What is said of the design as a whole is said of the beginning of its file.
    let whole = Some(0..0);
    let section = Section { content: design, span: whole.clone(), refused: false };
    let study = file::Study {
        design: Entry::Given { value: vec![section], span: 0..0 },
        ..file::Study::default()
    };
    let (options, host) = (PlanOptions::default(), HostView::unlimited());
    let mut resolver =
        Resolver::new(source, &study, (&options, &[]), &host, std::mem::take(report));
    let kind = design::design_alone(&mut resolver);
    *report = std::mem::take(&mut resolver.report);
    kind
}

#[cfg(test)]
mod tests {
    use super::parse_design;
    use crate::built_in_datastore::builtin_datastore;
    use crate::builtin::builtin_designs;
    use crate::plan::{DatastoreKind, Durability};
    use crate::problem::{Problems, Source};

    fn parse(text: &str) -> Result<DatastoreKind, Problems> {
        parse_design(&Source { name: "mine.toml".to_string(), text: text.to_string() })
    }

    /// Code and line of each problem.
    fn problems(text: &str) -> Vec<(&'static str, Option<usize>)> {
        let problems = parse(text).expect_err("refused");
        let found = problems.as_slice().iter();
        found.map(|problem| (problem.code, problem.position().map(|(line, _)| line))).collect()
    }

    #[test]
    fn what_is_shown_of_a_built_in_design_is_a_design_file() {
        for design in builtin_designs() {
            let read = parse(&design.text).unwrap_or_else(|problems| {
                panic!("{}", problems.render(100, crate::Colour::Plain))
            });
            let known = builtin_datastore(&design.name).expect("it is known");
            assert_eq!(format!("{read:?}"), format!("{known:?}"), "{}", design.name);
        }
    }

    #[test]
    fn a_design_starts_from_a_built_in_one_or_from_nothing() {
        let DatastoreKind::Cluster(plan) = parse(
            "use = \"six-hosts\"\nname = \"fewer\"\n[datastore.cluster]\npolicy = { failures-to-tolerate = 0, method = \
             \"mirror\" }\n",
        )
        .expect("a design") else {
            panic!("a cluster")
        };
        assert_eq!((plan.spec.hosts.len(), plan.policy.failures_to_tolerate), (6, 0));
        let one = "name = \"one\"\n[datastore.emulated]\ndurability = \"flushed\"\ndevices = [{ name = \"disk\", profile = \
                   \"hdd-7200\" }]\n";
        let known = crate::builtin::builtin_devices().iter().find(|it| it.name.starts_with("hdd"));
        let one = one.replace("hdd-7200", &known.expect("a disk").name);
        let DatastoreKind::Emulated { devices, durability, .. } = parse(&one).expect("a design")
        else {
            panic!("devices")
        };
        assert_eq!((devices.len(), durability), (1, Durability::Flushed));
    }

    #[test]
    fn a_device_profile_is_a_design_of_one_device() {
        for device in crate::builtin::builtin_devices() {
            let DatastoreKind::Emulated { devices, durability, backing, .. } =
                parse(&device.text).expect("a profile")
            else {
                panic!("devices")
            };
            assert_eq!((devices.len(), &devices[0].0), (1, &device.name));
            assert_eq!((durability, backing), (Durability::Profile, None));
        }
        // What is wrong with one is told of the profile.
        let problems = problems("name = \"mine\"\ncolour = \"red\"\n[medium.flash]\nunits = 0\n");
        assert!(problems.contains(&("unknown-key", Some(2))), "{problems:?}");
        assert!(problems.iter().any(|(code, _)| *code == "missing-key"), "{problems:?}");
    }

    #[test]
    fn all_problems_are_named_at_once_with_their_lines() {
        let text = "name = \"mine\"\ncolour = \"red\"\n\n[datastore.emulated]\ndevices = [\n  { name = \"a\", profile = \
                    \"dc1500m-96\" },\n  { name = \"b\" },\n]\n";
        assert_eq!(
            problems(text),
            [("unknown-key", Some(2)), ("unknown-name", Some(6)), ("missing-key", Some(7))]
        );
        assert_eq!(problems("name = \"mine\"\n"), [("missing-key", Some(1))]);
        assert_eq!(problems("name = \n")[0], ("syntax", Some(1)));
        assert_eq!(problems("use = \"six-host\"\n"), [("unknown-name", Some(1))]);
        let missing = parse("[datastore.emulated]\n").expect_err("refused");
        let said: Vec<&str> = missing.as_slice().iter().map(|it| &*it.message).collect();
        assert!(said.iter().any(|said| said.contains("name")), "{said:?}");
    }
}
