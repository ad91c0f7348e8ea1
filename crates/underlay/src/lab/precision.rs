//! `repeats = "until 5 %"`: looks at the intervals after each repeat, and says when they are narrow enough.
//!
//! What is looked at is the width of the interval, never whether it includes 1: a study does not end because it has found a
//! difference. The statistics of this are the report's.

use std::path::Path;

use serde_json::json;
use underlay_record::conventions::finding;
use underlay_record::{Finding, Record, Severity};
use underlay_report::is_precise;
use underlay_study::{FEWEST_REPEATS_UNTIL, Plan};

use crate::lab::abort::{Abort, During};
use crate::lab::event::{Event, Observer};
use crate::lab::shared_recorder::SharedRecorder;

/// What is carried out, and its record.
pub(super) type Study<'a> = (&'a Plan, &'a SharedRecorder);

/// Whether `repeats` complete repeats are enough.
pub(super) fn is_reached(
    (plan, recorder): Study<'_>,
    record: &Path,
    repeats: u32,
) -> Result<bool, Abort> {
    let Some(precision) = plan.procedure.repeats_until else { return Ok(false) };
    if repeats < FEWEST_REPEATS_UNTIL {
        return Ok(false);
    }
    recorder.lock().commit().during("write the record")?;
    let record = Record::open_read_only(record).during("read the record")?;
    is_precise(&record, precision.share()).during("read the record")
}

/// The study ends here.
pub(super) fn report_reached(
    study: Study<'_>,
    repeats: u32,
    observer: &mut dyn Observer,
) -> Result<(), Abort> {
    let Some(precision) = study.0.procedure.repeats_until else { return Ok(()) };
    let text = format!("the main ratio is known within {precision} after {repeats} repeats");
    report(study, (Severity::Information, finding::PRECISION_REACHED, &text), observer)
}

/// The study has reached its limit: says so if the interval is too wide all the same.
pub(super) fn report_missed(
    study: Study<'_>,
    record: &Path,
    observer: &mut dyn Observer,
) -> Result<(), Abort> {
    let Some(precision) = study.0.procedure.repeats_until else { return Ok(()) };
    let most = study.0.procedure.repeats;
    if is_reached(study, record, most)? {
        return report_reached(study, most, observer);
    }
    let text = format!(
        "the main ratio is not known within {precision} after {most} repeats, the limit of \
         `repeats-at-most`; longer windows or a quieter host make intervals narrower, too"
    );
    report(study, (Severity::Warning, finding::PRECISION_MISSED, &text), observer)
}

fn report(
    (_, recorder): Study<'_>,
    (severity, code, text): (Severity, &str, &str),
    observer: &mut dyn Observer,
) -> Result<(), Abort> {
    observer.notice(&Event::Found { severity, text });
    let finding = Finding {
        run: None,
        severity,
        code: code.to_string(),
        text: text.to_string(),
        data: json!({}),
    };
    recorder.lock().finding(&finding).during("write the record")
}
