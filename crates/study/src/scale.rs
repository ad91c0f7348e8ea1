//! Similarity scaling: everything that carries volume is divided by k, latencies stay.
//!
//! Cores, users, warehouses, memory, volume sizes, IOPS and MB/s caps, write buffers and drain rates
//! become k times smaller; service times, flush times and all ratios (memory : database, users : core,
//! I/O : CPU) stay. A slower command stage and a slower link would add to every latency, so what they
//! add to one database page is taken off the fixed part of the device, as far as that part reaches.
//!
//! A rotating disk cannot be divided: its rate *is* its latency.

use underlay_core::{Bytes, Nanos};
use underlay_model::{DeviceProfile, Flash, Link, Medium, WriteBuffer};

use crate::plan::Scale;

/// The request whose latency is kept: one page of the database.
const PAGE_BYTES: u64 = 8192;
/// The model's latencies contain the transfer of this much; only the rest takes link time.
const QUOTED_BYTES: u64 = 4096;

/// A scaled device.
pub(crate) struct ScaledDevice {
    pub profile: DeviceProfile,
    /// What the device could not give: a sentence for people.
    pub compromise: Option<String>,
}

/// A number of users, warehouses: rounded to the nearest, at least one.
pub(crate) fn count(full: u32, scale: Scale) -> u32 {
    let k = u64::from(scale.divisor);
    let rounded = (u64::from(full) + k / 2) / k;
    // The result is at most `full`, which has 32 bits.
    rounded.max(1) as u32
}

/// A user ladder: each rung scaled, equal rungs merged.
pub(crate) fn ladder(full: &[u32], scale: Scale) -> Vec<u32> {
    let mut users: Vec<u32> = full.iter().map(|users| count(*users, scale)).collect();
    users.dedup();
    users
}

/// A size, rounded up to a whole MiB, at least `floor`.
pub(crate) fn size(full: Bytes, scale: Scale, floor: Bytes) -> Bytes {
    let mib = full.0.div_ceil(u64::from(scale.divisor)).div_ceil(1 << 20).max(1);
    Bytes((mib << 20).max(floor.0))
}

/// A device with the same latencies and 1/k of everything else.
pub(crate) fn device(full: &DeviceProfile, scale: Scale) -> ScaledDevice {
    let k = u64::from(scale.divisor);
    let mut profile = full.clone();
    if k == 1 {
        return ScaledDevice { profile, compromise: None };
    }
    profile.capacity = Bytes((full.capacity.0 / k).max(1 << 20));
    profile.link = full.link.map(|link| scaled_link(link, k));
    let (read_added, write_added) = link_delays(full.link, profile.link);
    let mut compromise = None;
    match (&full.medium, &mut profile.medium) {
        (Medium::Flash(before), Medium::Flash(after)) => {
            let (flash, missing) = scaled_flash(before, k, read_added);
            *after = flash;
            compromise = missing
                .map(|added| format!("reads of one page take {added} longer than at full size"));
        }
        (Medium::Disk(_), _) => {
            compromise = Some("a rotating disk keeps its full rate, which is its latency".into());
        }
        _ => {}
    }
    let command_added = match &full.medium {
        Medium::Flash(flash) => flash.write_command.0 * (k - 1),
        Medium::Instant | Medium::Disk(_) => 0,
    };
    profile.write_buffer =
        full.write_buffer.map(|buffer| scaled_buffer(buffer, k, write_added + command_added));
    ScaledDevice { profile, compromise }
}

fn scaled_flash(full: &Flash, k: u64, link_added: u64) -> (Flash, Option<Nanos>) {
    let added = full.read_command.0 * (k - 1) + link_added;
    let flash = Flash {
        read_command: Nanos(full.read_command.0 * k),
        write_command: Nanos(full.write_command.0 * k),
        base: full.base.saturating_sub(Nanos(added)),
        units: u64::from(full.units).div_ceil(k) as u32,
        ..full.clone()
    };
    let missing = added.saturating_sub(full.base.0);
    (flash, (missing > 0).then_some(Nanos(missing)))
}

fn scaled_link(full: Link, k: u64) -> Link {
    Link {
        read_bytes_per_second: full.read_bytes_per_second / k,
        write_bytes_per_second: full.write_bytes_per_second / k,
        duplex: full.duplex,
    }
}

