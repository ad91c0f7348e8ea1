//! The sampled sessions of several database servers as those of one: the record has a window per second for the whole run.

use std::collections::BTreeMap;

use underlay_core::Nanos;
use underlay_telemetry::{Item, WaitKey};

const SECOND: u64 = 1_000_000_000;
/// Windows of a second that are not complete after so many more are given up: a server did not answer in it, and without it they
/// would say that it had no sessions.
const KEPT: u64 = 5;

/// Puts the windows of a second together.
pub struct SessionWindows {
    servers: usize,
    /// By the second in which they ended.
    held: BTreeMap<u64, Vec<Window>>,
}

/// What one server's sessions did in a second.
struct Window {
    begin: Nanos,
    end: Nanos,
    samples: u32,
    holder_samples: u32,
    /// Clients, background, those who hold log and pages: per sample.
    sampled: [Vec<(WaitKey, u32)>; 4],
    /// Per sample of holders.
    holders: Vec<(WaitKey, u32)>,
}

impl SessionWindows {
    /// Of so many servers.
    pub fn of(servers: usize) -> SessionWindows {
        SessionWindows { servers, held: BTreeMap::new() }
    }

    /// Takes an item. Returns it, or the window of all servers once it is complete.
    pub fn take(&mut self, item: Item) -> Option<Item> {
        if self.servers < 2 {
            return Some(item);
        }
        let Item::Waits {
            begin,
            end,
            counts,
            samples,
            holders,
            holder_samples,
            background,
            log_holders,
            page_holders,
        } = item
        else {
            return Some(item);
        };
        let sampled = [counts, background, log_holders, page_holders];
        let window = Window { begin, end, samples, holder_samples, sampled, holders };
        let second = end.0.div_ceil(SECOND);
        let windows = self.held.entry(second).or_default();
        windows.push(window);
        let complete = (windows.len() == self.servers).then(|| std::mem::take(windows));
        self.held.retain(|held, windows| !windows.is_empty() && held + KEPT > second);
        merged(&complete?)
    }
}

/// The windows as one. Servers are not sampled equally often; counts are brought to the largest number of samples, so that
/// a count over the samples is the sum of the means.
fn merged(windows: &[Window]) -> Option<Item> {
    let samples = windows.iter().map(|window| window.samples).max()?;
    let holder_samples = windows.iter().map(|window| window.holder_samples).max()?;
    let scaled = |counts: &[(WaitKey, u32)], own: u32, common: u32| {
        let scale = f64::from(common) / f64::from(own.max(1));
        let scaled = |(key, count): &(WaitKey, u32)| {
            (key.clone(), (f64::from(*count) * scale).round() as u32)
        };
        counts.iter().map(scaled).collect::<Vec<_>>()
    };
    let of = |kind: usize| {
        let each = windows.iter();
        each.flat_map(|it| scaled(&it.sampled[kind], it.samples, samples)).collect::<Vec<_>>()
    };
    Some(Item::Waits {
        begin: windows.iter().map(|window| window.begin).min()?,
        end: windows.iter().map(|window| window.end).max()?,
        counts: of(0),
        samples,
        holders: windows
            .iter()
            .flat_map(|it| scaled(&it.holders, it.holder_samples, holder_samples))
            .collect(),
        holder_samples,
        background: of(1),
        log_holders: of(2),
        page_holders: of(3),
    })
}

#[cfg(test)]
mod tests {
    use super::SessionWindows;
    use underlay_core::Nanos;
    use underlay_telemetry::{Item, WaitKey};

    fn window(end_ms: u64, samples: u32, active: u32) -> Item {
        let key = WaitKey { state: "active".to_string(), ..WaitKey::default() };
        Item::Waits {
            begin: Nanos::from_millis(end_ms - 900),
            end: Nanos::from_millis(end_ms),
            counts: vec![(key, active)],
            samples,
            holders: Vec::new(),
            holder_samples: 5,
            background: Vec::new(),
            log_holders: Vec::new(),
            page_holders: Vec::new(),
        }
    }

    #[test]
    fn sessions_of_all_servers_are_those_of_one_second() {
        let mut windows = SessionWindows::of(2);
        assert_eq!(windows.take(window(1_950, 20, 40)), None, "the other server is missing");
        let Some(Item::Waits { begin, end, counts, samples, .. }) =
            windows.take(window(1_990, 10, 30))
        else {
            panic!("both are there")
        };
        assert_eq!((begin, end), (Nanos::from_millis(1_050), Nanos::from_millis(1_990)));
        // Two sessions of one and three of the other.
        let active: u32 = counts.iter().map(|(_, count)| count).sum();
        assert_eq!((samples, active), (20, 100));
    }

    #[test]
    fn a_second_without_one_of_them_is_left_out() {
        let mut windows = SessionWindows::of(2);
        assert_eq!(windows.take(window(1_950, 20, 40)), None);
        assert_eq!(windows.take(window(2_950, 20, 40)), None);
        assert!(windows.take(window(2_960, 20, 40)).is_some());
        for second in 4..9 {
            assert_eq!(windows.take(window(second * 1_000 - 50, 20, 40)), None);
        }
        assert_eq!(windows.take(window(1_960, 20, 40)), None, "given up");
        let mut one = SessionWindows::of(1);
        assert!(one.take(window(1_950, 20, 40)).is_some());
    }
}
