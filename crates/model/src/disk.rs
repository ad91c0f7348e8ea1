//! A rotating disk: one arm, one angle.
//!
//! A request that continues where the last one ended streams at the media rate, if its command has been understood by then; a
//! read that comes late is served from the drive's read-ahead, a write that comes late waits for the platter to come
//! round again. Everything else costs a seek (shortest + span x sqrt(distance)) and a
//! uniform rotational delay.
//!
//! Reordering: completions are promised at arrival, so the drive's choice of the nearest command cannot be
//! replayed. Instead its effect is modelled: with `w` other commands waiting, the positioning time is the
//! smallest of `1 + 0.9 w^0.75` draws (a fractional draw counts by chance). That reproduces the gain of
//! about 2.1 x from queue depth 1 to 32 that drives of this class show; the exponent below 1 models the
//! fairness that keeps a drive from always choosing the nearest.
//!
//! Distances are relative to the extent in use, not to the whole platter: a scaled-down volume
//! then behaves like the full disk it stands for, instead of like its outermost ring.
//!
//! A divided disk (see [`crate::DeviceProfile::divisor`]) belongs to others for the rest of the time: see [`crate::stage`].

use crate::link::transfer_time;
use crate::profile::Disk;
use crate::service_factor::ServiceFactor;
use crate::service_time::unit_interval;
use crate::stage::Stage;
use rand_pcg::Pcg64;
use std::collections::VecDeque;
use underlay_core::{Bytes, Nanos};

/// Additional draws per waiting command to the power of [`CHOICE_EXPONENT`].
const CHOICE_GAIN: f64 = 0.9;
const CHOICE_EXPONENT: f64 = 0.75;
/// Credit per further part, for an arm: time for several requests.
const CREDIT: Nanos = Nanos::from_millis(64);

/// The state of one arm.
#[derive(Clone, Debug)]
pub(crate) struct Arm {
    disk: Disk,
    /// Extent that distances are relative to, in bytes.
    extent: Bytes,
    rotation: Nanos,
    /// Address after the last byte served.
    head: u64,
    /// When the last byte was served.
    last_done: Nanos,
    stage: Stage,
    /// Completions of the commands not yet done, ascending.
    waiting: VecDeque<Nanos>,
    random: Pcg64,
}

/// Whether data comes from or goes to the platter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// What one request got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArmService {
    pub(crate) done: Nanos,
    /// Positioning and transfer, waiting excluded.
    pub(crate) service: Nanos,
}

impl Arm {
    pub(crate) fn new(disk: &Disk, divisor: u32, extent: Bytes, random: Pcg64) -> Arm {
        Arm {
            disk: disk.clone(),
            extent,
            rotation: Nanos(60_000_000_000 / u64::from(disk.rotations_per_minute)),
            head: 0,
            last_done: Nanos::ZERO,
            stage: Stage::new(divisor, CREDIT),
            waiting: VecDeque::with_capacity(1024),
            random,
        }
    }

    /// Serves a range in the order of arrival.
    pub(crate) fn serve(
        &mut self,
        now: Nanos,
        direction: Direction,
        offset: u64,
        bytes: u64,
        factor: ServiceFactor,
    ) -> ArmService {
        while self.waiting.pop_front_if(|done| *done <= now).is_some() {}
        let positioning = if offset == self.head {
            self.continue_run(now, direction)
        } else {
            self.disk.command + self.position(offset)
        };
        let as_it_is = positioning + transfer_time(bytes, self.disk.media_bytes_per_second);
        let service = factor.of(as_it_is);
        let done = self.stage.serve(now, service) + service;
        debug_assert!(done >= self.last_done, "one arm serves in the order of arrival");
        self.last_done = done;
        self.head = offset + bytes;
        self.waiting.push_back(done);
        ArmService { done, service }
    }

    /// From the moment at which the arm could begin until it does.
    fn continue_run(&self, now: Nanos, direction: Direction) -> Nanos {
        let understood = now + self.disk.command;
        if understood <= self.last_done && self.last_done != Nanos::ZERO {
            return Nanos::ZERO;
        }
        let late = understood - self.last_done.max(now);
        match direction {
            Direction::Read => late,
            Direction::Write => {
                let turned = Nanos((understood - self.last_done).0 % self.rotation.0);
                late + (self.rotation - turned)
            }
        }
    }

