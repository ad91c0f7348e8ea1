//! Finding a storage design by name or file, for commands that need no study around it: `volume create`, `simulate`. A device
//! alone, built in or in a file, is a design of that one device.

use super::terminal;
use crate::exit_code;
use crate::stop::Stop;
use std::path::Path;
use underlay_model::builtin;
use underlay_model::cluster::Stack;
use underlay_study::{
    Colour, DatastoreKind, DesignPlan, Problems, Source, builtin_datastore, builtin_designs,
    parse_design, single_device, suggest_design,
};

/// Where the volumes of the design named on the command line live: a file, or something built in.
///
/// As with studies, a stray file changes nothing about what a built-in name means.
pub fn datastore_of(design: &str) -> Result<DatastoreKind, Stop> {
    if let Some(kind) = builtin_datastore(design) {
        return Ok(kind);
    }
    if let Some(profile) = builtin::find(design) {
        return Ok(single_device(profile));
    }
    let path = Path::new(design);
    if !path.exists() {
        let stop = Stop::bad_input(format!("there is no design, device or file `{design}`"));
        let known: Vec<&str> = builtin_designs().iter().map(|it| it.name.as_str()).collect();
        return Err(match suggest_design(design) {
            Some(similar) => stop.with_hint(format!("did you mean `{similar}`?")),
            None => stop.with_hint(format!(
                "built-in designs: {}; devices: `underlay list devices`; a file looks like `underlay show six-hosts`",
                known.join(", ")
            )),
        });
    }
    let text = underlay_host::read_small_text(path)
        .map_err(|error| Stop::bad_input(format!("could not read `{design}`: {error}")))?;
    parse_design(&Source { name: design.to_string(), text })
        .map_err(|problems| print_problems(&problems))
}

/// A design as the user called it.
pub struct Named {
    /// The user's name of it.
    pub name: String,
    /// What it is.
    pub design: DesignPlan,
}

/// Whether a design is called so: by its name in the study, or by its title, which reports show.
pub fn is_called(design: &DesignPlan, name: &str) -> bool {
    design.name == name || design.title == name
}

/// Another design of the study, or one with the volumes and the server of `own` elsewhere.
///
/// # Errors
/// Designs that are not known, or are real storage.
pub fn design_named(name: &str, own: &DesignPlan, known: &[DesignPlan]) -> Result<Named, Stop> {
    let named = |design| Named { name: name.to_string(), design };
    if let Some(design) = known.iter().find(|design| is_called(design, name)) {
        return Ok(named(design.clone()));
    }
    let kind = datastore_of(name)?;
    if let DatastoreKind::Path { .. } = kind {
        return Err(Stop::bad_input(format!(
            "design `{name}` is real storage, which has no model"
        )));
    }
    // Under its own name, by which the plan knows server and client of a design.
    let mut design = DesignPlan { title: name.to_string(), ..own.on_datastore(kind) };
    let devices: Vec<&String> = match &design.kind {
        DatastoreKind::Emulated { devices, .. } => devices.iter().map(|(name, _)| name).collect(),
        DatastoreKind::Path { .. } | DatastoreKind::Cluster(_) => Vec::new(),
    };
    for volume in &mut design.volumes {
        // A device called as a volume is for it; the first has the rest.
        let own = devices.iter().find(|device| ***device == volume.name);
        volume.device = own.or(devices.first()).map(|device| (*device).clone());
    }
    Ok(named(design))
}

/// What simulations of these designs leave out, in a sentence: clusters without a storage stack, whose software takes no time.
pub fn without_stack<'a>(
    designs: impl IntoIterator<Item = (&'a str, &'a DesignPlan)>,
) -> Option<String> {
    let is_free = |design: &DesignPlan| match &design.kind {
        DatastoreKind::Cluster(cluster) => cluster.spec.settings.stack == Stack::NONE,
        DatastoreKind::Path { .. } | DatastoreKind::Emulated { .. } => false,
    };
    let names = designs.into_iter().filter(|(_, design)| is_free(design)).map(|(name, _)| name);
    let names: Vec<&str> = names.collect();
    (!names.is_empty()).then(|| {
        format!(
            "Storage software takes no time here on {} (no `stack`): real clusters do less.",
            names.join(", ")
        )
    })
}

/// Prints every problem of a file; what is left is the exit code.
pub fn print_problems(problems: &Problems) -> Stop {
    let colour = if terminal::colours_on_stderr() { Colour::Ansi } else { Colour::Plain };
    err!("{}", problems.render(terminal::width(), colour));
    Stop::silent(exit_code::BAD_INPUT)
}
