//! Adds up session samples between two ticks. Pure.

use super::chain::ChainRoot;
use super::root::Roots;
use super::sample::{Sample, Sampled, is_client, with_doing};
use crate::item::{Item, WaitKey};
use std::collections::BTreeMap;
use underlay_core::Nanos;

/// Counts since the last tick.
#[derive(Debug, Default)]
pub(super) struct Tally {
    window: Option<(Nanos, Nanos)>,
    clients: BTreeMap<WaitKey, u32>,
    background: BTreeMap<WaitKey, u32>,
    samples: u32,
    holders: BTreeMap<WaitKey, u32>,
    holder_samples: u32,
    log_holders: BTreeMap<WaitKey, u32>,
    page_holders: BTreeMap<WaitKey, u32>,
}

impl Tally {
    /// Counts one sample taken within a window.
    pub(super) fn add(&mut self, begin: Nanos, end: Nanos, sample: Sample) {
        self.extend(begin, end);
        self.samples += 1;
        for Sampled { key, doing, .. } in sample {
            let counts = if is_client(&key) { &mut self.clients } else { &mut self.background };
            *counts.entry(with_doing(key, doing)).or_default() += 1;
        }
    }

    /// Counts the roots of the other waits of the sample that was added last.
    pub(super) fn add_roots(&mut self, roots: Roots) {
        for (counts, roots) in
            [(&mut self.log_holders, roots.log), (&mut self.page_holders, roots.pages)]
        {
            for key in roots {
                *counts.entry(key).or_default() += 1;
            }
        }
    }

    /// Counts the roots of the lock chains of one sample; none when no session waited.
    pub(super) fn add_holders(&mut self, begin: Nanos, end: Nanos, holders: Vec<ChainRoot>) {
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
            log_holders: tally.log_holders.into_iter().collect(),
            page_holders: tally.page_holders.into_iter().collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Sample, Sampled, Tally};
    use crate::item::{Item, WaitKey};
    use crate::samplers::waits::chain::ChainRoot;
    use crate::samplers::waits::root::Roots;
    use crate::samplers::waits::threads::Doing;
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

    fn sessions(key: &WaitKey, count: usize) -> Sample {
        vec![Sampled::new(0, key.clone(), None); count]
    }

    #[test]
    fn what_a_thread_does_is_part_of_the_state() {
        let mut tally = Tally::default();
        let of = |doing| Sampled::new(7, key("IO", "client backend"), doing);
        tally.add(
            Nanos(0),
            Nanos(1),
            vec![of(Some(Doing::Awake)), of(Some(Doing::InIo)), of(None)],
        );
        tally.add_roots(Roots { log: vec![key("IO", "walwriter"); 2], pages: Vec::new() });
        let Some(Item::Waits { counts, log_holders, page_holders, .. }) = tally.take() else {
            panic!("there are samples");
        };
        let states: Vec<&str> = counts.iter().map(|(key, _)| key.state.as_str()).collect();
        assert_eq!(states, ["active", "active/D", "active/R"]);
        assert_eq!(log_holders, [(key("IO", "walwriter"), 2)]);
        assert_eq!(page_holders, []);
    }

    #[test]
    fn clients_and_background_are_kept_apart() {
        let mut tally = Tally::default();
        let first = [
            sessions(&key("IO", "client backend"), 3),
            sessions(&key("IO", "parallel worker"), 1),
            sessions(&key("IO", "checkpointer"), 1),
        ];
        tally.add(Nanos(10), Nanos(20), first.concat());
        tally.add(Nanos(30), Nanos(40), sessions(&key("IO", "client backend"), 2));
        tally.add_holders(Nanos(35), Nanos(45), vec![ChainRoot::Unknown, ChainRoot::Unknown]);
        let Some(Item::Waits {
            begin,
            end,
            counts,
            samples,
            holders,
            holder_samples,
            background,
            ..
        }) = tally.take()
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
            let mut expected = 0;
            for sizes in &sizes {
                let sample = sizes.iter().enumerate().flat_map(|(class, count)| {
                    sessions(&key(&class.to_string(), "client backend"), *count as usize)
                });
                tally.add(Nanos(0), Nanos(1), sample.collect());
                expected += sizes.iter().sum::<u32>();
            }
            let Some(Item::Waits { counts, samples, .. }) = tally.take() else {
                panic!("there are samples");
            };
            prop_assert_eq!(samples as usize, sizes.len());
            prop_assert_eq!(counts.iter().map(|(_, count)| count).sum::<u32>(), expected);
        }
    }
}
