//! The conditions that must hold before a verdict is given.
//!
//! A failed gate means that the numbers contradict each other or that other work disturbed the run: then there
//! is no verdict. A soft one allows a verdict with low confidence. What cannot be measured is
//! reported as not judged, and never counts as passed.

use super::situation::Situation;
use super::steady::SHORTEST_S;
use crate::analysis::{Gate, GateState, SteadyState};
use crate::observed::SharedDevice;
use crate::plan_view::Pacing;
use crate::volume_names::is_log_volume;
use crate::wording::{amount, count, list, percent};

/// Bytes written to the log's volume per byte logged, at least and at most. The band is wide upwards because a commit
/// writes whole pages: of 8 KiB where 140 bytes may be new.
const WRITTEN_PER_LOGGED: (f64, f64) = (0.9, 60.0);
/// What is doubtful, but no contradiction yet: a write that waits in a cache at the window's end; commits of less
/// than 140 bytes, whose pages are written twice, or whose file's metadata is written with them.
const WRITTEN_PER_LOGGED_SOFT: (f64, f64) = (0.5, 300.0);
/// With less than both, in bytes per second, the ratio is that of the server's own chores.
const LOGGED_LEAST: f64 = 10_000.0;
const WRITTEN_LEAST: f64 = 1_000_000.0;

/// Session samples for full and for any confidence. (Each looks at all sessions.)
const SAMPLES: (u64, u64) = (500, 100);

/// Judges all gates, G1 to G8.
pub(crate) fn judge(situation: &Situation) -> Vec<Gate> {
    vec![
        little(situation),
        closure(situation),
        commits(situation),
        samples(situation),
        interference(situation),
        steadiness(situation),
        bytes(situation),
        errors(situation),
    ]
}

fn gate(id: &str, title: &str, state: GateState, text: String) -> Gate {
    Gate { id: id.to_string(), title: title.to_string(), state, text }
}

fn not_judged(id: &str, title: &str, why: &str) -> Gate {
    gate(id, title, GateState::NotJudged, why.to_string())
}

/// Passed up to `pass`, soft up to `soft`, failed beyond.
fn graded(value: f64, pass: f64, soft: f64) -> GateState {
    match value {
        v if v <= pass => GateState::Passed,
        v if v <= soft => GateState::Soft,
        _ => GateState::Failed,
    }
}

fn little(situation: &Situation) -> Gate {
    const TITLE: &str = "users = throughput x (response + think time)";
    if situation.pacing == Pacing::Open {
        return not_judged("G1", TITLE, "an open loop has no fixed number of busy users");
    }
    let (Some(response), Some(think)) = (situation.response_s, situation.think_s) else {
        return not_judged("G1", TITLE, "response or think times are missing");
    };
    let found = situation.completed_per_second * (response + think);
    let off = (found - situation.users).abs() / situation.users;
    let text = format!(
        "{} users by Little's law, {} configured: {} apart (limit 3 %)",
        amount(found),
        amount(situation.users),
        percent(off)
    );
    gate("G1", TITLE, graded(off, 0.03, 0.1), text)
}

fn closure(situation: &Situation) -> Gate {
    const TITLE: &str = "the time budget adds up to the number of users";
    let (expected, of) = match situation.sessions < situation.users {
        true => (situation.sessions, "shared connections"),
        false => (situation.users, "users"),
    };
    let Some(budget) = &situation.budget else {
        return not_judged("G2", TITLE, "the database's sessions were not sampled");
    };
    let off = (budget.total() - expected).abs() / expected;
    let text = format!(
        "{} sessions sampled, {} {of}: {} apart (limit 10 %)",
        amount(budget.total()),
        amount(expected),
        percent(off)
    );
    let state = match situation.pacing {
        // Users of an open loop may share sessions.
        Pacing::Open => graded(off, 0.1, f64::INFINITY),
        _ => graded(off, 0.1, 0.1),
    };
    gate("G2", TITLE, state, text)
}

