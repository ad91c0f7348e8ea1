//! The time dilation of an execution: decided once, before its first run, and the same for all designs.

use serde_json::{Value, json};
use std::path::Path;
use underlay_core::Dilation;
use underlay_host::StateDir;
use underlay_record::conventions::{document, finding};
use underlay_record::{Finding, Recorder, Severity};
use underlay_study::{Plan, TimeDilation};

use crate::lab::abort::Abort;
use crate::lab::pilot::{self, Seen};
use crate::stop::{Stop, chain};

/// The factor of all runs, written to the record where it is not real time. A resumed execution keeps its factor.
pub fn decide(
    plan: &Plan,
    (state, server_program): (&StateDir, &Path),
    recorder: &mut Recorder,
) -> Result<Dilation, Stop> {
    let unread = |error: &(dyn std::error::Error + 'static)| Stop::host(chain(error));
    let known = recorder.document(None, document::TIME_DILATION).map_err(|error| unread(&error))?;
    if let Some(dilation) = known.as_ref().and_then(factor) {
        return Ok(dilation);
    }
    let asked = plan.procedure.time_dilation;
    let (dilation, seen) = match asked {
        TimeDilation::Factor(dilation) => (dilation, Vec::new()),
        TimeDilation::Auto => {
            let seen = pilot::look(plan, state, server_program).map_err(|abort| match abort {
                Abort::Interrupted => Stop::interrupted("stopped in the pilot".to_string()),
                Abort::Failed(reason) => Stop::host(format!("the pilot failed: {reason}")),
            })?;
            (pilot::factor(&seen), seen)
        }
    };
    if asked != TimeDilation::NONE {
        let content = json!({
            "factor": dilation.factor(),
            "asked": asked.to_string(),
            "pilot": seen.iter().map(Seen::to_json).collect::<Vec<_>>(),
        });
        recorder
            .write_document(None, document::TIME_DILATION, &content)
            .map_err(|error| unread(&error))?;
    }
    if dilation.is_dilated() {
        let is_block_load = plan.workload.kind.block().is_some();
        recorder.finding(&notice(is_block_load, dilation)).map_err(|error| unread(&error))?;
    }
    if let Some(shortfall) = pilot::shortfall(&seen) {
        recorder.finding(&shortfall).map_err(|error| unread(&error))?;
    }
    Ok(dilation)
}

/// What every reader of the results must know.
fn notice(is_block_load: bool, dilation: Dilation) -> Finding {
    let factor = dilation.factor();
    let processors = match is_block_load {
        true => "; the load generator ran at full processor speed".to_string(),
        // Decisions 0108 and 0114 have the measurements.
        false => format!(
            "; a session had 1/{factor} of a processor's speed; the load generator and the server's background \
             processes ran at full speed. Throughput limited by storage is within 10 % of that in \
             real time, and limited by processors within about 20 %; limited by locks it was not measured"
        ),
    };
    Finding {
        run: None,
        severity: Severity::Information,
        code: finding::TIME_DILATION.to_string(),
        text: format!(
            "time dilation {factor}: everything took {factor} times as long, and all results are in design \
             time{processors}"
        ),
        data: json!({ "factor": factor }),
    }
}

fn factor(content: &Value) -> Option<Dilation> {
    Dilation::new(u32::try_from(content["factor"].as_u64()?).ok()?)
}

#[cfg(test)]
mod tests {
    use super::notice;
    use underlay_core::Dilation;

    #[test]
    fn the_notice_of_a_database_says_how_far_off_its_results_may_be() {
        let dilation = Dilation::new(4).expect("in range");
        let text = notice(false, dilation).text;
        for part in [
            "time dilation 4: everything took 4 times as long",
            "1/4 of a processor's speed",
            "limited by storage is within 10 %",
            "limited by processors within about 20 %; limited by locks it was not measured",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains("  "), "{text}");
        // A block load has neither sessions nor locks.
        let text = notice(true, dilation).text;
        assert!(text.ends_with("the load generator ran at full processor speed"), "{text}");
    }
}
