//! Device profiles as TOML files: written without loss, and read with all problems at once.

use std::fmt::Write;

use underlay_core::{Bytes, Nanos};
use underlay_model::{DeviceProfile, Disk, Flash, Medium};

use crate::exact;
use crate::file;
use crate::parse::{Syntax, read_text};
use crate::problem::{Problems, Source};
use crate::report::Report;
use crate::section::Table;

/// The profile as a TOML file that [`parse_profile`] reads back to the same profile.
pub fn profile_toml(profile: &DeviceProfile) -> String {
    let mut file = Writer(String::new());
    file.text("name", &profile.name);
    file.text("description", &profile.description);
    file.text("source", &profile.source);
    file.text("basis", profile.basis.as_str());
    if let Some(percent) = profile.fit_error_percent {
        file.number("fit-error-percent", percent);
    }
    file.size("capacity", profile.capacity);
    file.time("flush", profile.flush);
    file.plain("power-loss-protected", profile.power_loss_protected);
    if profile.divisor != 1 {
        file.plain("divisor", profile.divisor);
    }
    match &profile.medium {
        Medium::Instant => file.table("medium.instant"),
        Medium::Flash(flash) => write_flash(&mut file, flash),
        Medium::Disk(disk) => write_disk(&mut file, disk),
    }
    if let Some(link) = profile.link {
        file.table("link");
        file.size("read-bytes-per-second", Bytes(link.read_bytes_per_second));
        file.size("write-bytes-per-second", Bytes(link.write_bytes_per_second));
        file.text("duplex", link.duplex.as_str());
    }
    if let Some(buffer) = profile.write_buffer {
        file.table("write-buffer");
        file.size("capacity", buffer.capacity);
        file.time("latency", buffer.latency);
        file.time("latency-per-4k", buffer.latency_per_4k);
        let sequential = buffer.drain_sequential_bytes_per_second;
        file.size("drain-sequential-bytes-per-second", Bytes(sequential));
        file.size("drain-random-bytes-per-second", Bytes(buffer.drain_random_bytes_per_second));
        file.size("fresh-budget", buffer.fresh_budget);
    }
    file.0
}

/// Reads a device profile file.
///
/// # Errors
/// Every problem of the file: syntax, unknown and missing keys, types, units, ranges of the model.
pub fn parse_profile(source: &Source) -> Result<DeviceProfile, Problems> {
    let mut report = Report::default();
    let (file, syntax) = read_text(&source.text, &mut report, file::Profile::read);
    let lowered = match syntax {
        Syntax::Sound => file::profile::lower(&file, None, None, "profile", &mut report),
        Syntax::Broken => None,
    };
    match (Problems::from_drafts(source, report.into_drafts()), lowered) {
        (None, Some((profile, _))) => Ok(profile),
        (Some(problems), _) => Err(problems),
        (None, None) => unreachable!("a profile is refused only with a problem"),
    }
}

fn write_flash(file: &mut Writer, flash: &Flash) {
    file.table("medium.flash");
    file.time("read-command", flash.read_command);
    file.time("write-command", flash.write_command);
    file.time("base", flash.base);
    file.plain("units", flash.units);
    file.size("unit-bytes", Bytes(u64::from(flash.unit_bytes)));
    file.time("read-service", flash.read_service);
    file.number("read-service-cv", flash.read_service_cv);
    file.number("slow-probability", flash.slow_probability);
    file.time("slow", flash.slow);
    file.time("program", flash.program);
    file.size("program-bytes", Bytes(u64::from(flash.program_bytes)));
}

fn write_disk(file: &mut Writer, disk: &Disk) {
    file.table("medium.disk");
    file.time("command", disk.command);
    file.time("seek-shortest", disk.seek_shortest);
    file.time("seek-span", disk.seek_span);
    file.plain("rotations-per-minute", disk.rotations_per_minute);
    file.size("media-bytes-per-second", Bytes(disk.media_bytes_per_second));
    file.plain("queue-depth", disk.queue_depth);
}

/// Appends lines of a TOML file.
struct Writer(String);

impl Writer {
    fn table(&mut self, name: &str) {
        self.line(format_args!("\n[{name}]"));
    }

    fn text(&mut self, key: &str, value: &str) {
        self.line(format_args!("{key} = {}", toml::Value::String(value.to_string())));
    }

    fn size(&mut self, key: &str, value: Bytes) {
        self.line(format_args!("{key} = \"{}\"", exact::size(value)));
    }

    fn time(&mut self, key: &str, value: Nanos) {
        self.line(format_args!("{key} = \"{}\"", exact::time(value)));
    }

    fn number(&mut self, key: &str, value: f64) {
        self.line(format_args!("{key} = {}", toml::Value::Float(value)));
    }

    fn plain(&mut self, key: &str, value: impl std::fmt::Display) {
        self.line(format_args!("{key} = {value}"));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{line}").expect("writing to a String cannot fail");
    }
}

#[cfg(test)]
mod tests {
    use super::{parse_profile, profile_toml};
    use crate::problem::Source;
    use underlay_model::{DeviceProfile, builtin};

    #[test]
    fn profiles_survive_the_file() {
        let divided = |profile| DeviceProfile { divisor: 8, ..profile };
        for profile in builtin::all().into_iter().flat_map(|full| [full.clone(), divided(full)]) {
            let text = profile_toml(&profile);
            let source = Source { name: profile.name.clone(), text };
            let read = parse_profile(&source).unwrap_or_else(|problems| {
                panic!("{}", problems.render(100, crate::Colour::Plain))
            });
            assert_eq!(read, profile);
        }
    }

    #[test]
    fn a_profile_alone_needs_every_key() {
        let source =
            Source { name: "p.toml".into(), text: "name = \"x\"\n[medium.flash]\n".into() };
        let problems = parse_profile(&source).expect_err("incomplete");
        let missing = problems.as_slice().iter().filter(|problem| problem.code == "missing-key");
        assert_eq!(missing.count(), 14);
    }
}
