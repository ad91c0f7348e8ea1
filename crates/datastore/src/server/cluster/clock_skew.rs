//! How the cluster's clock relates to the wall clock: ahead of it by the time that was skipped while timing was off, and
//! behind it if this host could not keep up with copying.
//!
//! The model copies as fast as its devices do. On a host that moves the bytes more slowly, the backlog of copies would grow
//! with each turn, and every reply would wait for all of them. So while copies are carried out, the cluster's clock
//! advances at most one stride beyond the next event. The rest of the time is lost to the cluster: copying takes longer,
//! and clients are served in between. A request in progress keeps its deadline, so the lost time shows as lateness, not as
//! a slower device. After a stride with copies, clients get the same time: the server accepts one request at a time, and
//! would otherwise copy between any two of them.

use underlay_core::Nanos;

/// A stride of the server: what is copied meanwhile takes a slow host some milliseconds.
pub(crate) const STRIDE: Nanos = Nanos::from_millis(2);

/// For how long at most clients have their turn after a stride.
const CLIENTS_TURN_MAX: Nanos = Nanos::from_millis(10);

/// For how long after a copy more of them are expected, by the cluster's clock.
const LADEN_FOR: Nanos = Nanos::from_millis(50);

/// What is worth telling of the time that is lost from when the host is too slow until it keeps up again.
const REPORTED_LOSS_MIN: Nanos = Nanos::from_millis(500);

/// For how long nothing may be lost before the host counts as keeping up again.
const KEPT_UP_FOR: Nanos = Nanos::from_secs(5);

/// Over about how much time of the wall's is looked at how much slower the cluster's clock goes.
const SLOWNESS_OVER: Nanos = Nanos::from_secs(10);

/// The two clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockSkew {
    ahead: Nanos,
    behind: Nanos,
    /// None = however slow the host is, its clock counts.
    stride: Option<Nanos>,
    /// Until when copies are expected.
    laden_until: Nanos,
    /// None while this host keeps up.
    episode: Option<Episode>,
    /// When the last stride began, and whether something was copied in it; on the wall's clock.
    strode_at: Nanos,
    has_copied: bool,
    /// Until when the clients have their turn, on the wall's clock.
    clients_until: Nanos,
}

/// A span in which this host does not keep up, on the wall's clock.
#[derive(Clone, Copy, Debug)]
struct Episode {
    began: Nanos,
    /// When something was lost last.
    latest: Nanos,
    lost: Nanos,
    is_reported: bool,
    /// Time in which copies were carried out or expected, and how much of it was lost; what is long ago counts less.
    laden: Nanos,
    laden_lost: Nanos,
}

/// A notice about the clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SkewNotice {
    /// This host does not keep up: so much was lost in so long.
    FallsBehind { lost: Nanos, within: Nanos },
    /// It does again, since that moment of the wall's.
    KeepsUp { lost: Nanos, within: Nanos, since: Nanos },
}

impl Default for ClockSkew {
    fn default() -> ClockSkew {
        ClockSkew {
            ahead: Nanos::ZERO,
            behind: Nanos::ZERO,
            stride: None,
            laden_until: Nanos::ZERO,
            episode: None,
            strode_at: Nanos::ZERO,
            has_copied: false,
            clients_until: Nanos::ZERO,
        }
    }
}

impl ClockSkew {
    /// From now on the cluster's clock waits for this host's copying.
    pub(super) fn keep_to(&mut self, stride: Nanos) {
        // With none, each turn would lose all of its time, and the cluster would stand still.
        assert!(stride > Nanos::ZERO, "the clock goes on");
        self.stride = Some(stride);
    }

    /// A moment of the cluster's clock on the wall's.
    pub(super) fn on_wall(&self, at: Nanos) -> Nanos {
        self.deadline(at, self.behind)
    }

    /// When something is due on the wall's clock that was begun when so much was lost.
    pub(super) fn deadline(&self, at: Nanos, behind: Nanos) -> Nanos {
        (at + behind).saturating_sub(self.ahead)
    }

    /// What was lost so far.
    pub(super) fn behind(&self) -> Nanos {
        self.behind
    }

    /// A copy was carried out at that time of the cluster's.
    pub(super) fn copied(&mut self, now: Nanos) {
        self.laden_until = now + LADEN_FOR;
        self.has_copied = true;
    }

