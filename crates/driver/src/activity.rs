//! When transactions were being completed at all, and the silences between: how an outage or a frozen
//! device shows even if no error is reported. Pure.
//!
//! Completions closer together than [`SILENCE`] form one span. Each thread keeps its own spans
//! ([`ActivityLog`]); the union over the threads ([`ActivityLine`]) leaves the silences that all
//! users shared, with their exact first and last instants.

use underlay_core::Nanos;

/// The shortest time without any completion that counts as a silence.
pub const SILENCE: Nanos = Nanos::from_millis(100);

/// A closed stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Its first instant.
    pub begin: Nanos,
    /// Its last instant.
    pub end: Nanos,
}

impl Span {
    /// How long it lasted.
    pub fn length(&self) -> Nanos {
        self.end.saturating_sub(self.begin)
    }

    /// Whether the two share an instant.
    pub fn overlaps(&self, other: &Span) -> bool {
        self.begin <= other.end && other.begin <= self.end
    }
}

/// The spans of one thread since they were last taken.
#[derive(Clone, Debug, Default)]
pub struct ActivityLog {
    spans: Vec<Span>,
}

impl ActivityLog {
    /// Notes a completion. Instants of one thread never go back.
    pub fn note(&mut self, at: Nanos) {
        match self.spans.last_mut() {
            Some(last) if at.saturating_sub(last.end) <= SILENCE => last.end = last.end.max(at),
            _ => self.spans.push(Span { begin: at, end: at }),
        }
    }

    /// The spans so far, in order.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }
}

/// The union of all threads' spans.
#[derive(Clone, Debug, Default)]
pub struct ActivityLine {
    /// Sorted, with more than [`SILENCE`] between any two.
    spans: Vec<Span>,
    /// Instants at which the load itself was taken away, sorted.
    rests: Vec<Nanos>,
}

impl ActivityLine {
    /// Adds the spans of a thread.
    pub fn add(&mut self, log: &ActivityLog) {
        for span in log.spans() {
            self.add_span(*span);
        }
    }

    /// Notes that at `at` there was no user to complete anything: silence around it means nothing.
    pub fn rest(&mut self, at: Nanos) {
        self.rests.push(at);
    }

    /// The silences so far, in order; what comes after the last completion is not one yet.
    pub fn silences(&self) -> impl Iterator<Item = Span> + '_ {
        self.spans.windows(2).map(|pair| Span { begin: pair[0].end, end: pair[1].begin }).filter(
            |silence| !self.rests.iter().any(|rest| silence.begin <= *rest && *rest <= silence.end),
        )
    }

    /// The longest silence that overlaps `within`, if any.
    pub fn longest_silence(&self, within: Span) -> Option<Span> {
        self.silences().filter(|silence| silence.overlaps(&within)).max_by_key(Span::length)
    }

    fn add_span(&mut self, mut span: Span) {
        // Spans arrive nearly in order, so the place is found from the end.
        let after =
            self.spans.iter().rposition(|other| other.begin <= span.begin).map_or(0, |at| at + 1);
        let near = |a: &Span, b: &Span| b.begin.saturating_sub(a.end) <= SILENCE;
        let first =
            if after > 0 && near(&self.spans[after - 1], &span) { after - 1 } else { after };
        let mut last = first;
        while last < self.spans.len() && (last < after || near(&span, &self.spans[last])) {
            span.begin = span.begin.min(self.spans[last].begin);
            span.end = span.end.max(self.spans[last].end);
            last += 1;
        }
        self.spans.splice(first..last, [span]);
    }
}

#[cfg(test)]
mod tests {
    use super::{ActivityLine, ActivityLog, SILENCE, Span};
    use proptest::prelude::{prop_assert_eq, proptest};
    use underlay_core::Nanos;

    const ALWAYS: Span = Span { begin: Nanos::ZERO, end: Nanos(u64::MAX) };

    fn log(completions_ms: &[u64]) -> ActivityLog {
        let mut log = ActivityLog::default();
        completions_ms.iter().for_each(|at| log.note(Nanos::from_millis(*at)));
        log
    }

    #[test]
    fn a_silence_is_what_all_threads_share() {
        let mut line = ActivityLine::default();
        line.add(&log(&[0, 50, 100, 900, 950]));
        line.add(&log(&[20, 600, 700]));
        let silence = Span { begin: Nanos::from_millis(100), end: Nanos::from_millis(600) };
        assert_eq!(line.longest_silence(ALWAYS), Some(silence));
        assert_eq!(line.silences().count(), 2);
    }

    #[test]
    fn a_rest_of_the_load_is_no_silence() {
        let mut line = ActivityLine::default();
        line.add(&log(&[0, 1000, 1500]));
        line.rest(Nanos::from_millis(10));
        let silence = Span { begin: Nanos::from_millis(1000), end: Nanos::from_millis(1500) };
        assert_eq!(line.silences().collect::<Vec<_>>(), [silence]);
    }

    proptest! {
        /// The union over threads and pieces equals the spans of all completions together.
        #[test]
        fn any_split_gives_the_same_silences(
            mut completions in proptest::collection::vec((0u64..20_000, 0usize..4), 0..200),
            pieces in 1usize..5,
        ) {
            completions.sort_unstable();
            let all: Vec<u64> = completions.iter().map(|(at, _)| *at).collect();
            let expected: Vec<Span> = all
                .windows(2)
                .map(|pair| Span { begin: Nanos::from_millis(pair[0]), end: Nanos::from_millis(pair[1]) })
                .filter(|gap| gap.length() > SILENCE)
                .collect();
            let mut line = ActivityLine::default();
            for piece in completions.chunks(completions.len() / pieces + 1) {
                for thread in 0..4 {
                    let mine: Vec<u64> =
                        piece.iter().filter(|(_, of)| *of == thread).map(|(at, _)| *at).collect();
                    line.add(&log(&mine));
                }
            }
            prop_assert_eq!(line.silences().collect::<Vec<_>>(), expected);
        }
    }
}
