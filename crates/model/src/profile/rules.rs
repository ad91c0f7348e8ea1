//! The rules that a usable profile keeps: ranges of its numbers, and what does not go together.

use super::problem::ProfileProblem;
use super::{DeviceProfile, Disk, Flash, Link, Medium, WriteBuffer};
use underlay_core::{Bytes, Nanos};

const SECOND: u64 = 1_000_000_000;

/// Collects the violations of one profile.
struct Checker(Vec<ProfileProblem>);

impl Checker {
    fn require(
        &mut self,
        field: &'static str,
        value: impl ToString,
        rule: &'static str,
        holds: bool,
    ) {
        if !holds {
            self.0.push(ProfileProblem { field, value: value.to_string(), rule });
        }
    }

    fn duration(
        &mut self,
        field: &'static str,
        value: Nanos,
        min: u64,
        max: u64,
        rule: &'static str,
    ) {
        self.require(field, value, rule, (min..=max).contains(&value.0));
    }
}

impl DeviceProfile {
    /// Every rule the profile violates; empty means usable.
    pub fn problems(&self) -> Vec<ProfileProblem> {
        let mut checker = Checker(Vec::new());
        self.check_identity(&mut checker);
        match &self.medium {
            Medium::Instant => {}
            Medium::Flash(flash) => check_flash(flash, &mut checker),
            Medium::Disk(disk) => check_disk(disk, &mut checker),
        }
        if let Some(link) = &self.link {
            check_link(link, &mut checker);
        }
        if let Some(buffer) = &self.write_buffer {
            check_buffer(buffer, &mut checker);
        }
        checker.0
    }

    /// What is wrong with a name, for who wants to know it before there is a profile.
    pub fn name_problem(name: &str) -> Option<ProfileProblem> {
        let mut checker = Checker(Vec::new());
        check_name(name, &mut checker);
        checker.0.pop()
    }

    fn check_identity(&self, checker: &mut Checker) {
        check_name(&self.name, checker);
        checker.require(
            "capacity",
            self.capacity,
            "use 1 MiB to 1 EiB",
            (1 << 20..=1 << 60).contains(&self.capacity.0),
        );
        checker.duration("flush", self.flush, 0, SECOND, "use 0 to 1 s");
        checker.require(
            "divisor",
            self.divisor,
            "use 1 to 4096",
            (1..=4096).contains(&self.divisor),
        );
        checker.require(
            "copies",
            self.copies,
            "use 1 to 4",
            (1..=DeviceProfile::COPIES_MAX).contains(&self.copies),
        );
        if let Some(percent) = self.fit_error_percent {
            checker.require(
                "fit-error-percent",
                percent,
                "use 0 or more",
                percent.is_finite() && percent >= 0.0,
            );
        }
        checker.require(
            "write-buffer",
            "present",
            "an instant medium has no write buffer to drain; leave it out",
            self.medium != Medium::Instant || self.write_buffer.is_none(),
        );
    }
}

fn check_name(name: &str, checker: &mut Checker) {
    let holds = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.');
    let rule = "use lower case letters, digits, `-` and `.`";
    checker.require("name", format!("{name:?}"), rule, holds);
}

fn check_flash(flash: &Flash, checker: &mut Checker) {
    let command_rule = "use 1 ns to 1 s";
    checker.duration("medium.read-command", flash.read_command, 1, SECOND, command_rule);
    checker.duration("medium.write-command", flash.write_command, 1, SECOND, command_rule);
    checker.duration("medium.base", flash.base, 0, SECOND, "use 0 to 1 s");
    checker.require(
        "medium.units",
        flash.units,
        "use 1 to 4096",
        (1..=4096).contains(&flash.units),
    );
    checker.require(
        "medium.unit-bytes",
        Bytes(u64::from(flash.unit_bytes)),
        "use a power of two from 512 B to 16 MiB",
        flash.unit_bytes.is_power_of_two() && (512..=16 << 20).contains(&flash.unit_bytes),
    );
    let service_rule = "use 1 ns to 10 s";
    checker.duration("medium.read-service", flash.read_service, 1, 10 * SECOND, service_rule);
    checker.require(
        "medium.read-service-cv",
        flash.read_service_cv,
        "use 0 to 3",
        (0.0..=3.0).contains(&flash.read_service_cv),
    );
    checker.require(
        "medium.slow-probability",
        flash.slow_probability,
        "use 0 to 1",
        (0.0..=1.0).contains(&flash.slow_probability),
    );
    checker.duration("medium.slow", flash.slow, 0, 10 * SECOND, "use 0 to 10 s");
    checker.duration("medium.program", flash.program, 0, 10 * SECOND, "use 0 to 10 s");
    checker.require(
        "medium.program-bytes",
        Bytes(u64::from(flash.program_bytes)),
        "use 512 B to 16 MiB",
        super::PROGRAM_BYTES.contains(&flash.program_bytes),
    );
}

fn check_disk(disk: &Disk, checker: &mut Checker) {
    checker.duration("medium.command", disk.command, 0, SECOND, "use 0 to 1 s");
    let seek_rule = "use 0 to 1 s";
    checker.duration("medium.seek-shortest", disk.seek_shortest, 0, SECOND, seek_rule);
    checker.duration("medium.seek-span", disk.seek_span, 0, SECOND, seek_rule);
    checker.require(
        "medium.rotations-per-minute",
        disk.rotations_per_minute,
        "use 1,000 to 100,000 per minute",
        (1_000..=100_000).contains(&disk.rotations_per_minute),
    );
    checker.require(
        "medium.media-bytes-per-second",
        disk.media_bytes_per_second,
        "use 1 MB/s to 10 GB/s",
        (1_000_000..=10_000_000_000).contains(&disk.media_bytes_per_second),
    );
    checker.require(
        "medium.queue-depth",
        disk.queue_depth,
        "use 1 to 256",
        (1..=256).contains(&disk.queue_depth),
    );
}

fn check_link(link: &Link, checker: &mut Checker) {
    let rule = "use 1 MB/s to 1 TB/s";
    let range = 1_000_000..=1_000_000_000_000;
    let read = link.read_bytes_per_second;
    checker.require("link.read-bytes-per-second", read, rule, range.contains(&read));
    let write = link.write_bytes_per_second;
    checker.require("link.write-bytes-per-second", write, rule, range.contains(&write));
}

fn check_buffer(buffer: &WriteBuffer, checker: &mut Checker) {
    checker.require(
        "write-buffer.capacity",
        buffer.capacity,
        "use 64 KiB to 64 GiB",
        (64 << 10..=64 << 30).contains(&buffer.capacity.0),
    );
    checker.duration("write-buffer.latency", buffer.latency, 0, SECOND, "use 0 to 1 s");
    checker.duration(
        "write-buffer.latency-per-4k",
        buffer.latency_per_4k,
        0,
        1_000_000,
        "use 0 to 1 ms",
    );
    let sequential = buffer.drain_sequential_bytes_per_second;
    checker.require(
        "write-buffer.drain-sequential-bytes-per-second",
        sequential,
        "use 1 MB/s to 1 TB/s",
        (1_000_000..=1_000_000_000_000).contains(&sequential),
    );
    let random = buffer.drain_random_bytes_per_second;
    checker.require(
        "write-buffer.drain-random-bytes-per-second",
        random,
        "use 10 KB/s up to the sequential drain rate",
        (10_000..=sequential.max(10_000)).contains(&random),
    );
}