    /// Where the cluster's clock goes in a turn of the server; see [`ClockSkew::go_on`].
    pub(super) fn turn(
        &mut self,
        now: Nanos,
        wall: Nanos,
        next: impl FnOnce() -> Option<Nanos>,
    ) -> Nanos {
        if !self.is_laden(now) {
            return self.go_on(now, wall, next);
        }
        if std::mem::take(&mut self.has_copied) {
            let took = wall.saturating_sub(self.strode_at);
            self.clients_until = wall + took.min(CLIENTS_TURN_MAX);
        }
        if wall < self.clients_until {
            return now;
        }
        self.strode_at = wall;
        self.go_on(now, wall, next)
    }

    /// When the next turn is worth it, of something that happens at that time of the wall's.
    pub(super) fn wakeup(&self, now: Nanos, at: Nanos) -> Nanos {
        if self.is_laden(now) { at.max(self.clients_until) } else { at }
    }

    /// When a request arrives on the cluster's clock, and what will be lost until then.
    pub(super) fn arrival(
        &mut self,
        now: Nanos,
        wall: Nanos,
        next: impl FnOnce() -> Option<Nanos>,
    ) -> (Nanos, Nanos) {
        if self.is_laden(now) {
            // Taking it up lets no time pass: only turns do.
            let there = (wall + self.ahead).saturating_sub(self.behind);
            return (now, self.behind + there.saturating_sub(now));
        }
        (self.go_on(now, wall, next), self.behind)
    }

    fn is_laden(&self, now: Nanos) -> bool {
        self.stride.is_some() && now < self.laden_until
    }

    /// The cluster's clock jumps.
    pub(super) fn skip(&mut self, by: Nanos) {
        self.ahead += by;
    }

    /// Where the cluster's clock goes from `now`, at a moment of the wall's; `next` is when something happens there.
    pub(super) fn go_on(
        &mut self,
        now: Nanos,
        wall: Nanos,
        next: impl FnOnce() -> Option<Nanos>,
    ) -> Nanos {
        let there = (wall + self.ahead).saturating_sub(self.behind).max(now);
        let Some(stride) = self.stride.filter(|_| self.is_laden(now)) else { return there };
        let idle_until = next().unwrap_or(there).clamp(now, there);
        let lost = there.saturating_sub(idle_until + stride);
        debug_assert!(there - lost >= now, "the cluster's clock never goes back");
        self.behind += lost;
        self.count(wall, there - now, lost);
        there - lost
    }

    /// Takes into account what was lost of a span that ends now.
    fn count(&mut self, wall: Nanos, span: Nanos, lost: Nanos) {
        if self.episode.is_none() && lost == Nanos::ZERO {
            return;
        }
        let episode = self.episode.get_or_insert(Episode {
            began: wall.saturating_sub(span),
            latest: wall,
            lost: Nanos::ZERO,
            is_reported: false,
            laden: Nanos::ZERO,
            laden_lost: Nanos::ZERO,
        });
        episode.lost += lost;
        if lost > Nanos::ZERO {
            episode.latest = wall;
        }
        episode.laden += span;
        episode.laden_lost += lost;
        // Their ratio is the slowdown that is reported.
        debug_assert!(episode.laden_lost <= episode.laden, "no more is lost than passes");
        if episode.laden > SLOWNESS_OVER {
            episode.laden = Nanos(episode.laden.0 / 2);
            episode.laden_lost = Nanos(episode.laden_lost.0 / 2);
        }
    }

    /// How many times as long copying takes at present as the cluster's clock says.
    pub(super) fn slowdown(&self) -> f64 {
        let Some(Episode { laden, laden_lost, .. }) = self.episode else { return 1.0 };
        let went = laden.saturating_sub(laden_lost).max(Nanos(1));
        (laden.0 as f64 / went.0 as f64).max(1.0)
    }

    /// That this host began to be too slow, or ended to be, once it is worth telling.
    pub(super) fn notice(&mut self, wall: Nanos) -> Option<SkewNotice> {
        let episode = self.episode.as_mut()?;
        let lost = episode.lost;
        if !episode.is_reported && lost >= REPORTED_LOSS_MIN {
            episode.is_reported = true;
            let within = episode.latest.saturating_sub(episode.began);
            return Some(SkewNotice::FallsBehind { lost, within });
        }
        if wall < episode.latest + KEPT_UP_FOR {
            return None;
        }
        let Episode { began, latest: since, is_reported, .. } = self.episode.take()?;
        let within = since.saturating_sub(began);
        is_reported.then_some(SkewNotice::KeepsUp { lost, within, since })
    }
}

