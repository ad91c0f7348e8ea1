//! The thread that sends answers on time.
//!
//! It sleeps on the timer, which whoever submits an earlier request sets forward, takes what is due, sends
//! it, and counts it the next time it holds the lock anyway.

use std::io;

use super::export::{Answers, Export};

/// Sends answers for ever.
pub(crate) fn run(export: &Export) -> io::Result<()> {
    let mut answers = Answers::default();
    let mut has_slept = false;
    loop {
        {
            let mut engine = export.engine();
            let now = export.clock.now();
            if let Some(alarm) = engine.alarm.filter(|_| has_slept) {
                engine.path.observe_wake(now.saturating_sub(alarm));
            }
            let way = engine.path.way();
            for answered in answers.answered.drain(..) {
                engine.statistics.record(&answered, way);
            }
            engine.take_due(now, &mut answers.due);
            if answers.due.is_empty() {
                // Set under the lock, or a request submitted in between would meet a stale alarm.
                engine.alarm = engine.next_answer();
                if let Some(next) = engine.alarm {
                    export.timer.set(next)?;
                }
            }
        }
        has_slept = answers.due.is_empty();
        if has_slept {
            export.timer.wait()?;
        } else {
            export.answer(&mut answers);
        }
    }
}
