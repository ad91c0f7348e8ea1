//! From the file of a device to its profile: units, ranges, what depends on other keys.

use std::collections::BTreeMap;
use std::ops::Range;

use underlay_core::Bytes;
use underlay_model::{
    Basis, DeviceProfile, Disk, Flash, Link, Medium, ProfileProblem, WriteBuffer,
};

use crate::entry::{Entry, Section};
use crate::report::Report;

use super::tables::{BufferFile, DiskFile, FlashFile, LinkFile, MediumFile, Profile};

/// The profile that the file describes, on top of `base` where there is one.
///
/// `span` is where the profile stands in the file, `path` its dotted path; keys that neither the
/// file
/// nor `base` has are reported as missing. Rules of the model are checked. With the profile comes
/// the
/// place of each key that the file has, by its path below the profile.
pub(crate) fn lower(
    file: &Profile,
    base: Option<&DeviceProfile>,
    span: Option<Range<usize>>,
    path: &str,
    report: &mut Report,
) -> Option<(DeviceProfile, BTreeMap<String, Range<usize>>)> {
    let mut lowering = Lowering { path, span, places: BTreeMap::new(), report };
    let profile = lowering.profile(file, base)?;
    let problems = profile.problems();
    for problem in &problems {
        lowering.violated(problem, &profile);
    }
    let places = &lowering.places;
    let places = places.iter().map(|(key, span)| (file_key(key, &profile), span.clone())).collect();
    problems.is_empty().then_some((profile, places))
}

/// State of one lowering: where each key of the file stands.
pub(super) struct Lowering<'a> {
    pub(super) path: &'a str,
    pub(super) span: Option<Range<usize>>,
    pub(super) places: BTreeMap<&'static str, Range<usize>>,
    pub(super) report: &'a mut Report,
}

