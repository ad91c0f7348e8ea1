//! What every section of a study is resolved with: the inputs, what was decided so far, and what was found.
//!
//! Sections are functions over it, each in a file of its own; no key is decided here.

use std::collections::BTreeMap;

use underlay_workload::block::IoProfile;

use super::chosen::{Chosen, Layer, Pick, pick};
use super::role::Role;
use super::volume_choice::VolumeChoice;
use super::volume_scale::VolumeScale;
use crate::builtin;
use crate::entry::Entry;
use crate::file;
use crate::finding::{Finding, Severity};
use crate::host_view::HostView;
use crate::options::PlanOptions;
use crate::plan::{AxisPlan, EngineKind, Scale, Setting};
use crate::problem::Source;
use crate::report::Report;

/// The study's own block loads by name; `None` for one that has a problem, so that it is not also unknown.
pub(super) type OwnIoProfiles = BTreeMap<String, Option<IoProfile>>;

/// What a resolution works with and collects.
pub(crate) struct Resolver<'a> {
    pub(super) source: &'a Source,
    pub(super) text: &'a str,
    pub(super) file: &'a file::Study,
    pub(super) defaults: &'static file::Study,
    pub(super) options: &'a PlanOptions,
    /// What the study varies besides designs and users; `file` is the study at one of their points.
    pub(super) axes: &'a [AxisPlan],
    pub(super) host: &'a HostView<'a>,
    pub(super) scale: Scale,
    /// The study's engine, once it is decided.
    pub(super) kind: EngineKind,
    /// The study's own block loads, once they were read.
    pub(super) io_profiles: Option<OwnIoProfiles>,
    /// How volumes are scaled; of a block load once that is.
    pub(super) volume_scale: VolumeScale,
    /// What of the study is resolved, where it has several databases.
    pub(super) role: Role<'a>,
    /// The volumes that each design has of its own, by its name.
    pub(super) own_volumes: Vec<(String, Vec<VolumeChoice>)>,
    pub report: Report,
    pub(super) findings: Vec<Finding>,
    pub(super) provenance: Vec<Setting>,
}

impl<'a> Resolver<'a> {
    /// Prepares to resolve `file`, which was read from `source` with the problems in `report`.
    pub fn new(
        source: &'a Source,
        file: &'a file::Study,
        (options, axes): (&'a PlanOptions, &'a [AxisPlan]),
        host: &'a HostView<'a>,
        report: Report,
    ) -> Resolver<'a> {
        Resolver {
            source,
            text: &source.text,
            file,
            defaults: builtin::defaults(),
            options,
            axes,
            host,
            scale: options.scale.unwrap_or(Scale::FULL),
            kind: EngineKind::default(),
            io_profiles: None,
            volume_scale: VolumeScale::of(options.scale.unwrap_or(Scale::FULL)),
            role: Role::Only,
            own_volumes: Vec::new(),
            report,
            findings: Vec::new(),
            provenance: Vec::new(),
        }
    }

    /// Whether an axis varies this key, of the study or of a design.
    pub(super) fn varies(&self, key: &str) -> bool {
        let is_key = |path: &String| {
            path.strip_suffix(key).is_some_and(|before| before.is_empty() || before.ends_with('.'))
        };
        self.axes.iter().flat_map(|axis| &axis.keys).any(is_key)
    }

    /// The first of the candidates that says something about the key `path`.
    pub(super) fn pick<T: Clone>(
        &self,
        path: &str,
        candidates: &[(Layer<'_>, &Entry<T>)],
    ) -> Pick<T> {
        pick(self.text, path, candidates)
    }

    /// A key of the top of the file that has no default.
    pub(super) fn require<T: Clone>(
        &mut self,
        path: &str,
        entry: &Entry<T>,
        example: &str,
    ) -> Option<Chosen<T>> {
        let picked = self.pick(path, &[(Layer::File, entry)]);
        if picked.is_absent() {
            self.report.add(
                Some(0..0),
                "missing-key",
                format!("the study has no `{path}`"),
                "missing in this file",
                format!("add {example} at the top"),
            );
        }
        picked.found()
    }

    /// Adds a finding, unless it is there already.
    pub(super) fn finding(
        &mut self,
        severity: Severity,
        code: &'static str,
        text: impl Into<String>,
        remedy: impl Into<String>,
        line: Option<usize>,
    ) {
        let finding = Finding { severity, code, text: text.into(), remedy: remedy.into(), line };
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    /// Whether this is one of several databases.
    pub(super) fn is_member(&self) -> bool {
        matches!(self.role, Role::Member)
    }

    /// Whether the study's workload is a block load, be it right or wrong: then there is no database.
    pub(super) fn is_block_load(&self) -> bool {
        self.file.workload.block.is_present()
    }
}
