//! The thread that sends answers on time.
//!
//! It sleeps on the timer, which whoever submits an earlier request sets forward, takes what is due, sends
//! it, and counts it the next time it holds the lock anyway.

use std::io;

use super::export::{Answers, Export};

/// Sends answers for ever.
pub(crate) fn run(export: &Export) -> io::Result<()> {
    let mut answers = Answers::default();
    loop {
        let sleeps = {
            let mut engine = export.engine();
            let floor = engine.floor;
            for answered in answers.answered.drain(..) {
                engine.statistics.record(&answered, floor);
            }
            engine.take_due(export.clock.now(), &mut answers.due);
            if answers.due.is_empty() {
                // Set under the lock, or a request submitted in between would meet a stale alarm.
                engine.alarm = engine.next_answer();
                if let Some(next) = engine.alarm {
                    export.timer.set(next)?;
                }
            }
            answers.due.is_empty()
        };
        if sleeps {
            export.timer.wait()?;
        } else {
            export.answer(&mut answers);
        }
    }
}