#[cfg(test)]
mod tests {
    use super::{ClockSkew, STRIDE, SkewNotice};
    use crate::server::cluster::in_flight::InFlight;
    use crate::server::cluster::plane::ClusterPlane;
    use underlay_core::{Bytes, Nanos, RootSeed};
    use underlay_model::cluster::{ClusterSettings, ClusterSpec, HostSpec, NetworkSpec, Policy};
    use underlay_model::{DiskGroupSpec, Request, builtin};

    const MS: Nanos = Nanos::from_millis(1);
    const SECOND: Nanos = Nanos::from_secs(1);
    const MIB: u32 = 1 << 20;

    #[test]
    fn nothing_is_lost_while_nothing_is_copied_or_nothing_happens() {
        let mut skew = ClockSkew::default();
        skew.keep_to(STRIDE);
        let ms = Nanos::from_millis;
        assert_eq!(skew.go_on(Nanos::ZERO, SECOND, || Some(MS)), SECOND);
        skew.skip(SECOND);
        assert_eq!(skew.go_on(SECOND, SECOND, || None), ms(2000));
        assert_eq!(skew.on_wall(ms(2000)), SECOND);
        skew.copied(ms(2000));
        // It slept until something happened, and got up a little late.
        assert_eq!(skew.go_on(ms(2000), ms(1021), || Some(ms(2020))), ms(2021));
        assert_eq!(skew.behind(), Nanos::ZERO);
        // It was away although something happened.
        assert_eq!(skew.go_on(ms(2021), ms(1031), || Some(ms(2000))), ms(2023));
        assert_eq!((skew.behind(), skew.on_wall(ms(2023))), (ms(8), ms(1031)));
    }

    #[test]
    fn each_span_in_which_the_host_does_not_keep_up_is_told_with_its_begin_and_end() {
        let mut skew = ClockSkew::default();
        skew.keep_to(STRIDE);
        let ms = Nanos::from_millis;
        let (mut now, mut wall) = (SECOND, SECOND);
        for _ in 0..2 {
            assert_eq!(skew.slowdown().to_bits(), 1f64.to_bits());
            // Each stride of 2 ms takes 8 ms of the wall's.
            let (began, mut notices) = (wall, Vec::new());
            for _ in 0..1000 {
                skew.copied(now);
                wall += ms(8);
                now = skew.go_on(now, wall, || Some(Nanos::ZERO));
                notices.extend(skew.notice(wall).map(|notice| (wall, notice)));
            }
            let [(at, SkewNotice::FallsBehind { lost, within })] = notices[..] else {
                panic!("{notices:?}")
            };
            assert_eq!((lost, within), (ms(504), at - began));
            assert!((skew.slowdown() - 4.0).abs() < 0.01, "{}", skew.slowdown());
            // From then on nothing is copied, and somebody looks once a second.
            let since = wall;
            let end = std::iter::repeat_with(|| {
                wall += SECOND;
                now = skew.go_on(now, wall, || None);
                skew.notice(wall)
            });
            let ended = end.take(10).flatten().collect::<Vec<_>>();
            let span = SkewNotice::KeepsUp { lost: ms(6000), within: ms(8000), since };
            assert_eq!(ended, [span]);
        }
        assert_eq!(skew.behind(), ms(12_000));
        // A hiccup is nobody's business.
        skew.copied(now);
        skew.go_on(now, wall + ms(100), || Some(Nanos::ZERO));
        assert!(skew.episode.is_some());
        assert_eq!(skew.notice(wall + Nanos::from_secs(60)), None);
        assert!(skew.episode.is_none());
    }

    #[test]
    fn clients_have_as_long_as_copying_took() {
        let mut skew = ClockSkew::default();
        skew.keep_to(STRIDE);
        let ms = Nanos::from_millis;
        skew.copied(Nanos::ZERO);
        skew.has_copied = false;
        let next = || Some(Nanos::ZERO);
        assert_eq!(skew.turn(Nanos::ZERO, ms(100), next), STRIDE);
        skew.copied(STRIDE);
        // It took 6 ms: so long requests are taken up, at once and each with its own deadline.
        for wall in [ms(106), ms(107), ms(111)] {
            assert_eq!(skew.turn(STRIDE, wall, next), STRIDE);
            let (at, behind) = skew.arrival(STRIDE, wall, next);
            assert_eq!((at, skew.deadline(at + MS, behind)), (STRIDE, wall + MS));
            assert_eq!(skew.wakeup(STRIDE, ms(90)), ms(112));
        }
        assert_eq!(skew.turn(STRIDE, ms(112), next), STRIDE + STRIDE);
        assert_eq!(skew.on_wall(STRIDE + STRIDE), ms(112));
        // Nothing was copied: the next turn goes on at once.
        assert_eq!(skew.turn(STRIDE + STRIDE, ms(113), next), STRIDE + STRIDE + MS);
        // However slow the host is.
        skew.copied(ms(5));
        assert_eq!(skew.turn(ms(5), SECOND, next), ms(5));
        assert_eq!(skew.wakeup(ms(5), ms(90)), SECOND + ms(10));
    }

