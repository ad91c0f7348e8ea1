//! The device profiles that come with Underlay, each number with its source.
//!
//! One file per vendor. Marks in the `source` texts: *sheet* = the vendor's datasheet as quoted by a third
//! party, *review* = measured and published by a reviewer, *recalled* = a published figure not checked
//! against the primary document, *rule* = derived by [`crate::Flash::from_datasheet`], *assumed* = no public
//! figure exists. A profile in which anything but the rule was fitted is labelled so; one in which the
//! deciding figures are assumed is labelled assumed, not datasheet.
//!
//! These are tables of values. The text form of profiles belongs to the study file format.

mod intel;

mod kingston;

mod micron;

mod samsung;

mod sandisk;

mod solid_state;

mod memory;

mod disk;

mod nothing;

use crate::profile::DeviceProfile;

/// All built-in profiles, sorted by name.
pub fn all() -> Vec<DeviceProfile> {
    let mut profiles = vec![
        disk::hdd_7200(),
        intel::optane_p4800x_375(),
        intel::p4500_2000(),
        intel::s3610_400(),
        kingston::dc1500m_1920(),
        kingston::dc1500m_960(),
        kingston::dc500m_1920(),
        memory::fc_array_slc(),
        memory::flashtec_nv1616(),
        memory::nvdimm_16(),
        micron::micron_5200_eco_1920(),
        nothing::null(),
        samsung::pm1725a_1600(),
        samsung::sm1715_1600(),
        sandisk::extreme_pro_480(),
        solid_state::flashtec_nvme2032(),
    ];
    profiles.sort_by(|a, b| a.name.cmp(&b.name));
    profiles
}

/// The built-in profile of that name.
pub fn find(name: &str) -> Option<DeviceProfile> {
    all().into_iter().find(|profile| profile.name == name)
}

#[cfg(test)]
mod tests {
    use super::{all, find};
    use crate::closed_loop::{ClosedLoop, Pattern, run};
    use crate::device::Device;
    use crate::profile::{Basis, Medium, program_bytes};
    use underlay_core::{Bytes, RootSeed};

    #[test]
    fn every_builtin_profile_is_valid() {
        for profile in all() {
            assert_eq!(profile.problems(), [], "{}", profile.name);
            assert!(!profile.source.contains("  "), "{}: {}", profile.name, profile.source);
            assert!(profile.source.len() > 40, "{} says where its numbers come from", profile.name);
        }
    }

    /// The rate of writes stands in the medium and in the buffer of a profile.
    #[test]
    fn a_drain_occupies_all_units_of_nand() {
        let mut drives = 0;
        for profile in all() {
            let (Medium::Flash(flash), Some(buffer)) = (&profile.medium, &profile.write_buffer)
            else {
                continue;
            };
            // That of media which are written in place.
            if flash.program_bytes == 4096 {
                continue;
            }
            let rate = buffer.drain_sequential_bytes_per_second;
            let whole = program_bytes(flash.program, rate, flash.units);
            assert_eq!(flash.program_bytes, whole, "{}", profile.name);
            drives += 1;
        }
        assert_eq!(drives, 11);
    }

    #[test]
    fn only_fitted_profiles_carry_a_fit_error() {
        for profile in all() {
            let fitted = profile.basis == Basis::Fitted;
            assert_eq!(profile.fit_error_percent.is_some(), fitted, "{}", profile.name);
        }
    }

    #[test]
    fn names_are_sorted_and_found() {
        let names: Vec<_> = all().into_iter().map(|profile| profile.name).collect();
        assert!(names.is_sorted());
        for name in &names {
            assert_eq!(&find(name).expect("listed").name, name);
        }
        assert!(find("none").is_none());
    }

    fn loop_of(
        queue_depth: u32,
        block_bytes: u32,
        read_share: f64,
        pattern: Pattern,
    ) -> ClosedLoop {
        ClosedLoop {
            queue_depth,
            block_bytes,
            read_share,
            pattern,
            extent: Bytes(8_000_000_000),
            warm_up: 20_000,
            measured: 20_000,
        }
    }