fn commits(situation: &Situation) -> Gate {
    const TITLE: &str = "the database counts the same transactions as the client";
    let (Some(database), Some(client)) =
        (situation.database_per_second, situation.alongside_per_second)
    else {
        let reason =
            "the database has no counter for this load, or the counter was reset during the run";
        return not_judged("G3", TITLE, reason);
    };
    let off = (database - client).abs() / client.max(f64::MIN_POSITIVE);
    // Sessions hand in their counts up to a second late, which matters in short windows: the more, the more
    // of the load comes in single seconds.
    let lag = 0.5 * situation.burst / situation.window_s.max(1.0);
    let limit = 0.02_f64.max(lag);
    let text = format!(
        "{}/s by the database, {}/s by the client: {} apart (limit {}{})",
        amount(database),
        amount(client),
        percent(off),
        percent(limit),
        if lag > 0.02 { ", as the window is short" } else { "" }
    );
    gate("G3", TITLE, graded(off, limit, 0.05_f64.max(2.0 * lag)), text)
}

fn samples(situation: &Situation) -> Gate {
    const TITLE: &str = "the samplers ran throughout";
    if situation.budget.is_none() {
        return not_judged("G4", TITLE, "the database's sessions were not sampled");
    }
    let (gap, gap_state) = gap(situation);
    let (enough, least) = SAMPLES;
    let sample_state = match situation.wait_samples {
        n if n >= enough => GateState::Passed,
        n if n >= least => GateState::Soft,
        _ => GateState::Failed,
    };
    let text = too_short(situation).unwrap_or_else(|| {
        format!(
            "{} session samples ({enough} required), longest gap between ticks {gap:.1} s (limit 2.5 s)",
            situation.wait_samples
        )
    });
    gate("G4", TITLE, worse(gap_state, sample_state), text)
}

/// The longest time without a tick, seconds, and what it means.
fn gap(situation: &Situation) -> (f64, GateState) {
    let gap = situation.longest_gap_s.unwrap_or(0.0);
    // A tick of one second may come late; two missed ones in a row are a gap.
    (gap, graded(gap, 2.5, 0.1 * situation.window_s.max(50.0)))
}

/// Why the windows are too short for a verdict, how long they must be, and what makes them longer: the samplers were there,
/// and had no time to look often enough.
pub(crate) fn too_short(situation: &Situation) -> Option<String> {
    let (enough, least) = SAMPLES;
    let found = situation.wait_samples;
    let was_there = gap(situation).1 == GateState::Passed && found > 0;
    if situation.budget.is_none() || found >= least || !was_there {
        return None;
    }
    let needed = |samples: u64| (situation.window_s * samples as f64 / found as f64).ceil();
    let windows = count(situation.steady.len().max(1) as u64, "window");
    Some(format!(
        "the measured time is too short: in {windows} of {} the database's sessions were sampled {}; {least} samples are \
         required ({enough} for full confidence); {}",
        seconds(situation.window_s),
        count(found, "time"),
        longer(situation.is_job, needed(least), Some(needed(enough))),
    ))
}

/// What may be behind a condition that is not met in a window in which not even steadiness can be judged.
pub(crate) fn shortness(situation: &Situation, gate: &Gate) -> Option<String> {
    // Transactions that fail do so in windows of any length.
    let may_be_chance = gate.id != "G8" && situation.window_s < SHORTEST_S;
    may_be_chance.then(|| {
        format!(
            "a window of {} may be too short for this: {}",
            seconds(situation.window_s),
            longer(situation.is_job, SHORTEST_S, None)
        )
    })
}

/// What makes windows at least so long, in seconds, or better so.
pub(crate) fn longer(is_job: bool, least_s: f64, better_s: Option<f64>) -> String {
    let better = |unit: &str| better_s.map_or(String::new(), |s| format!(", better {s:.0}{unit}"));
    if is_job {
        let better = better(" s");
        return format!("give the job enough work for at least {least_s:.0} s{better}");
    }
    let better = better("s");
    format!("set `measure` of [procedure], or --measure, to at least {least_s:.0}s{better}")
}

fn seconds(seconds: f64) -> String {
    format!("{} s", amount(seconds))
}

