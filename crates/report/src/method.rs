//! How the numbers are made: metrics in the words of a workload, definitions, disclaimer.

use crate::analysis::{Method, Metric};
use crate::metrics::{backup_metrics, metrics};
use crate::wording::sentence_case;
use crate::workload_view::{HeadlineKind, WorkloadView};

/// The method of a report about this workload.
pub(crate) fn method(workload: &WorkloadView) -> Method {
    let is_tpcc = workload.name == "tpcc";
    let rate = workload.rate_words();
    let done = if workload.is_block_load() { "completed" } else { "committed" };
    let headline = match is_tpcc {
        true => "committed new-order transactions per minute; those rolled back on purpose (1 %) do not count"
            .to_string(),
        false => match &workload.headline {
            HeadlineKind::Job { definition } => definition.clone(),
            HeadlineKind::Counted | HeadlineKind::Searched { .. } => format!("{done} {rate}"),
        },
    };
    let named = |metric: Metric| match metric.name.as_str() {
        "headline" => Metric {
            title: sentence_case(&rate),
            unit: workload.rate_unit().to_string(),
            definition: match &workload.headline {
                HeadlineKind::Counted => {
                    format!(
                        "{done} {} of the window, per {}",
                        workload.counted,
                        workload.period_word()
                    )
                }
                HeadlineKind::Searched { condition } => format!(
                    "the highest rate of {} that a search found, per {}, {condition}",
                    workload.counted,
                    workload.period_word()
                ),
                HeadlineKind::Job { definition } => definition.clone(),
            },
            ..metric
        },
        "headline_p95_ns" => Metric {
            title: format!("p95 of {}", workload.counted),
            definition: format!("95th percentile of the response time of the {}", workload.counted),
            ..metric
        },
        _ => metric,
    };
    let definitions =
        DEFINITIONS.iter().map(|(term, meaning)| (term.to_string(), meaning.to_string()));
    Method {
        metrics: metrics()
            .chain(backup_metrics().filter(|_| workload.is_backup()))
            .map(named)
            .collect(),
        definitions: std::iter::once((workload.unit.clone(), headline))
            .chain(definitions)
            .collect(),
        disclaimer: match is_tpcc {
            true => DISCLAIMER.to_string(),
            false if workload.notice.is_empty() => String::new(),
            false => sentence_case(&format!("{}.", workload.notice.trim_end_matches('.'))),
        },
        deviations: match is_tpcc {
            true => DEVIATIONS
                .iter()
                .map(|text| text.to_string())
                .chain(workload.deviations.iter().map(|text| format!("{}.", sentence_case(text))))
                .collect(),
            false => Vec::new(),
        },
    }
}

const DISCLAIMER: &str = "The workload is derived from the TPC-C benchmark. It is not TPC-C: it has not been \
    audited, it deviates from the standard as listed, and its numbers must not be compared with published TPC \
    results. New orders per minute (NOPM) are not tpmC.";

const DEVIATIONS: [&str; 8] = [
    "Terminals are virtual users in one program; there is no remote terminal emulator.",
    "Keying and think times are omitted or shortened unless the study sets their multiplier to 1. Far fewer users \
     load the system than the standard requires per warehouse.",
    "The measured window lasts minutes, not two hours, and need not contain the checkpoints the standard requires.",
    "Deliveries are executed when they are issued, not queued for deferred execution.",
    "Space for 60 days of growth is not configured, and no price is reported.",
    "Durability is not proven by cutting the power of the measured system during the run; power cuts of emulated \
     devices are tested separately.",
    "A transaction may take one round trip, through a server-side function; the study can ask for single statements \
     instead.",
    "Response times are measured at the load generator from the intended start; they exclude the display time of a \
     terminal.",
];

const DEFINITIONS: [(&str, &str); 12] = [
    (
        "TPM",
        "transactions per minute as counted by the engine. PostgreSQL: commits and rollbacks of the database, \
         except those of Underlay's samplers. MariaDB: COMMIT and ROLLBACK statements; for a load of autocommit \
         statements only, Handler_commit, provided that no session issues BEGIN, COMMIT or ROLLBACK and the binary \
         log is off. Engines count differently: do not compare TPM between engines. Unknown if connections were \
         lost in the window, because a restarted server counts from 0",
    ),
    (
        "response time",
        "from the intended start of a transaction to its end; in an open loop this \
         includes waiting for a free user",
    ),
    ("service time", "from the actual start of the last attempt to its end"),
    (
        "run",
        "one design in one repeat: restored, started, warmed up, measured at each number of users, \
         stopped, checked. Runs are the unit of repetition: only intervals over runs cover run-to-run variation",
    ),
    (
        "interval",
        "95 % confidence interval: over runs by Student's t; within a single run by ten batch means, which does \
         not cover run-to-run variation; for percentiles by a bootstrap over blocks of 10 s",
    ),
    (
        "ratio",
        "of paired runs (same repeat): geometric mean, with Student's t on the logarithms, no narrower than the \
         variation within the runs allows; p values are corrected for all comparisons of the study, of which throughput \
         at the highest common rung is the main one",
    ),
    ("no difference shown", "the interval of the ratio includes 1; this does not prove equality"),
    ("the same within 5 %", "both one-sided tests reject a difference beyond 5 %"),
    (
        "time budget",
        "mean number of sessions in each state, from session samples, with CPU and run-queue time from \
         the scheduler; the sum must match the number of users within 10 %",
    ),
    (
        "bottleneck",
        "found by fixed rules over the time budget; if a gate fails, there is no verdict",
    ),
    (
        "latency-bound, capacity-bound",
        "latency-bound: throughput grows with the number of users (exponent of at least 0.7 from the previous rung), \
         so a faster resource or more users help. Capacity-bound: it does not (at most 0.3), so only more of the \
         resource, or less work, helps",
    ),
    (
        "steady",
        "no step, no trend of 2 % or more and no long warm-up inside the window, as far as its \
         length allows a judgement",
    ),
];
