//! Several equal drives striped into one: what a software pool presents.
//!
//! An approximation by one larger device: random requests spread over the units of all members by the same hash,
//! command stages, links and drains add up. What it leaves out: requests longer than the stripe that wait for
//! the slowest member, and the pool software's own cost. Requests that touch one member take as long as on a
//! single drive, which is what small blocks do.

use crate::profile::{DeviceProfile, Flash, Link, Medium, WriteBuffer};
use underlay_core::{Bytes, Nanos};

/// Most members of a stripe set.
pub const MEMBERS_MAX: u32 = 64;

/// The device that `members` striped drives of this profile present; none for a rotating disk, whose arms cannot
/// be added up, and for numbers outside 1 to [`MEMBERS_MAX`].
pub fn stripe_set(member: &DeviceProfile, members: u32) -> Option<DeviceProfile> {
    if members == 1 {
        return Some(member.clone());
    }
    if !(1..=MEMBERS_MAX).contains(&members) || matches!(member.medium, Medium::Disk(_)) {
        return None;
    }
    let n = u64::from(members);
    let mut set = member.clone();
    set.description = format!("{members} x {}, striped", member.description);
    set.capacity = Bytes(member.capacity.0 * n);
    if let (Medium::Flash(one), Medium::Flash(flash)) = (&member.medium, &mut set.medium) {
        *flash = Flash {
            read_command: shorter(one.read_command, n),
            write_command: shorter(one.write_command, n),
            // What the shorter stage no longer takes from a lone request stays in its latency.
            base: one.base + (one.read_command - shorter(one.read_command, n)),
            units: (one.units * members).min(4096),
            ..one.clone()
        };
    }
    set.link = member.link.map(|link| Link {
        read_bytes_per_second: link.read_bytes_per_second * n,
        write_bytes_per_second: link.write_bytes_per_second * n,
        ..link
    });
    set.write_buffer = member.write_buffer.map(|buffer| WriteBuffer {
        capacity: Bytes(buffer.capacity.0 * n),
        drain_sequential_bytes_per_second: buffer.drain_sequential_bytes_per_second * n,
        drain_random_bytes_per_second: buffer.drain_random_bytes_per_second * n,
        ..buffer
    });
    Some(set)
}

fn shorter(command: Nanos, n: u64) -> Nanos {
    Nanos((command.0 / n).max(1))
}

#[cfg(test)]
mod tests {
    use super::stripe_set;
    use crate::builtin;
    use crate::closed_loop::{ClosedLoop, Pattern, run};
    use crate::device::Device;
    use crate::profile::DeviceProfile;
    use underlay_core::{Bytes, RootSeed};

    fn reads(profile: &DeviceProfile, queue_depth: u32) -> (f64, f64) {
        let spec = ClosedLoop {
            queue_depth,
            block_bytes: 4096,
            read_share: 1.0,
            pattern: Pattern::Random,
            extent: Bytes::from_gib(16),
            warm_up: 5_000,
            measured: 20_000,
        };
        let mut device = Device::with_extent(profile, spec.extent, RootSeed(1), "set");
        let result = run(&mut device, &spec, RootSeed(1));
        (result.iops(), result.read.mean().expect("reads"))
    }

    #[test]
    fn rates_add_up_and_a_lone_request_takes_as_long() {
        let one = builtin::find("extreme-pro-480").expect("built in");
        let set = stripe_set(&one, 8).expect("flash");
        assert_eq!(set.problems(), []);
        let ((_, lone_one), (_, lone_set)) = (reads(&one, 1), reads(&set, 1));
        assert!((lone_set / lone_one - 1.0).abs() < 0.02, "{lone_one} {lone_set}");
        let ((deep_one, _), (deep_set, _)) = (reads(&one, 64), reads(&set, 512));
        assert!((deep_set / deep_one / 8.0 - 1.0).abs() < 0.05, "{deep_one} {deep_set}");
    }

    #[test]
    fn arms_do_not_add_up() {
        let disk = builtin::find("hdd-7200").expect("built in");
        assert!(stripe_set(&disk, 2).is_none());
        assert_eq!(stripe_set(&disk, 1), Some(disk));
        let ssd = builtin::find("s3610-400").expect("built in");
        assert!(stripe_set(&ssd, 0).is_none() && stripe_set(&ssd, 65).is_none());
        assert_eq!(stripe_set(&ssd, 1), Some(ssd));
    }
}
