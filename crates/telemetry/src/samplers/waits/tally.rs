//! Adds up session samples between two ticks. Pure.

use super::chain::Holder;
use crate::item::{Item, WaitKey};
use std::collections::BTreeMap;
use underlay_core::Nanos;

/// What one sample of all sessions found: how many are in each state.
pub(super) type Sample = Vec<(WaitKey, u32)>;

/// Kinds of server processes that work for clients.
const CLIENTS: [&str; 2] = ["client backend", "parallel worker"];

/// Whether a session works for a client.
pub(super) fn is_client(key: &WaitKey) -> bool {
    CLIENTS.contains(&key.backend_type.as_str())
}

/// Counts since the last tick.
#[derive(Debug, Default)]
pub(super) struct Tally {
    window: Option<(Nanos, Nanos)>,
    clients: BTreeMap<WaitKey, u32>,
    background: BTreeMap<WaitKey, u32>,
    samples: u32,
    holders: BTreeMap<WaitKey, u32>,
    holder_samples: u32,
}

impl Tally {
    /// Counts one sample taken within a window.
    pub(super) fn add(&mut self, begin: Nanos, end: Nanos, sample: Sample) {
        self.extend(begin, end);
        self.samples += 1;
        for (key, count) in sample {
            let counts = if is_client(&key) { &mut self.clients } else { &mut self.background };
            *counts.entry(key).or_default() += count;
        }
    }

    /// Counts the roots of the lock chains of one sample; none when no session waited.
    pub(super) fn add_holders(&mut self, begin: Nanos, end: Nanos, holders: Vec<Holder>) {
        self.extend(begin, end);
        self.holder_samples += 1;
        for holder in holders {
            *self.holders.entry(holder.into_key()).or_default() += 1;
        }
    }

    fn extend(&mut self, begin: Nanos, end: Nanos) {
        let (first, last) = self.window.unwrap_or((begin, end));
        self.window = Some((first.min(begin), last.max(end)));
    }

    /// Hands over the counts and resets them; nothing when there was no sample.
    pub(super) fn take(&mut self) -> Option<Item> {
        let tally = std::mem::take(self);
        let (begin, end) = tally.window?;
        (tally.samples > 0).then(|| Item::Waits {
            begin,
            end,
            counts: tally.clients.into_iter().collect(),
            samples: tally.samples,
            holders: tally.holders.into_iter().collect(),
            holder_samples: tally.holder_samples,
            background: tally.background.into_iter().collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Sample, Tally};
    use crate::item::{Item, WaitKey};
    use crate::samplers::waits::chain::Holder;
    use proptest::prelude::{prop_assert_eq, proptest};
    use underlay_core::Nanos;

    fn key(class: &str, backend_type: &str) -> WaitKey {
        WaitKey {
            state: "active".to_string(),
            class: class.to_string(),
            event: String::new(),
            backend_type: backend_type.to_string(),
        }
    }

    #[test]
    fn clients_and_background_are_kept_apart() {
        let mut tally = Tally::default();
        let first: Sample = vec![
            (key("IO", "client backend"), 3),
            (key("IO", "parallel worker"), 1),
            (key("IO", "checkpointer"), 1),
        ];
        tally.add(Nanos(10), Nanos(20), first);
        tally.add(Nanos(30), Nanos(40), vec![(key("IO", "client backend"), 2)]);
        tally.add_holders(Nanos(35), Nanos(45), vec![Holder::Unknown, Holder::Unknown]);
        let Some(Item::Waits { begin, end, counts, samples, holders, holder_samples, background }) =
            tally.take()
        else {
            panic!("there are samples");
        };
        assert_eq!((begin, end, samples), (Nanos(10), Nanos(45), 2));
        assert_eq!(counts, [(key("IO", "client backend"), 5), (key("IO", "parallel worker"), 1)]);
        assert_eq!(background, [(key("IO", "checkpointer"), 1)]);
        assert_eq!((holders[0].1, holder_samples), (2, 1));
        assert_eq!(tally.take(), None, "it was reset");
    }

    proptest! {
        /// The closed-system identity: counts over samples is the mean number of sessions.
        #[test]
        fn no_session_is_lost(sizes in proptest::collection::vec(
            proptest::collection::vec(0u32..100, 1..5), 1..30)) {
            let mut tally = Tally::default();
            let mut sessions = 0;
            for sizes in &sizes {
                let sample = sizes.iter().enumerate().map(|(class, count)| {
                    (key(&class.to_string(), "client backend"), *count)
                });
                tally.add(Nanos(0), Nanos(1), sample.collect());
                sessions += sizes.iter().sum::<u32>();
            }
            let Some(Item::Waits { counts, samples, .. }) = tally.take() else {
                panic!("there are samples");
            };
            prop_assert_eq!(samples as usize, sizes.len());
            prop_assert_eq!(counts.iter().map(|(_, count)| count).sum::<u32>(), sessions);
        }
    }
}
