//! Timelines of background work, whatever it is called.
//!
//! Bytes read and bytes written are lines of their own: a copy moves each of its bytes twice, and its limit is about one of them.

use underlay_core::Nanos;
use underlay_record::conventions::{event, source};

use super::drawing::Drawing;
use crate::observed::ObservedRun;

const LAYER: &str = "driver";
const CHART: &str = "background";

/// Draws all of it.
pub(super) fn draw(run: &ObservedRun, drawing: &mut Drawing) {
    let Some(ticks) = run.sources.get(source::BACKGROUND) else { return };
    let names: Vec<&str> =
        ticks.names().filter_map(|series| series.strip_suffix(".reads")).collect();
    for name in names {
        let delay = Delay::of(run, name);
        for (what, unit, words) in [
            ("read_bytes", "bytes/s", "bytes read"),
            ("write_bytes", "bytes/s", "bytes written"),
            ("bytes", "bytes/s", "bytes read and written"),
            ("reads", "1/s", "reads"),
            ("writes", "1/s", "writes"),
        ] {
            let Some(series) = run.series(source::BACKGROUND, &format!("{name}.{what}")) else {
                continue;
            };
            let (key, title) = (format!("background.{name}.{what}"), format!("{name}: {words}"));
            let label = (&*key, &*title, LAYER, unit, CHART);
            match &delay {
                None => drawing.rate(label, Some(series), 1.0),
                Some(delay) => {
                    let steps = series.steps().map(|(from, to, by)| {
                        (delay.counted_up_to(from), delay.counted_up_to(to), by)
                    });
                    let points: Vec<(f64, f64)> = steps
                        // The rest of the second in which it began is of another reading.
                        .filter(|(from, to, by)| {
                            to > from && (*by > 0.0 || to - from > TICK_S / 2.0)
                        })
                        .map(|(from, to, by)| ((from + to) / 2.0, by / (to - from)))
                        .collect();
                    drawing.points(label, &points);
                }
            }
        }
    }
}

/// The sampling interval of a run with background work, seconds.
const TICK_S: f64 = 1.0;

/// A block load of an older record: it was counted when a second of its own was over, and the rest when it ended.
struct Delay {
    began_s: f64,
    ended_s: f64,
}

impl Delay {
    /// None where the work was counted as it was done.
    fn of(run: &ObservedRun, name: &str) -> Option<Delay> {
        run.series(source::BACKGROUND, &format!("{name}.bytes"))?;
        let happened = |kind: &str| {
            run.events.iter().find(move |event| event.kind == kind && event.data["name"] == name)
        };
        // Copies were counted request by request, then as now. Only the text tells which it was.
        let begin = happened(event::BACKGROUND)
            .filter(|begin| begin.text.contains("began: the block load"))?;
        let seconds = |at: Nanos| at.as_secs_f64();
        Some(Delay {
            began_s: seconds(begin.at),
            ended_s: happened(event::BACKGROUND_END).map_or(f64::INFINITY, |end| seconds(end.at)),
        })
    }

    /// Up to when a reading at a time had counted, seconds on the run's clock.
    fn counted_up_to(&self, read_s: f64) -> f64 {
        if read_s >= self.ended_s {
            // The first reading afterwards counts the rest.
            let is_first = read_s - TICK_S < self.ended_s;
            return if is_first { self.ended_s } else { read_s };
        }
        if read_s <= self.began_s {
            return read_s;
        }
        self.began_s + (read_s - self.began_s).floor()
    }
}