    /// What a profile shows must be what its sheet says: random reads at depth, typical latency alone, steady
    /// random writes, and both sequential rates.
    #[test]
    fn profiles_show_the_figures_of_their_sheets() {
        // Name, random reads/s, read us at queue depth 1, steady random writes/s, MB/s read, MB/s write.
        let sheets = [
            ("dc1500m-1920", 510e3, 95.0, 220e3, 3300.0, 2700.0),
            ("dc1500m-960", 440e3, 95.0, 150e3, 3100.0, 1700.0),
            ("dc500m-1920", 98e3, 119.0, 75e3, 555.0, 520.0),
            ("5200eco-1920", 95e3, 133.0, 22e3, 540.0, 520.0),
            ("p4500-2000", 490e3, 85.0, 38e3, 3200.0, 1050.0),
            ("pm1725a-1600", 800e3, 92.0, 160e3, 3300.0, 3000.0),
            ("s3610-400", 84e3, 110.0, 25e3, 550.0, 400.0),
            ("sm1715-1600", 750e3, 88.0, 130e3, 3000.0, 2200.0),
            ("p4800x-375", 550e3, 9.0, 500e3, 2400.0, 2000.0),
        ];
        for (name, reads, read_us, writes, read_rate, write_rate) in sheets {
            let profile = find(name).expect("built in");
            let show = |spec: ClosedLoop| {
                let mut device = Device::with_extent(&profile, spec.extent, RootSeed(3), name);
                run(&mut device, &spec, RootSeed(3))
            };
            let near = |what: &str, value: f64, sheet: f64, tolerance: f64| {
                assert!(
                    (value / sheet - 1.0).abs() < tolerance,
                    "{name} {what}: {value:.0} of {sheet:.0}"
                );
            };
            let deep = show(loop_of(512, 4096, 1.0, Pattern::Random)).iops();
            near("random reads", deep, reads, 0.12);
            let alone = show(loop_of(1, 4096, 1.0, Pattern::Random)).read.mean().expect("reads");
            near("read latency", alone / 1e3, read_us, 0.05);
            near(
                "random writes",
                show(loop_of(64, 4096, 0.0, Pattern::Random)).iops(),
                writes,
                0.12,
            );
            let sequential = |share| {
                show(loop_of(32, 128 << 10, share, Pattern::Sequential)).bytes_per_second() / 1e6
            };
            near("sequential read", sequential(1.0), read_rate, 0.12);
            near("sequential write", sequential(0.0), write_rate, 0.12);
        }
    }

    /// Its review measured a better sample than the sheet promises; the profile follows the sheet.
    #[test]
    fn the_p4800x_is_not_faster_than_its_sheet() {
        let profile = find("p4800x-375").expect("built in");
        let show = |spec: ClosedLoop| {
            let mut device = Device::with_extent(&profile, spec.extent, RootSeed(3), "p4800x");
            run(&mut device, &spec, RootSeed(3))
        };
        let reads = show(loop_of(512, 4096, 1.0, Pattern::Random)).iops() / 550e3;
        let writes = show(loop_of(512, 4096, 0.0, Pattern::Random)).iops() / 500e3;
        let rate = |share| {
            show(loop_of(32, 128 << 10, share, Pattern::Sequential)).bytes_per_second() / 1e6
        };
        for (what, share) in [
            ("reads", reads),
            ("writes", writes),
            ("sequential reads", rate(1.0) / 2400.0),
            ("sequential writes", rate(0.0) / 2000.0),
        ] {
            assert!((0.97..=1.01).contains(&share), "{what}: {share:.3} of the sheet");
        }
        let alone = show(loop_of(1, 4096, 0.0, Pattern::Random)).write.mean().expect("writes");
        assert!(alone < 10_000.0, "a lone write takes {alone} ns");
    }

    /// Demartek's slides print it as about 80 us under SQL Server, host included.
    #[test]
    fn the_sm1715_writes_as_its_slides_say() {
        let profile = find("sm1715-1600").expect("built in");
        let spec = loop_of(1, 8192, 0.0, Pattern::Random);
        let mut device = Device::with_extent(&profile, spec.extent, RootSeed(3), "sm1715");
        let alone = run(&mut device, &spec, RootSeed(3)).write.mean().expect("writes");
        assert!((65_000.0..80_000.0).contains(&alone), "{alone} ns");
    }
}