    /// A volume of one copy on three hosts with something in it, and the wall's clock.
    fn filled(directory: &std::path::Path) -> (ClusterPlane<u32>, Nanos) {
        let profile = |name| builtin::find(name).unwrap();
        let host = |index: usize| {
            let capacity = vec![profile("dc500m-1920")];
            let group = DiskGroupSpec::new("g", profile("dc1500m-960"), capacity);
            HostSpec { name: format!("h{index}"), fault_domain: None, groups: vec![group] }
        };
        let spec = ClusterSpec {
            hosts: (0..3).map(host).collect(),
            network: NetworkSpec {
                latency: Nanos::from_micros(50),
                bytes_per_second: 1_250_000_000,
                divisor: 1,
            },
            settings: ClusterSettings::default(),
        };
        let mut plane = ClusterPlane::open(spec, RootSeed(1), directory, None).unwrap();
        let policy = Policy { failures_to_tolerate: 0, ..Policy::DEFAULT };
        plane.add_volume(Nanos::ZERO, "data", Bytes::from_mib(48).0, policy).unwrap();
        for part in 0..48 {
            let in_flight = InFlight::new(0, 0, Nanos::ZERO, 0..MIB as usize);
            let request = Request::write(u64::from(part * MIB), MIB);
            let buffer = vec![7; MIB as usize];
            let id = plane.submit(&request, buffer, in_flight, Nanos::ZERO);
            assert!(plane.complete_now(id).is_some_and(|done| !done.failed));
        }
        let volume = plane.volume(0).unwrap();
        plane.set_policy(MS, volume, Policy::DEFAULT).unwrap();
        (plane, MS)
    }

    fn is_copied(plane: &ClusterPlane<u32>) -> bool {
        let status = plane.cluster.volume_status(plane.volume(0).unwrap()).unwrap();
        status.policy == Policy::DEFAULT
    }

    /// A second passes in every turn, as on a host that copies far more slowly than the cluster.
    #[test]
    fn clients_do_not_wait_for_all_that_a_slow_host_has_to_copy() {
        let directory = tempfile::tempdir().unwrap();
        let (mut plane, mut wall) = filled(directory.path());
        plane.follow_host();
        let mut finished = Vec::new();
        // Until the first copies were carried out.
        while plane.skew.laden_until <= plane.now {
            assert!(!is_copied(&plane));
            wall = plane.next_wakeup().expect("there is something to copy").max(wall);
            plane.advance(wall, &mut finished);
        }
        let (mut answered, mut turns, mut longest) = (0, 0, 0);
        while !is_copied(&plane) {
            let in_flight = InFlight::new(1, 0, wall, 0..4096);
            let buffer = vec![0; 4096];
            plane.submit(&Request::read(0, 4096), buffer, in_flight, Nanos::ZERO);
            let mut waited = 0;
            while finished.is_empty() {
                wall += SECOND;
                plane.advance(wall, &mut finished);
                (turns, waited) = (turns + 1, waited + 1);
                assert!(waited < 100, "no answer while there is something to copy");
            }
            longest = longest.max(waited);
            let done = finished.pop().expect("an answer");
            assert!(done.buffer.iter().all(|byte| *byte == 7));
            let modelled = done.deadline() - done.arrived;
            assert!(
                modelled < Nanos::from_millis(100),
                "the host's time is no device's: {modelled}"
            );
            answered += 1;
        }
        assert!(answered > 2, "all was copied at once: {answered} answers in {turns} turns");
        assert!(longest < 50, "{longest} turns for one answer");
        assert!(plane.skew.behind() > SECOND, "{:?}", plane.skew);
        let notices = plane.journal.take(wall);
        let tells = |what: &str| notices.iter().filter(|it| it.text.contains(what)).count();
        assert_eq!(tells("more slowly than the modelled devices"), 1, "{notices:?}");
    }
}
