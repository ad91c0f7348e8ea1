//! Requests that a cluster has completed and whose replies are held back, because a causal check slows
//! their class.
//!
//! Their bytes have already been moved; only the reply is late. Requests cannot be made faster in this
//! way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use underlay_core::Nanos;
use underlay_export::Answer;
use underlay_model::{Operation, ServiceFactor};

/// Requests held back, by the moment at which their clients are to see the answer.
pub(crate) struct Prolonged<C> {
    held: BinaryHeap<Reverse<Held<C>>>,
    sequence: u64,
}

struct Held<C> {
    done: Answer<C>,
    sequence: u64,
}

impl<C> Default for Prolonged<C> {
    fn default() -> Prolonged<C> {
        Prolonged { held: BinaryHeap::new(), sequence: 0 }
    }
}

impl<C> Prolonged<C> {
    /// Takes a request that is done and is to have taken `factor` times as long.
    pub(crate) fn hold(&mut self, mut done: Answer<C>, factor: ServiceFactor) {
        debug_assert!(factor >= ServiceFactor::ONE, "what is done cannot become faster");
        let took = done.deadline().saturating_sub(done.arrived);
        let longer = took.0 as f64 * (factor.value() - 1.0);
        if let Some(modelled) = &mut done.modelled {
            modelled.deadline += Nanos(longer as u64);
        }
        debug_assert!(
            done.deadline() >= done.arrived,
            "an answer does not leave before its request"
        );
        self.sequence += 1;
        self.held.push(Reverse(Held { done, sequence: self.sequence }));
    }

    /// Hands over what is due until the moment that `until` gives for it, in the order of these moments.
    pub(crate) fn release(
        &mut self,
        until: impl Fn(&Answer<C>) -> Nanos,
        mut take: impl FnMut(Answer<C>),
    ) {
        while let Some(Reverse(first)) = self.held.peek() {
            if first.done.deadline() > until(&first.done) {
                return;
            }
            if let Some(Reverse(held)) = self.held.pop() {
                take(held.done);
            }
        }
    }

    /// When the next one is to leave, `early` of its operation before its time.
    pub(crate) fn next(&self, early: impl Fn(Operation) -> Nanos) -> Option<Nanos> {
        let Reverse(first) = self.held.peek()?;
        Some(first.done.deadline().saturating_sub(early(first.done.operation)))
    }

    /// Gives all of them up.
    pub(crate) fn abandon(&mut self) -> impl Iterator<Item = Answer<C>> + use<C> {
        std::mem::take(&mut self.held).into_iter().map(|Reverse(held)| held.done)
    }
}

impl<C> PartialEq for Held<C> {
    fn eq(&self, other: &Held<C>) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<C> Eq for Held<C> {}

impl<C> PartialOrd for Held<C> {
    fn partial_cmp(&self, other: &Held<C>) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<C> Ord for Held<C> {
    fn cmp(&self, other: &Held<C>) -> std::cmp::Ordering {
        (self.done.deadline(), self.sequence).cmp(&(other.done.deadline(), other.sequence))
    }
}

#[cfg(test)]
mod tests {
    use super::Prolonged;
    use underlay_core::Nanos;
    use underlay_export::{Answer, Modelled};
    use underlay_model::{Operation, ServiceFactor};

    fn done(client: u32, at: u64) -> Answer<u32> {
        let (deadline, queue) = (Nanos(at), Nanos::ZERO);
        Answer {
            client: Some(client),
            volume: 0,
            operation: Operation::Write,
            bytes: 4096,
            arrived: Nanos(1_000),
            modelled: Some(Modelled { deadline, queue, delayed: false }),
            early: Nanos::ZERO,
            failed: false,
            buffer: Vec::new(),
            wanted: 0..4096,
        }
    }

    fn released(prolonged: &mut Prolonged<u32>, until: u64) -> Vec<(u32, u64)> {
        let mut found = Vec::new();
        prolonged.release(
            |_| Nanos(until),
            |done| found.push((done.client.unwrap(), done.deadline().0)),
        );
        found
    }

    #[test]
    fn answers_wait_for_their_share_of_the_time_and_leave_in_order() {
        let mut prolonged = Prolonged::default();
        prolonged.hold(done(1, 2_000), ServiceFactor::new(2.0).unwrap());
        prolonged.hold(done(2, 2_500), ServiceFactor::ONE);
        prolonged.hold(done(3, 2_600), ServiceFactor::ONE);
        assert_eq!(prolonged.next(|_| Nanos(100)), Some(Nanos(2_400)));
        assert_eq!(released(&mut prolonged, 2_599), [(2, 2_500)]);
        assert_eq!(released(&mut prolonged, 3_000), [(3, 2_600), (1, 3_000)]);
        assert_eq!(prolonged.next(|_| Nanos::ZERO), None);
    }

    #[test]
    fn what_is_given_up_is_handed_back() {
        let mut prolonged = Prolonged::default();
        prolonged.hold(done(7, 2_000), ServiceFactor::new(3.0).unwrap());
        assert_eq!(prolonged.abandon().count(), 1);
        assert_eq!(prolonged.next(|_| Nanos::ZERO), None);
    }
}