impl Lowering<'_> {
    fn profile(&mut self, file: &Profile, base: Option<&DeviceProfile>) -> Option<DeviceProfile> {
        // Everything is looked at before the first `?`, so that all missing keys are reported.
        let name = self.value("name", &file.name, base.map(|base| base.name.clone()));
        let capacity = self.value("capacity", &file.capacity, base.map(|base| base.capacity));
        let flush = self.value("flush", &file.flush, base.map(|base| base.flush));
        let protected = self.value(
            "power-loss-protected",
            &file.power_loss_protected,
            base.map(|base| base.power_loss_protected),
        );
        let divisor =
            self.value("divisor", &file.divisor, Some(base.map_or(1, |base| base.divisor)));
        let medium = self.medium(&file.medium, base.map(|base| &base.medium));
        let link = self.link(&file.link, base.and_then(|base| base.link));
        let write_buffer = self.buffer(&file.write_buffer, base.and_then(|base| base.write_buffer));
        let text = |entry: &Entry<String>, of_base: Option<&String>| {
            entry.get().or(of_base).cloned().unwrap_or_default()
        };
        Some(DeviceProfile {
            name: name?,
            description: text(&file.description, base.map(|base| &base.description)),
            source: text(&file.source, base.map(|base| &base.source)),
            basis: self.basis(file, base),
            fit_error_percent: file
                .fit_error_percent
                .get()
                .copied()
                .or(base.and_then(|base| base.fit_error_percent)),
            capacity: capacity?,
            medium: medium?,
            link: link?,
            write_buffer: write_buffer?,
            flush: flush?,
            power_loss_protected: protected?,
            divisor: divisor?,
            // A layout of devices decides this, never a profile.
            copies: 1,
        })
    }

    /// A changed number of a profile counts as assumed, unless its source is given.
    fn basis(&mut self, file: &Profile, base: Option<&DeviceProfile>) -> Basis {
        let numbers =
            file.medium.is_present() || file.link.is_present() || file.write_buffer.is_present();
        match (file.basis.get(), base) {
            (Some(basis), _) => *basis,
            (None, Some(base)) if !numbers && file.flush == Entry::Absent => base.basis,
            (None, _) => Basis::Assumed,
        }
    }

    fn medium(&mut self, file: &Section<MediumFile>, base: Option<&Medium>) -> Option<Medium> {
        let present = [
            ("instant", &file.instant.span),
            ("flash", &file.flash.span),
            ("disk", &file.disk.span),
        ];
        let named: Vec<_> =
            present.iter().filter_map(|(kind, span)| Some((*kind, (*span).clone()?))).collect();
        if file.refused || file.kind_refused() {
            return None;
        }
        match (named.as_slice(), base) {
            ([], Some(base)) => Some(base.clone()),
            ([], None) => {
                self.missing("medium", "write medium.flash, medium.disk or medium.instant");
                None
            }
            ([("instant", _)], _) => Some(Medium::Instant),
            ([("flash", _)], _) => {
                let base = match base {
                    Some(Medium::Flash(flash)) => Some(flash),
                    _ => None,
                };
                self.flash(&file.flash, base).map(Medium::Flash)
            }
            ([_], _) => {
                let base = match base {
                    Some(Medium::Disk(disk)) => Some(disk),
                    _ => None,
                };
                self.disk(&file.disk, base).map(Medium::Disk)
            }
            ([_, (_, second), ..], _) => {
                self.report.at(
                    second,
                    "conflict",
                    format!("`{}.medium` names more than one kind", self.path),
                    "a device has one medium",
                    "keep one of `instant`, `flash` and `disk`",
                );
                None
            }
        }
    }

    fn flash(&mut self, file: &FlashFile, base: Option<&Flash>) -> Option<Flash> {
        let bytes = |bytes: u32| Bytes(u64::from(bytes));
        let read_command = self.value(
            "medium.read-command",
            &file.read_command,
            base.map(|base| base.read_command),
        );
        let write_command = self.value(
            "medium.write-command",
            &file.write_command,
            base.map(|base| base.write_command),
        );
        let fixed = self.value("medium.base", &file.base, base.map(|base| base.base));
        let units = self.value("medium.units", &file.units, base.map(|base| base.units));
        let unit_bytes = self.value(
            "medium.unit-bytes",
            &file.unit_bytes,
            base.map(|base| bytes(base.unit_bytes)),
        );
        let read_service = self.value(
            "medium.read-service",
            &file.read_service,
            base.map(|base| base.read_service),
        );
        let read_service_cv = self.value(
            "medium.read-service-cv",
            &file.read_service_cv,
            base.map(|base| base.read_service_cv),
        );
        let slow_probability = self.value(
            "medium.slow-probability",
            &file.slow_probability,
            base.map(|base| base.slow_probability),
        );
        let slow = self.value("medium.slow", &file.slow, base.map(|base| base.slow));
        let program = self.value("medium.program", &file.program, base.map(|base| base.program));
        let program_bytes = self.value(
            "medium.program-bytes",
            &file.program_bytes,
            base.map(|base| bytes(base.program_bytes)),
        );
        // More than 32 bits become the largest value, which the rules of the model refuse.
        let narrow = |bytes: Bytes| u32::try_from(bytes.0).unwrap_or(u32::MAX);
        Some(Flash {
            read_command: read_command?,
            write_command: write_command?,
            base: fixed?,
            units: units?,
            unit_bytes: narrow(unit_bytes?),
            read_service: read_service?,
            read_service_cv: read_service_cv?,
            slow_probability: slow_probability?,
            slow: slow?,
            program: program?,
            program_bytes: narrow(program_bytes?),
        })
    }

    fn disk(&mut self, file: &DiskFile, base: Option<&Disk>) -> Option<Disk> {
        let command = self.value("medium.command", &file.command, base.map(|base| base.command));
        let seek_shortest = self.value(
            "medium.seek-shortest",
            &file.seek_shortest,
            base.map(|base| base.seek_shortest),
        );
        let seek_span =
            self.value("medium.seek-span", &file.seek_span, base.map(|base| base.seek_span));
        let rotations_per_minute = self.value(
            "medium.rotations-per-minute",
            &file.rotations_per_minute,
            base.map(|base| base.rotations_per_minute),
        );
        let media_bytes_per_second = self.value(
            "medium.media-bytes-per-second",
            &file.media_bytes_per_second,
            base.map(|base| base.media_bytes_per_second),
        );
        let queue_depth =
            self.value("medium.queue-depth", &file.queue_depth, base.map(|base| base.queue_depth));
        Some(Disk {
            command: command?,
            seek_shortest: seek_shortest?,
            seek_span: seek_span?,
            rotations_per_minute: rotations_per_minute?,
            media_bytes_per_second: media_bytes_per_second?,
            queue_depth: queue_depth?,
        })
    }

    /// The outer `None` = refused, the inner one = no link.
    fn link(&mut self, file: &Section<LinkFile>, base: Option<Link>) -> Option<Option<Link>> {
        if !file.is_present() {
            return Some(base);
        }
        if file.refused {
            return None;
        }
        let read = self.value(
            "link.read-bytes-per-second",
            &file.read_bytes_per_second,
            base.map(|base| base.read_bytes_per_second),
        );
        let write = self.value(
            "link.write-bytes-per-second",
            &file.write_bytes_per_second,
            base.map(|base| base.write_bytes_per_second),
        );
        let duplex = self.value("link.duplex", &file.duplex, base.map(|base| base.duplex));
        Some(Some(Link {
            read_bytes_per_second: read?,
            write_bytes_per_second: write?,
            duplex: duplex?,
        }))
    }

    /// The outer `None` = refused, the inner one = no buffer.
    fn buffer(
        &mut self,
        file: &Section<BufferFile>,
        base: Option<WriteBuffer>,
    ) -> Option<Option<WriteBuffer>> {
        if !file.is_present() {
            return Some(base);
        }
        if file.refused {
            return None;
        }
        let capacity =
            self.value("write-buffer.capacity", &file.capacity, base.map(|base| base.capacity));
        let latency =
            self.value("write-buffer.latency", &file.latency, base.map(|base| base.latency));
        let latency_per_4k = self.value(
            "write-buffer.latency-per-4k",
            &file.latency_per_4k,
            base.map(|base| base.latency_per_4k),
        );
        let sequential = self.value(
            "write-buffer.drain-sequential-bytes-per-second",
            &file.drain_sequential_bytes_per_second,
            base.map(|base| base.drain_sequential_bytes_per_second),
        );
        let random = self.value(
            "write-buffer.drain-random-bytes-per-second",
            &file.drain_random_bytes_per_second,
            base.map(|base| base.drain_random_bytes_per_second),
        );
        let fresh_budget = self.value(
            "write-buffer.fresh-budget",
            &file.fresh_budget,
            base.map(|base| base.fresh_budget),
        );
        Some(Some(WriteBuffer {
            capacity: capacity?,
            latency: latency?,
            latency_per_4k: latency_per_4k?,
            drain_sequential_bytes_per_second: sequential?,
            drain_random_bytes_per_second: random?,
            fresh_budget: fresh_budget?,
        }))
    }

    fn value<T: Clone>(
        &mut self,
        field: &'static str,
        entry: &Entry<T>,
        base: Option<T>,
    ) -> Option<T> {
        match entry {
            Entry::Refused => None,
            Entry::Given { value, span } => {
                self.places.insert(field, span.clone());
                Some(value.clone())
            }
            Entry::Absent if base.is_some() => base,
            Entry::Absent => {
                self.missing(field, "a profile without a base needs every key of its tables");
                None
            }
        }
    }

    fn missing(&mut self, field: &str, help: &str) {
        self.report.add(
            self.span.clone(),
            "missing-key",
            format!("`{}` does not say `{field}`", self.path),
            format!("`{field}` is missing"),
            help,
        );
    }

    fn violated(&mut self, problem: &ProfileProblem, profile: &DeviceProfile) {
        let key = file_key(problem.field, profile);
        let span = self.places.get(problem.field).cloned().or_else(|| self.span.clone());
        self.report.add(
            span,
            "out-of-range",
            format!("`{}.{key}` is out of range", self.path),
            format!("{} is refused", problem.value),
            problem.rule,
        );
    }
}

/// The model calls a key of its medium `medium.units`, the file `medium.flash.units`.
pub(super) fn file_key(field: &str, profile: &DeviceProfile) -> String {
    match (field.strip_prefix("medium."), &profile.medium) {
        (Some(key), Medium::Flash(_)) => format!("medium.flash.{key}"),
        (Some(key), Medium::Disk(_)) => format!("medium.disk.{key}"),
        _ => field.to_string(),
    }
}
