//! `underlay compare`: two records side by side, with all other differences between them; with `--fail-if-worse` a
//! regression gate.

use crate::cli::answer;
use crate::cli::studies::Form;
use crate::cli::terminal;
use crate::stop::{Stop, chain};
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use underlay_report::{
    Colour, CompareError, CompareOptions, Gate, GateOutcome, IdentityPolicy, RecordComparison,
    compare, comparison_summary, gate,
};

/// Arguments of `underlay compare`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The first record: the baseline.
    a: PathBuf,
    /// The second record.
    b: PathBuf,
    /// One design of each record; by default, all designs with the same name in both.
    #[arg(long, value_name = "A,B", value_parser = design_pair)]
    designs: Option<(String, String)>,
    /// Compare even when the workloads differ (other schema, procedures, size, seed).
    #[arg(long)]
    allow_different_workloads: bool,
    /// Regression gate on throughput at the highest common number of users: exit 9 if the second record is worse by more
    /// than this, 10 if the records do not allow an answer.
    #[arg(long, value_name = "PERCENT", value_parser = allowed_loss)]
    fail_if_worse: Option<f64>,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    let (a, b) = (answer::open(&arguments.a)?, answer::open(&arguments.b)?);
    let identity = if arguments.allow_different_workloads {
        IdentityPolicy::AllowDifferent
    } else {
        IdentityPolicy::RequireEqual
    };
    let comparison =
        compare(&a, &b, &CompareOptions { identity, designs: arguments.designs.clone() })
            .map_err(|error| refused(&error))?;
    let gate = arguments.fail_if_worse.map(|allowed| gate(&comparison, allowed));
    match if arguments.json { Form::Json } else { Form::Text } {
        Form::Json => {
            let json = serde_json::to_string_pretty(&Printed {
                comparison: &comparison,
                gate: gate.as_ref(),
            })
            .map_err(|error| Stop::internal(&error))?;
            outln!("{json}");
        }
        Form::Text => {
            let colour = if terminal::colours_on_stdout() { Colour::Always } else { Colour::Never };
            out!("{}", comparison_summary(&comparison, terminal::width(), colour));
        }
    }
    gate.map_or(Ok(()), |gate| concluded(&gate))
}

/// The comparison, with what the gate says if there is one.
#[derive(Serialize)]
struct Printed<'a> {
    #[serde(flatten)]
    comparison: &'a RecordComparison,
    #[serde(skip_serializing_if = "Option::is_none")]
    gate: Option<&'a Gate>,
}

/// The gate's exit code, with its reasons.
fn concluded(gate: &Gate) -> Result<(), Stop> {
    let reasons = gate.reasons.join("; ");
    match gate.outcome {
        GateOutcome::Passed => {
            errln!("{reasons}");
            Ok(())
        }
        GateOutcome::Worse => Err(Stop::worse(reasons)),
        GateOutcome::Undecided => {
            let stop = Stop::undecided(reasons);
            Err(match gate.repeats_may_decide {
                true => stop.with_hint("use more repeats, or allow a larger loss"),
                false => stop,
            })
        }
    }
}

/// A share of throughput: `5%`.
fn allowed_loss(text: &str) -> Result<f64, String> {
    let percent = text.trim().strip_suffix('%').and_then(|number| number.trim().parse().ok());
    match percent {
        Some(percent) if (0.0..100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("write a percentage from 0% to below 100%, such as `5%`".to_string()),
    }
}

/// Why the records are not compared, and what would.
fn refused(error: &CompareError) -> Stop {
    if let CompareError::Read(error) = error {
        return Stop::bad_input(format!("could not read a record: {}", chain(error)));
    }
    let stop = Stop::not_comparable(chain(error));
    match error {
        CompareError::DifferentWorkload { is_same_measure: true, .. } => {
            stop.with_hint("to compare them anyway, add --allow-different-workloads")
        }
        CompareError::DifferentWorkload { is_same_measure: false, .. } => stop.with_hint(
            "their headline metrics count different things, so a ratio would have no meaning",
        ),
        _ => stop,
    }
}

/// One design of each record, separated by a comma.
fn design_pair(text: &str) -> Result<(String, String), String> {
    match text.split(',').collect::<Vec<_>>()[..] {
        [a, b] if !a.is_empty() && !b.is_empty() => Ok((a.to_string(), b.to_string())),
        _ => Err("give one design of each record, separated by a comma: `nvme,sata`".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::allowed_loss;

    #[test]
    fn a_loss_is_a_percentage() {
        assert_eq!(allowed_loss("5%"), Ok(0.05));
        assert_eq!(allowed_loss(" 2.5 % "), Ok(0.025));
        assert_eq!(allowed_loss("0%"), Ok(0.0));
        for wrong in ["5", "-1%", "100%", "x%", "NaN%", ""] {
            assert!(allowed_loss(wrong).is_err(), "{wrong}");
        }
    }
}
