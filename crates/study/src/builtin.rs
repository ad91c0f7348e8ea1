//! What comes with Underlay: studies, designs, device profiles and the defaults, embedded as text.
//!
//! Studies and designs are TOML files in `builtin/`; device profiles are written from the model's table,
//! so that there is one place for their numbers.

use std::sync::OnceLock;

use underlay_model::builtin as model;

use crate::file;
use crate::parse::read_text;
use crate::problem::Source;
use crate::profile_text::profile_toml;
use crate::report::Report;
use crate::section::Table;
use crate::suggest::nearest;

/// Something that comes with Underlay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// The name to use in studies and on the command line: `kingston/k2`, `kingston-nvme`.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// The TOML text.
    pub text: String,
}

impl Builtin {
    /// The text as a source, named after the built-in.
    pub fn source(&self) -> Source {
        Source { name: self.name.clone(), text: self.text.clone() }
    }
}

/// The defaults of the study format, with its reference in the comments.
pub const DEFAULTS: &str = include_str!("../defaults.toml");

const STUDIES: [(&str, &str); 51] = [
    ("quickstart", include_str!("../builtin/studies/quickstart.toml")),
    ("kingston/k2", include_str!("../builtin/studies/kingston/k2.toml")),
    ("kingston/k1", include_str!("../builtin/studies/kingston/k1.toml")),
    ("kingston/k3", include_str!("../builtin/studies/kingston/k3.toml")),
    ("kingston/k4", include_str!("../builtin/studies/kingston/k4.toml")),
    ("kingston/k5", include_str!("../builtin/studies/kingston/k5.toml")),
    ("kingston/k5-backups", include_str!("../builtin/studies/kingston/k5-backups.toml")),
    ("host-failure", include_str!("../builtin/studies/host-failure.toml")),
    ("memory-sweep", include_str!("../builtin/studies/memory-sweep.toml")),
    ("example", include_str!("../builtin/studies/example.toml")),
    ("snapshot-replication", include_str!("../builtin/studies/snapshot-replication.toml")),
    ("storagereview/sr1", include_str!("../builtin/studies/storagereview/sr1.toml")),
    ("storagereview/sr2", include_str!("../builtin/studies/storagereview/sr2.toml")),
    ("vmware/v2", include_str!("../builtin/studies/vmware/v2.toml")),
    ("vmware/v3", include_str!("../builtin/studies/vmware/v3.toml")),
    ("vmware/v4", include_str!("../builtin/studies/vmware/v4.toml")),
    ("vmware/v5", include_str!("../builtin/studies/vmware/v5.toml")),
    ("vmware/v6", include_str!("../builtin/studies/vmware/v6.toml")),
    ("demartek/d1", include_str!("../builtin/studies/demartek/d1.toml")),
    ("demartek/d2", include_str!("../builtin/studies/demartek/d2.toml")),
    ("demartek/d3", include_str!("../builtin/studies/demartek/d3.toml")),
    ("demartek/d3-warehouse", include_str!("../builtin/studies/demartek/d3-warehouse.toml")),
    ("demartek/d3-replication", include_str!("../builtin/studies/demartek/d3-replication.toml")),
    ("demartek/d4", include_str!("../builtin/studies/demartek/d4.toml")),
    ("block-curve", include_str!("../builtin/studies/block-curve.toml")),
    ("kingston/kfa", include_str!("../builtin/studies/kingston/kfa.toml")),
    ("kingston/kfb", include_str!("../builtin/studies/kingston/kfb.toml")),
    ("kingston/kfb-write", include_str!("../builtin/studies/kingston/kfb-write.toml")),
    ("kingston/kh1", include_str!("../builtin/studies/kingston/kh1.toml")),
    ("kingston/kh1-64k", include_str!("../builtin/studies/kingston/kh1-64k.toml")),
    ("kingston/kh2", include_str!("../builtin/studies/kingston/kh2.toml")),
    ("kingston/kh3", include_str!("../builtin/studies/kingston/kh3.toml")),
    ("vmware/v1", include_str!("../builtin/studies/vmware/v1.toml")),
    ("vmware/v1-90-10", include_str!("../builtin/studies/vmware/v1-90-10.toml")),
    ("vmware/v1-sequential", include_str!("../builtin/studies/vmware/v1-sequential.toml")),
    ("storagereview/sr3", include_str!("../builtin/studies/storagereview/sr3.toml")),
    ("storagereview/sr4", include_str!("../builtin/studies/storagereview/sr4.toml")),
    ("storagereview/sr5", include_str!("../builtin/studies/storagereview/sr5.toml")),
    ("storagereview/sr6", include_str!("../builtin/studies/storagereview/sr6.toml")),
    ("storagereview/sr7", include_str!("../builtin/studies/storagereview/sr7.toml")),
    ("storagereview/sr8", include_str!("../builtin/studies/storagereview/sr8.toml")),
    ("storagereview/sr9", include_str!("../builtin/studies/storagereview/sr9.toml")),
    ("storagereview/sr10", include_str!("../builtin/studies/storagereview/sr10.toml")),
    ("storagereview/sr11", include_str!("../builtin/studies/storagereview/sr11.toml")),
    ("storagereview/sr12", include_str!("../builtin/studies/storagereview/sr12.toml")),
    ("storagereview/sr13", include_str!("../builtin/studies/storagereview/sr13.toml")),
    ("storagereview/sr14", include_str!("../builtin/studies/storagereview/sr14.toml")),
    ("storagereview/sr15", include_str!("../builtin/studies/storagereview/sr15.toml")),
    ("storagereview/sr16", include_str!("../builtin/studies/storagereview/sr16.toml")),
    ("storagereview/sr17", include_str!("../builtin/studies/storagereview/sr17.toml")),
    ("storagereview/sr18", include_str!("../builtin/studies/storagereview/sr18.toml")),
];