    /// Seek and rotation, the best among the commands the drive may choose from.
    fn position(&mut self, offset: u64) -> Nanos {
        let distance = self.head.abs_diff(offset) as f64 / self.extent.0.max(1) as f64;
        let mut best = self.position_at(distance.min(1.0));
        let waiting = self.waiting.len().min(self.disk.queue_depth as usize - 1);
        let mut extra_draws = CHOICE_GAIN * (waiting as f64).powf(CHOICE_EXPONENT);
        while extra_draws > 0.0 {
            let distance = unit_interval(&mut self.random) - unit_interval(&mut self.random);
            let candidate = self.position_at(distance.abs());
            if extra_draws >= 1.0 || unit_interval(&mut self.random) < extra_draws {
                best = best.min(candidate);
            }
            extra_draws -= 1.0;
        }
        best
    }

    fn position_at(&mut self, distance: f64) -> Nanos {
        debug_assert!((0.0..=1.0).contains(&distance), "distance {distance} of the extent");
        let seek = self.disk.seek_span.0 as f64 * distance.sqrt();
        let turn = self.rotation.0 as f64 * unit_interval(&mut self.random);
        self.disk.seek_shortest + Nanos((seek + turn) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::{Arm, Direction};
    use crate::builtin;
    use crate::profile::Medium;
    use crate::service_factor::ServiceFactor;
    use underlay_core::{Nanos, RootSeed};

    const ONE: ServiceFactor = ServiceFactor::ONE;

    fn arm() -> Arm {
        let profile = builtin::find("hdd-7200").expect("built in");
        let Medium::Disk(disk) = &profile.medium else { panic!("a disk") };
        Arm::new(disk, 1, profile.capacity, RootSeed(3).stream("test", 0))
    }

    #[test]
    fn sequential_transfers_run_at_the_media_rate() {
        let mut arm = arm();
        let mut done = Nanos::ZERO;
        for i in 0..200u64 {
            done = arm.serve(Nanos::ZERO, Direction::Write, i << 20, 1 << 20, ONE).done;
        }
        let rate = (200u64 << 20) as f64 / done.as_secs_f64();
        assert!((rate / 200e6 - 1.0).abs() < 0.02, "{rate}");
    }

    #[test]
    fn a_late_sequential_write_loses_a_rotation_and_a_late_read_does_not() {
        let mut arm = arm();
        let mut now = arm.serve(Nanos::ZERO, Direction::Write, 0, 4096, ONE).done;
        let begin = now;
        for i in 1..=100u64 {
            // A log that writes the next block 100 us after the last was acknowledged.
            now = arm
                .serve(now + Nanos::from_micros(100), Direction::Write, i * 4096, 4096, ONE)
                .done;
        }
        let per_write = (now - begin).0 / 100;
        let rotation = 60_000_000_000 / 7200;
        assert!(per_write.abs_diff(rotation) < 100_000, "{per_write}");
        let read = arm.serve(now + Nanos::from_millis(3), Direction::Read, 101 * 4096, 4096, ONE);
        assert!(read.service < Nanos::from_micros(250), "{read:?}");
    }

    /// The drive takes its time to understand a command, whatever the platter does meanwhile: one that comes right before
    /// its turn is too late for it, as one that comes right after it.
    #[test]
    fn a_command_must_be_understood_before_its_place_comes_round() {
        for direction in [Direction::Read, Direction::Write] {
            let next_after = |lead: Nanos| {
                let mut arm = arm();
                let done = arm.serve(Nanos::ZERO, direction, 0, 1 << 20, ONE).done;
                (arm.serve(done - lead, direction, 1 << 20, 4096, ONE).done - done, arm)
            };
            let (in_time, arm) = next_after(arm().disk.command);
            assert!(in_time < Nanos::from_micros(25), "{direction:?}: {in_time}");
            for lead in [100, 1, 0].map(Nanos::from_micros) {
                let waited = next_after(lead).0 - in_time;
                let expected = match direction {
                    // From the read-ahead, as soon as the command is understood.
                    Direction::Read => arm.disk.command - lead,
                    Direction::Write => arm.rotation,
                };
                assert_eq!(waited, expected, "{direction:?} {lead} before");
            }
        }
    }

    #[test]
    fn a_write_that_comes_exactly_one_turn_later_waits_little() {
        let mut arm = arm();
        let done = arm.serve(Nanos::ZERO, Direction::Write, 0, 4096, ONE).done;
        let late = done + arm.rotation - Nanos::from_micros(300);
        let next = arm.serve(late, Direction::Write, 4096, 4096, ONE);
        assert!(next.service < Nanos::from_micros(400), "{next:?}");
    }
}