fn scaled_buffer(full: WriteBuffer, k: u64, added: u64) -> WriteBuffer {
    WriteBuffer {
        capacity: Bytes((full.capacity.0 / k).max(64 << 10)),
        latency: full.latency.saturating_sub(Nanos(added)),
        latency_per_4k: full.latency_per_4k,
        drain_sequential_bytes_per_second: full.drain_sequential_bytes_per_second / k,
        drain_random_bytes_per_second: full.drain_random_bytes_per_second / k,
        fresh_budget: Bytes(full.fresh_budget.0 / k),
    }
}

/// What the slower link adds to the read and the write of one page, in nanoseconds.
fn link_delays(full: Option<Link>, scaled: Option<Link>) -> (u64, u64) {
    let (Some(full), Some(scaled)) = (full, scaled) else { return (0, 0) };
    let delay = |rate: u64| (PAGE_BYTES - QUOTED_BYTES) * 1_000_000_000 / rate.max(1);
    (
        delay(scaled.read_bytes_per_second) - delay(full.read_bytes_per_second),
        delay(scaled.write_bytes_per_second) - delay(full.write_bytes_per_second),
    )
}

#[cfg(test)]
mod tests {
    use super::{count, device, ladder, size};
    use crate::plan::Scale;
    use underlay_core::{Bytes, Nanos};
    use underlay_model::{DeviceProfile, Medium, builtin};

    fn page_read(profile: &DeviceProfile) -> Nanos {
        let Medium::Flash(flash) = &profile.medium else { panic!("flash") };
        let link = profile.link.expect("link");
        let wire = 4096 * 1_000_000_000 / link.read_bytes_per_second;
        flash.read_command + flash.read_service + flash.base + Nanos(wire)
    }

    #[test]
    fn users_shrink_and_merge() {
        let fibonacci = [1, 2, 3, 5, 8, 13, 21, 34, 55, 89];
        assert_eq!(ladder(&fibonacci, Scale { divisor: 8 }), [1, 2, 3, 4, 7, 11]);
        assert_eq!(ladder(&fibonacci, Scale::FULL), fibonacci);
        assert_eq!(count(1, Scale { divisor: 1000 }), 1);
        assert_eq!(count(u32::MAX, Scale { divisor: u32::MAX }), 1);
    }

    #[test]
    fn sizes_are_whole_and_have_a_floor() {
        let eighth = Scale { divisor: 8 };
        assert_eq!(size(Bytes::from_gib(32), eighth, Bytes::ZERO), Bytes::from_gib(4));
        assert_eq!(size(Bytes(1), eighth, Bytes::ZERO), Bytes::from_mib(1));
        assert_eq!(size(Bytes::from_mib(512), eighth, Bytes::from_mib(300)), Bytes::from_mib(300));
    }

    #[test]
    fn rates_shrink_and_latency_stays() {
        let full = builtin::find("dc1500m-960").expect("built in");
        let scaled = device(&full, Scale { divisor: 8 }).profile;
        let (Medium::Flash(before), Medium::Flash(after)) = (&full.medium, &scaled.medium) else {
            panic!("flash");
        };
        assert_eq!(after.read_command.0, before.read_command.0 * 8);
        assert_eq!(after.read_service, before.read_service);
        let (before, after) = (page_read(&full), page_read(&scaled));
        assert!(after.0.abs_diff(before.0) <= before.0 / 50, "{before} became {after}");
        assert_eq!(scaled.flush, full.flush);
    }

    #[test]
    fn lost_latency_is_admitted() {
        let full = builtin::find("5200eco-1920").expect("built in");
        assert!(device(&full, Scale { divisor: 64 }).compromise.is_some());
        let disk = builtin::find("hdd-7200").expect("built in");
        let scaled = device(&disk, Scale { divisor: 8 });
        assert_eq!(scaled.profile.medium, disk.medium);
        assert!(scaled.compromise.is_some());
    }

    #[test]
    fn moderate_scales_give_valid_profiles() {
        for full in builtin::all() {
            for divisor in [1, 2, 8, 16, 32] {
                let scaled = device(&full, Scale { divisor }).profile;
                assert_eq!(scaled.problems(), [], "{} at 1/{divisor}", full.name);
            }
        }
    }
}