const DESIGNS: [(&str, &str); 21] = [
    ("kingston-nvme", include_str!("../builtin/designs/kingston-nvme.toml")),
    ("kingston-sata-dc500m", include_str!("../builtin/designs/kingston-sata-dc500m.toml")),
    ("kingston-sata-5200eco", include_str!("../builtin/designs/kingston-sata-5200eco.toml")),
    ("kingston-nvme-vsan", include_str!("../builtin/designs/kingston-nvme-vsan.toml")),
    (
        "kingston-sata-dc500m-vsan",
        include_str!("../builtin/designs/kingston-sata-dc500m-vsan.toml"),
    ),
    (
        "kingston-sata-5200eco-vsan",
        include_str!("../builtin/designs/kingston-sata-5200eco-vsan.toml"),
    ),
    ("storagereview-optane", include_str!("../builtin/designs/storagereview-optane.toml")),
    (
        "storagereview-optane-reduced",
        include_str!("../builtin/designs/storagereview-optane-reduced.toml"),
    ),
    ("storagereview-sas", include_str!("../builtin/designs/storagereview-sas.toml")),
    (
        "storagereview-sas-reduced",
        include_str!("../builtin/designs/storagereview-sas-reduced.toml"),
    ),
    ("vmware-pm1725a", include_str!("../builtin/designs/vmware-pm1725a.toml")),
    ("demartek-nvme-board", include_str!("../builtin/designs/demartek-nvme-board.toml")),
    ("demartek-sata-pool", include_str!("../builtin/designs/demartek-sata-pool.toml")),
    ("demartek-sata-individual", include_str!("../builtin/designs/demartek-sata-individual.toml")),
    ("demartek-sm1715", include_str!("../builtin/designs/demartek-sm1715.toml")),
    ("demartek-log-array", include_str!("../builtin/designs/demartek-log-array.toml")),
    ("demartek-log-nvme", include_str!("../builtin/designs/demartek-log-nvme.toml")),
    ("demartek-log-nvram", include_str!("../builtin/designs/demartek-log-nvram.toml")),
    ("six-hosts", include_str!("../builtin/designs/six-hosts.toml")),
    ("hdd", include_str!("../builtin/designs/hdd.toml")),
    ("null", include_str!("../builtin/designs/null.toml")),
];

/// The studies that come with Underlay.
pub fn builtin_studies() -> &'static [Builtin] {
    static STUDIES_READ: OnceLock<Vec<Builtin>> = OnceLock::new();
    STUDIES_READ.get_or_init(|| {
        let study = |(name, text): &(&str, &str)| {
            let study = embedded(name, text, file::Study::read);
            builtin(name, study.title.get(), text)
        };
        STUDIES.iter().map(study).collect()
    })
}