fn interference(situation: &Situation) -> Gate {
    const TITLE: &str = "no other process used the host";
    let (Some(others), Some(steal)) = (situation.interference_share, situation.steal_share) else {
        return not_judged("G5", TITLE, "CPU time of host or processes is missing");
    };
    let text = format!(
        "{} of the host's CPU used by other processes or kernel threads (limit 5 %), {} stolen by the hypervisor \
         (limit 1 %)",
        percent(others),
        percent(steal)
    );
    let state = worse(graded(others, 0.05, 0.25), graded(steal, 0.01, 0.05));
    gate("G5", TITLE, state, text)
}

fn steadiness(situation: &Situation) -> Gate {
    const TITLE: &str = "throughput was steady";
    let with = |state| situation.steady.iter().filter(|found| **found == state).count();
    let (unsteady, short) = (with(SteadyState::NotSteady), with(SteadyState::TooShort));
    let all = situation.steady.len();
    let text = match (unsteady, short) {
        (0, 0) => format!("all {all} windows"),
        (0, _) => format!(
            "{short} of {all} windows are too short to judge, the shortest {}; {}",
            seconds(situation.window_s),
            longer(situation.is_job, SHORTEST_S, None)
        ),
        _ => format!("{unsteady} of {all} windows are not steady"),
    };
    let state = match (unsteady, short) {
        (0, 0) => GateState::Passed,
        (0, _) => GateState::Soft,
        // The tests raise a false alarm in one window of fifty or so: that one run of several is not
        // steady lowers the confidence, that most are not forbids a verdict.
        _ if 2 * unsteady <= all => GateState::Soft,
        _ => GateState::Failed,
    };
    gate("G6", TITLE, state, text)
}

fn bytes(situation: &Situation) -> Gate {
    const TITLE: &str = "bytes written agree from the database down to the device";
    if let Some(shared) = &situation.log_device_shared {
        let why = format!(
            "the log shares device {} with {}, and the kernel counts I/O per device",
            shared.device,
            others_on(shared)
        );
        return not_judged("G7", TITLE, &why);
    }
    let (Some(log), Some(volume)) =
        (situation.log_bytes_per_second, situation.log_volume_bytes_per_second)
    else {
        return not_judged("G7", TITLE, "bytes of the log or of its volume are missing");
    };
    if log <= 0.0 {
        return not_judged("G7", TITLE, "no log was written");
    }
    let amplification = volume / log;
    let text = format!(
        "{} bytes/s logged, {} bytes/s written to the log's volume: x{} (limits x{} and x{})",
        amount(log),
        amount(volume),
        amount(amplification),
        amount(WRITTEN_PER_LOGGED.0),
        amount(WRITTEN_PER_LOGGED.1),
    );
    if log < LOGGED_LEAST && volume < WRITTEN_LEAST {
        let why = format!("{text}: too little to judge");
        return not_judged("G7", TITLE, &why);
    }
    let (least, most) = WRITTEN_PER_LOGGED;
    let (least_soft, most_soft) = WRITTEN_PER_LOGGED_SOFT;
    let state = match amplification {
        a if (least..=most).contains(&a) => GateState::Passed,
        a if (least_soft..=most_soft).contains(&a) => GateState::Soft,
        _ => GateState::Failed,
    };
    gate("G7", TITLE, state, text)
}

/// What else is on a device that the log shares: `data and backup`.
fn others_on(shared: &SharedDevice) -> String {
    let others: Vec<String> =
        shared.volumes.iter().filter(|volume| !is_log_volume(volume)).cloned().collect();
    if others.is_empty() { "other files".to_string() } else { list(&others) }
}

fn errors(situation: &Situation) -> Gate {
    let share = situation.error_share;
    let text = format!("{} of the attempts failed (limit 1 %)", percent(share));
    gate("G8", "transactions did not fail", graded(share, 0.01, 0.01), text)
}

fn worse(a: GateState, b: GateState) -> GateState {
    let rank = |state| match state {
        GateState::Passed => 0,
        GateState::NotJudged => 1,
        GateState::Soft => 2,
        GateState::Failed => 3,
    };
    if rank(a) >= rank(b) { a } else { b }
}
