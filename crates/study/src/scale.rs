//! Similarity scaling: everything that carries volume is divided by k, latencies stay.
//!
//! Cores, users, warehouses, memory, volume sizes, IOPS and MB/s caps, write buffers and drain rates
//! become k times smaller; service times, flush times and all ratios (memory : database, users : core,
//! I/O : CPU) stay. A device or link becomes one part in k of itself: it serves a burst as fast as the
//! whole, and over a longer time a k-th passes.
//!
//! No scaling can preserve the rate of one reader that never waits: in the long run it gets the rate of
//! the part. Where that shows, it is said.

use underlay_core::Bytes;
use underlay_model::{DeviceProfile, Medium, WriteBuffer};

use crate::plan::Scale;

/// The request by which a device is judged: one page of the database.
const PAGE_BYTES: u64 = 8192;
/// The model's latencies contain the transfer of this much; only the rest takes link time.
const QUOTED_BYTES: u64 = 4096;
/// A buffer is not made smaller than this: the largest request that a file system sends fits.
const BUFFER_BYTES_MIN: u64 = 1 << 20;

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

/// A user ladder in its order: each rung scaled, equal rungs merged.
pub(crate) fn ladder(full: &[u32], scale: Scale) -> Vec<u32> {
    let mut users: Vec<u32> = Vec::new();
    for rung in full.iter().map(|rung| count(*rung, scale)) {
        if !users.contains(&rung) {
            users.push(rung);
        }
    }
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
    if k == 1 {
        return ScaledDevice { profile: full.clone(), compromise: None };
    }
    let profile = DeviceProfile {
        divisor: full.divisor.saturating_mul(scale.divisor),
        capacity: Bytes((full.capacity.0 / k).max(1 << 20)),
        write_buffer: full.write_buffer.map(|buffer| scaled_buffer(buffer, k)),
        ..full.clone()
    };
    let compromise = lone_reader(full).zip(lone_reader(&profile)).and_then(|(before, after)| {
        // Rates in which a tenth is missing.
        (after < 0.9 * before).then(|| {
            format!(
                "one reader at a time reaches {after:.0} pages per second instead of {before:.0}"
            )
        })
    });
    ScaledDevice { profile, compromise }
}

fn scaled_buffer(full: WriteBuffer, k: u64) -> WriteBuffer {
    let floor = full.capacity.0.min(BUFFER_BYTES_MIN);
    WriteBuffer {
        capacity: Bytes((full.capacity.0 / k).max(floor)),
        fresh_budget: Bytes(full.fresh_budget.0 / k),
        ..full
    }
}

/// Scattered pages per second that one reader gets in the long run who asks for the next as soon as it has one: limited by
/// the latency, or by the stage that a page occupies longest. None where reads take no time.
fn lone_reader(profile: &DeviceProfile) -> Option<f64> {
    let divisor = f64::from(profile.divisor);
    let wire = |bytes: u64| {
        profile.link.map_or(0.0, |link| bytes as f64 / link.read_bytes_per_second as f64 * 1e9)
    };
    let (latency_ns, occupied_ns) = match &profile.medium {
        Medium::Instant => return None,
        Medium::Flash(flash) => {
            let command = flash.read_command.0 as f64;
            let service = flash.read_service.0 as f64;
            let latency = command + service + flash.base.0 as f64;
            // One reader meets one unit in a random place; it is busy with the last page only by chance.
            let unit = service * divisor / f64::from(flash.units);
            (latency, (command * divisor).max(unit))
        }
        Medium::Disk(disk) => {
            let rotation = 60e9 / f64::from(disk.rotations_per_minute);
            // The mean of the square root of a random distance is 8/15.
            let seek = disk.seek_shortest.0 as f64 + disk.seek_span.0 as f64 * 8.0 / 15.0;
            let service = disk.command.0 as f64 + seek + rotation / 2.0;
            (service, service * divisor)
        }
    };
    let latency_ns = latency_ns + wire(PAGE_BYTES - QUOTED_BYTES);
    let occupied_ns = occupied_ns.max(wire(PAGE_BYTES) * divisor);
    Some(1e9 / latency_ns.max(occupied_ns))
}

#[cfg(test)]
mod tests {
    use super::{count, device, ladder, size};
    use crate::plan::Scale;
    use underlay_core::Bytes;
    use underlay_model::builtin;

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
        for name in ["dc1500m-960", "dc500m-1920", "5200eco-1920"] {
            let full = builtin::find(name).expect("built in");
            let scaled = device(&full, Scale { divisor: 8 });
            assert_eq!(scaled.compromise, None, "{name}");
            let profile = scaled.profile;
            assert_eq!((profile.divisor, profile.capacity.0), (8, full.capacity.0 / 8));
            assert_eq!((profile.medium, profile.link), (full.medium, full.link));
            let (before, after) = (full.write_buffer.unwrap(), profile.write_buffer.unwrap());
            assert_eq!(after.latency, before.latency);
            assert_eq!(after.capacity.0, before.capacity.0 / 8);
        }
    }

    #[test]
    fn what_one_reader_loses_is_admitted() {
        let full = builtin::find("5200eco-1920").expect("built in");
        let compromise = device(&full, Scale { divisor: 64 }).compromise.expect("far too small");
        // A page of 8192 B occupies a 64th of 540 MB/s for 971 us; alone it takes 141 us.
        assert_eq!(
            compromise,
            "one reader at a time reaches 1030 pages per second instead of 7113"
        );
        let disk = builtin::find("hdd-7200").expect("built in");
        let compromise = device(&disk, Scale { divisor: 8 }).compromise.expect("one arm");
        assert!(compromise.contains("reaches 10 pages per second instead of 78"), "{compromise}");
    }

    #[test]
    fn scaling_twice_is_scaling_once() {
        let full = builtin::find("dc500m-1920").expect("built in");
        let twice = device(&device(&full, Scale { divisor: 2 }).profile, Scale { divisor: 4 });
        assert_eq!(twice.profile, device(&full, Scale { divisor: 8 }).profile);
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