/// The storage designs that come with Underlay.
pub fn builtin_designs() -> &'static [Builtin] {
    static DESIGNS_READ: OnceLock<Vec<Builtin>> = OnceLock::new();
    DESIGNS_READ.get_or_init(|| {
        let design = |((name, text), design): (&(&str, &str), &file::Design)| {
            // Titles are short names for charts; a list needs to say what the design is.
            builtin(name, design.description.get(), text)
        };
        DESIGNS.iter().zip(design_files()).map(design).collect()
    })
}

/// The device profiles that come with Underlay.
pub fn builtin_devices() -> &'static [Builtin] {
    static DEVICES: OnceLock<Vec<Builtin>> = OnceLock::new();
    DEVICES.get_or_init(|| {
        let device = |profile: underlay_model::DeviceProfile| Builtin {
            text: profile_toml(&profile),
            name: profile.name,
            title: profile.description,
        };
        model::all().into_iter().map(device).collect()
    })
}

/// The study of that name that comes with Underlay.
pub fn find_study(name: &str) -> Option<&'static Builtin> {
    builtin_studies().iter().find(|study| study.name == name)
}

/// The name of a built-in study that `typed` may have meant.
pub fn suggest_study(typed: &str) -> Option<&'static str> {
    nearest(typed, STUDIES.iter().map(|(name, _)| *name))
}

/// The name of a built-in design that `typed` may have meant.
pub fn suggest_design(typed: &str) -> Option<&'static str> {
    nearest(typed, design_names())
}

/// The defaults as a file.
pub(crate) fn defaults() -> &'static file::Study {
    static READ: OnceLock<file::Study> = OnceLock::new();
    READ.get_or_init(|| embedded("defaults.toml", DEFAULTS, file::Study::read))
}

/// The built-in design of that name as a file.
pub(crate) fn design(name: &str) -> Option<(&'static str, &'static file::Design)> {
    let position = DESIGNS.iter().position(|(known, _)| *known == name)?;
    Some((DESIGNS[position].0, &design_files()[position]))
}

/// The names of all built-in designs.
pub(crate) fn design_names() -> impl Iterator<Item = &'static str> {
    DESIGNS.iter().map(|(name, _)| *name)
}

fn design_files() -> &'static [file::Design] {
    static READ: OnceLock<Vec<file::Design>> = OnceLock::new();
    READ.get_or_init(|| {
        DESIGNS.iter().map(|(name, text)| embedded(name, text, file::Design::read)).collect()
    })
}

fn builtin(name: &str, title: Option<&String>, text: &str) -> Builtin {
    Builtin {
        name: name.to_string(),
        title: title.cloned().unwrap_or_else(|| name.to_string()),
        text: text.to_string(),
    }
}

fn embedded<T>(
    name: &str,
    text: &str,
    read: impl FnOnce(&mut crate::reader::Keys<'_, '_>) -> T,
) -> T {
    let mut report = Report::default();
    let (content, _) = read_text(text, &mut report, read);
    // Embedded files are part of the program; the tests read each of them.
    assert!(report.is_empty(), "embedded {name} has problems: {report:?}");
    content
}

#[cfg(test)]
mod tests {
    use super::{builtin_designs, builtin_devices, builtin_studies, defaults, find_study};

    #[test]
    fn every_embedded_file_reads() {
        defaults();
        assert_eq!(builtin_studies().len(), 51);
        assert_eq!(builtin_designs().len(), 21);
        let devices: Vec<_> = builtin_devices().iter().map(|device| device.name.as_str()).collect();
        assert_eq!(devices.len(), 16);
        assert!(devices.contains(&"p4800x-375") && devices.contains(&"null"));
        assert!(find_study("quickstart").is_some() && find_study("nothing").is_none());
    }

    #[test]
    fn designs_are_named_as_their_files() {
        for (design, file) in builtin_designs().iter().zip(super::design_files()) {
            assert_eq!(file.name.get(), Some(&design.name));
            assert!(file.source.get().is_some(), "{} has no source", design.name);
        }
    }
}
