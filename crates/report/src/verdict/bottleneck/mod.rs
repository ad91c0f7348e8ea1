//! The verdict: what limits throughput at one rung.
//!
//! Rules in order (the first that applies decides): load generator, offered load, network, CPU, shared connections, then the
//! largest class of the time budget. Shares are of the sessions' time without think time. A verdict has at most
//! medium confidence here, because only a perturbation of the storage could confirm it.

mod classes;
mod rules;
mod shares;

use super::gates;
use super::situation::Situation;
use crate::analysis::{Bottleneck, Confidence, Gate, GateState, LimitMode, RuledOut};
use crate::plan_view::Pacing;
use crate::verdict::time_budget::TimeBudget;
use crate::wording::percent;

pub(crate) use classes::class_title;

use rules::{
    CPU_BUSY, DECIDES, NETWORK, QUEUED, Ruling, SATURATED, cpu_busy, inconclusive, rule, unmet,
};
use shares::Shares;

/// Below this share a class decides with low confidence only.
const CONFIDENT: f64 = 0.5;
/// Throughput follows the users with at least this exponent: limited by latency; ...
const FOLLOWS: f64 = 0.7;
/// ... with at most this: limited by capacity.
const FLAT: f64 = 0.3;

/// Judges one rung.
pub(crate) fn judge(situation: &Situation, design: usize, users: u32) -> Bottleneck {
    let gates = gates::judge(situation);
    let budget = situation.budget.as_ref();
    let shares = budget.map(|budget| Shares::of(budget, situation));
    let ruling = match (failed(&gates), &shares) {
        (Some(gate), _) => no_verdict(situation, gate),
        (None, None) => inconclusive("the database's sessions were not sampled".to_string()),
        (None, Some(shares)) => rule(situation, shares),
    };
    let confidence = confidence(&ruling, &gates);
    let mode = mode(situation, ruling.class);
    Bottleneck {
        design,
        users,
        sentence: sentence(&ruling, mode),
        class: ruling.class.to_string(),
        mode,
        confidence,
        budget: budget
            .map(|budget| budget.parts(situation.completed_per_second))
            .unwrap_or_default(),
        closure: budget.map(|budget| budget.total() / situation.sessions),
        lock_holders: budget.map(TimeBudget::holder_parts).unwrap_or_default(),
        ruled_out: shares
            .map(|shares| ruled_out(situation, &shares, ruling.class))
            .unwrap_or_default(),
        gates,
    }
}

/// Because of a gate that failed.
fn no_verdict(situation: &Situation, gate: &Gate) -> Ruling {
    // Of the same cause other conditions may not be met either.
    if let Some(why) = gates::too_short(situation) {
        return inconclusive(why);
    }
    let short = gates::shortness(situation, gate);
    let found = [Some(gate.text.clone()), short].into_iter().flatten().collect::<Vec<String>>();
    unmet(&gate.title, &found.join("; "))
}

fn failed(gates: &[Gate]) -> Option<&Gate> {
    // Interference has a rule of its own: it is what starves a server of CPU.
    gates.iter().find(|gate| gate.state == GateState::Failed && gate.id != "G5")
}

fn confidence(ruling: &Ruling, gates: &[Gate]) -> Confidence {
    let is_doubt = |gate: &Gate| {
        // That others use the host is no doubt where it is what was found.
        let is_evidence = gate.id == "G5" && ruling.class == "cpu-starved";
        matches!(gate.state, GateState::Soft | GateState::Failed) && !is_evidence
    };
    let soft = gates.iter().any(is_doubt);
    match ruling.class {
        "inconclusive" => Confidence::None,
        // What sessions wait for may be exhausted too: only a causal check tells whether more of them would do more.
        "connections" => Confidence::Low,
        _ if soft || ruling.share < CONFIDENT => Confidence::Low,
        _ => Confidence::Medium,
    }
}

fn mode(situation: &Situation, class: &str) -> LimitMode {
    if matches!(class, "inconclusive" | "offered-load" | "load-generator") {
        return LimitMode::Unknown;
    }
    match situation.slope {
        Some(slope) if slope >= FOLLOWS => LimitMode::Latency,
        Some(slope) if slope <= FLAT => LimitMode::Capacity,
        _ => LimitMode::Unknown,
    }
}

fn sentence(ruling: &Ruling, mode: LimitMode) -> String {
    let mode = match mode {
        LimitMode::Latency => ", latency-bound",
        LimitMode::Capacity => ", capacity-bound",
        LimitMode::Unknown => "",
    };
    format!("{}{mode}", ruling.sentence)
}

fn ruled_out(situation: &Situation, shares: &Shares, verdict: &str) -> Vec<RuledOut> {
    let mut list = Vec::new();
    let mut add = |class: &str, reason: String| {
        if class != verdict {
            list.push(RuledOut { class: class.to_string(), reason });
        }
    };
    if let Some(busiest) = situation.driver_busiest_share.filter(|share| *share < SATURATED) {
        add("load-generator", format!("its busiest thread is busy {}", percent(busiest)));
    }
    if situation.pacing == (Pacing::Closed { key_think: 0.0 }) {
        add("offered-load", "users have no think time".to_string());
    }
    if shares.client + shares.network < NETWORK {
        let outside = shares.client + shares.network + shares.driver + shares.driver_limit;
        add("network", format!("{} of the time is spent outside the server", percent(outside)));
    }
    if let Some(share) = situation.connection_wait_share.filter(|share| *share < QUEUED) {
        let reason = format!("{} of the response time is waiting for one", percent(share));
        add("connections", reason);
    }
    if let Some(busy) = cpu_busy(situation).filter(|_| !verdict.starts_with("cpu-")) {
        let time = percent(shares.cpu_candidate().2);
        if busy < CPU_BUSY {
            add("cpu", format!("{time} of the time, processors {} busy", percent(busy)));
        }
    }
    for (class, words, share) in shares.candidates() {
        // Several shares that are too small to decide may be the limit together.
        let is_cpu = class.starts_with("cpu");
        // Of real devices nothing is known to be the host's.
        let is_unknown = class == "host-io" && share == 0.0;
        if !is_cpu && !is_unknown && share < DECIDES && !matches!(verdict, "mixed" | "inconclusive")
        {
            add(class, format!("{} of the time {words}", percent(share)));
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::judge;
    use crate::analysis::{Confidence, GateState, LimitMode, SteadyState, TimeClass};
    use crate::plan_view::Pacing;
    use crate::verdict::situation::Situation;
    use crate::verdict::time_budget::TimeBudget;

    /// A quiet host with 4 processors and 8 users whose time goes where `budget` says.
    fn situation(budget: &[(TimeClass, f64)]) -> Situation {
        let sessions = budget.iter().copied().collect();
        Situation {
            users: 8.0,
            sessions: 8.0,
            client_is_local: false,
            is_job: false,
            pacing: Pacing::Closed { key_think: 0.0 },
            completed_per_second: 1000.0,
            response_s: Some(0.008),
            think_s: Some(0.0),
            connection_wait_share: None,
            error_share: 0.0,
            database_per_second: Some(1000.0),
            alongside_per_second: Some(1000.0),
            burst: 1.0,
            budget: Some(TimeBudget { sessions, holders: Default::default() }),
            wait_samples: 1200,
            idle_share: Some(0.6),
            steal_share: Some(0.0),
            interference_share: Some(0.01),
            server_cores: Some(1.0),
            server_allotment: Some(4.0),
            pressure_share: Some(0.05),
            driver_busiest_share: Some(0.1),
            longest_gap_s: Some(1.1),
            window_s: 60.0,
            steady: vec![SteadyState::Steady; 2],
            log_bytes_per_second: Some(1e6),
            log_volume_bytes_per_second: Some(1.5e6),
            log_device_shared: None,
            log_device: Some("sata".to_string()),
            server_throttled: None,
            driver_throttled: None,
            slope: None,
        }
    }

    fn class(situation: &Situation) -> String {
        judge(situation, 0, 8).class
    }

    #[test]
    fn nothing_is_ruled_out_by_a_share_that_only_did_not_decide() {
        let mut busy = situation(&[
            (TimeClass::Log, 0.34),
            (TimeClass::Lock, 0.32),
            (TimeClass::DataRead, 0.26),
            (TimeClass::Cpu, 0.08),
        ]);
        busy.idle_share = Some(0.02);
        busy.server_cores = Some(3.9);
        let verdict = judge(&busy, 0, 8);
        assert_eq!(verdict.class, "inconclusive", "{verdict:?}");
        for class in ["log", "lock", "data-read", "cpu"] {
            assert!(verdict.ruled_out.iter().all(|out| out.class != class), "{verdict:?}");
        }
    }

    #[test]
    fn the_largest_wait_decides() {
        let cases = [
            (TimeClass::Log, "log"),
            (TimeClass::DataRead, "data-read"),
            (TimeClass::DataWrite, "data-write"),
            (TimeClass::Latch, "latch"),
        ];
        for (waiting, expected) in cases {
            let found = judge(
                &situation(&[(waiting, 6.0), (TimeClass::Cpu, 1.0), (TimeClass::Client, 1.0)]),
                0,
                8,
            );
            assert_eq!(found.class, expected, "{}", found.sentence);
            assert_eq!(found.confidence, Confidence::Medium);
            assert!(found.ruled_out.iter().any(|out| out.class == "network"));
            assert!(found.ruled_out.iter().any(|out| out.class == "cpu"));
            assert!(found.ruled_out.iter().any(|out| out.class == "load-generator"));
        }
    }

    #[test]
    fn waiting_for_a_processor_is_cpu_only_when_processors_are_scarce() {
        let budget = [
            (TimeClass::Cpu, 1.0),
            (TimeClass::RunQueue, 3.0),
            (TimeClass::Driver, 1.5),
            (TimeClass::Client, 2.1),
            (TimeClass::DataRead, 0.4),
        ];
        let mut scarce = situation(&budget);
        scarce.idle_share = Some(0.02);
        scarce.pressure_share = Some(0.93);
        assert_eq!(class(&scarce), "cpu");
        scarce.interference_share = Some(0.4);
        let starved = judge(&scarce, 0, 8);
        assert_eq!((&*starved.class, starved.confidence), ("cpu-starved", Confidence::Medium));
    }

    #[test]
    fn a_cpu_limit_is_told_from_storage_and_from_the_host() {
        let mut capped = situation(&[
            (TimeClass::CpuLimit, 4.0),
            (TimeClass::Cpu, 1.0),
            (TimeClass::RunQueue, 0.8),
            (TimeClass::Log, 1.2),
            (TimeClass::Client, 1.0),
        ]);
        (capped.server_cores, capped.server_allotment) = (Some(0.49), Some(0.5));
        capped.server_throttled = Some(0.75);
        let found = judge(&capped, 0, 8);
        assert_eq!(found.class, "cpu-limit");
        assert!(
            found.sentence.ends_with(
                "it was stopped 75 % of the time (limit 0.5 processors), while the host was 60 % idle"
            ),
            "{}",
            found.sentence
        );
        assert!(found.ruled_out.iter().all(|out| !out.class.starts_with("cpu")));
    }

    #[test]
    fn a_limit_of_the_load_generator_comes_first() {
        let mut capped = situation(&[
            (TimeClass::DriverLimit, 7.4),
            (TimeClass::Log, 0.4),
            (TimeClass::Cpu, 0.2),
        ]);
        capped.driver_throttled = Some(0.93);
        let found = judge(&capped, 0, 8);
        assert_eq!(found.class, "load-generator");
        assert!(found.sentence.contains("a CPU limit stopped it 93 % of the time"));
    }

    #[test]
    fn the_log_behind_data_writes_names_the_device() {
        let found = judge(
            &situation(&[
                (TimeClass::LogBehindData, 4.5),
                (TimeClass::Log, 1.5),
                (TimeClass::Cpu, 1.0),
                (TimeClass::Client, 1.0),
            ]),
            0,
            8,
        );
        assert_eq!(found.class, "log-behind-data");
        assert!(
            found.sentence.starts_with(
                "the log waits behind data writes on device sata (sessions spend 75 % of their time"
            ),
            "{}",
            found.sentence
        );
    }

    #[test]
    fn io_beyond_the_device_is_not_called_storage() {
        let found = judge(
            &situation(&[(TimeClass::HostIo, 6.0), (TimeClass::Log, 1.0), (TimeClass::Cpu, 1.0)]),
            0,
            8,
        );
        assert_eq!(found.class, "host-io");
        assert!(found.sentence.starts_with("this host, not storage"), "{}", found.sentence);
    }

    #[test]
    fn a_saturated_generator_comes_first() {
        let mut busy = situation(&[(TimeClass::Client, 7.9), (TimeClass::Cpu, 0.1)]);
        busy.driver_busiest_share = Some(0.97);
        assert_eq!(class(&busy), "load-generator");
    }

    #[test]
    fn a_client_within_the_servers_limits_is_part_of_what_the_limit_stops() {
        let mut local = situation(&[
            (TimeClass::Driver, 2.5),
            (TimeClass::Cpu, 2.0),
            (TimeClass::CpuLimit, 3.0),
            (TimeClass::Client, 0.5),
        ]);
        local.client_is_local = true;
        local.driver_busiest_share = Some(0.97);
        local.server_throttled = Some(0.6);
        local.server_cores = Some(3.9);
        let found = judge(&local, 0, 8);
        assert_eq!(found.class, "cpu-limit", "{found:?}");
        // The same of a client elsewhere says that nothing was measured.
        local.client_is_local = false;
        assert_eq!(class(&local), "load-generator");
    }

    #[test]
    fn a_network_that_takes_most_of_the_time_is_named() {
        let remote = situation(&[
            (TimeClass::ClientNetwork, 6.0),
            (TimeClass::Client, 0.5),
            (TimeClass::Log, 1.5),
        ]);
        let found = judge(&remote, 0, 8);
        assert_eq!(found.class, "network");
        assert!(found.sentence.ends_with("75 % on the client's network"), "{}", found.sentence);
        let near = situation(&[(TimeClass::ClientNetwork, 1.0), (TimeClass::Log, 7.0)]);
        let found = judge(&near, 0, 8);
        assert_eq!(found.class, "log");
        assert!(found.ruled_out.iter().any(|ruled| ruled.class == "network"), "{found:?}");
    }

    #[test]
    fn users_who_share_connections_are_expected_in_no_more_sessions() {
        let mut shared = situation(&[(TimeClass::Log, 3.0), (TimeClass::Cpu, 1.0)]);
        shared.sessions = 4.0;
        let found = judge(&shared, 0, 8);
        let gate = found.gates.iter().find(|gate| gate.id == "G2").expect("the gate");
        assert_eq!(gate.state, GateState::Passed, "{gate:?}");
        assert!(gate.text.contains("4 shared connections"), "{}", gate.text);
        assert_eq!(found.closure, Some(1.0));
    }

    #[test]
    fn users_who_queue_for_connections_are_told_so_with_low_confidence() {
        let mut shared = situation(&[(TimeClass::Log, 1.6), (TimeClass::Cpu, 0.4)]);
        (shared.sessions, shared.connection_wait_share) = (2.0, Some(0.75));
        let found = judge(&shared, 0, 8);
        assert_eq!((&*found.class, found.confidence), ("connections", Confidence::Low));
        assert!(found.sentence.contains("75 % of the response time waiting for one of 2"));
        let mut single = situation(&[(TimeClass::Log, 0.8), (TimeClass::Cpu, 0.2)]);
        (single.sessions, single.connection_wait_share) = (1.0, Some(0.94));
        let found = judge(&single, 0, 8);
        assert!(found.sentence.ends_with("waiting for the only one"), "{}", found.sentence);
        // More sessions would only wait for processors.
        let mut busy = shared.clone();
        busy.budget = Some(TimeBudget {
            sessions: [(TimeClass::Cpu, 1.2), (TimeClass::RunQueue, 0.8)].into(),
            holders: Default::default(),
        });
        (busy.server_cores, busy.idle_share) = (Some(3.9), Some(0.02));
        assert_eq!(class(&busy), "cpu");
        // A short queue decides nothing, and is ruled out by its share.
        shared.connection_wait_share = Some(0.1);
        let found = judge(&shared, 0, 8);
        assert_eq!(found.class, "log");
        assert!(found.ruled_out.iter().any(|out| out.class == "connections"), "{found:?}");
    }

    #[test]
    fn thinking_users_are_no_bottleneck() {
        let mut thinking = situation(&[(TimeClass::Client, 7.6), (TimeClass::Cpu, 0.4)]);
        thinking.pacing = Pacing::Closed { key_think: 1.0 };
        thinking.think_s = Some(0.0076);
        thinking.response_s = Some(0.0004);
        assert_eq!(class(&thinking), "offered-load");
        // The same time outside the server without think time is the way between client and server.
        assert_eq!(
            class(&situation(&[(TimeClass::Client, 7.6), (TimeClass::Cpu, 0.4)])),
            "network"
        );
    }

    #[test]
    fn locks_name_what_their_holders_wait_for() {
        let mut hot =
            situation(&[(TimeClass::Lock, 6.0), (TimeClass::Log, 1.0), (TimeClass::Cpu, 1.0)]);
        if let Some(budget) = &mut hot.budget {
            budget.holders = [(TimeClass::Log, 0.69), (TimeClass::Client, 0.31)].into();
        }
        let found = judge(&hot, 0, 8);
        assert_eq!(found.class, "lock");
        assert!(
            found.sentence.contains("69 % of that time waiting for the log"),
            "{}",
            found.sentence
        );
        assert_eq!(found.lock_holders[0].class, TimeClass::Log);
    }

    #[test]
    fn two_large_classes_are_mixed() {
        let found = judge(
            &situation(&[(TimeClass::Log, 3.2), (TimeClass::DataRead, 3.0), (TimeClass::Cpu, 1.8)]),
            0,
            8,
        );
        assert_eq!(found.class, "mixed");
        assert!(
            found.sentence.contains("the log with 40 % and data reads with 38 %"),
            "{}",
            found.sentence
        );
        assert_eq!(found.confidence, Confidence::Low);
    }

    #[test]
    fn the_ladder_tells_latency_from_capacity() {
        let mut log = situation(&[(TimeClass::Log, 7.0), (TimeClass::Cpu, 1.0)]);
        for (slope, expected) in
            [(0.9, LimitMode::Latency), (0.1, LimitMode::Capacity), (0.5, LimitMode::Unknown)]
        {
            log.slope = Some(slope);
            assert_eq!(judge(&log, 0, 8).mode, expected);
        }
    }

    #[test]
    fn contradicting_numbers_give_no_verdict() {
        let good = situation(&[(TimeClass::Log, 7.0), (TimeClass::Cpu, 1.0)]);
        type Fault = fn(&mut Situation);
        let broken: [(&str, Fault); 8] = [
            ("G1", |s| s.response_s = Some(0.005)),
            ("G2", |s| s.users = 12.0),
            ("G3", |s| s.database_per_second = Some(1200.0)),
            ("G4", |s| s.wait_samples = 50),
            ("G6", |s| s.steady = vec![SteadyState::NotSteady; 2]),
            ("G7", |s| s.log_volume_bytes_per_second = Some(1e5)),
            ("G7", |s| s.log_volume_bytes_per_second = Some(6.439e9)),
            ("G8", |s| s.error_share = 0.03),
        ];
        assert_eq!(class(&good), "log");
        for (gate, break_it) in broken {
            let mut bad = good.clone();
            break_it(&mut bad);
            let found = judge(&bad, 0, 8);
            assert_eq!(found.class, "inconclusive", "{gate}");
            assert_eq!(found.confidence, Confidence::None);
        }
        let mut unsampled = good;
        unsampled.budget = None;
        assert_eq!(class(&unsampled), "inconclusive");
    }

    /// A database hands its counts in up to a second late. A load that comes in bursts may so be off by a large part.
    #[test]
    fn counts_of_a_load_in_bursts_may_be_late() {
        let mut late = situation(&[(TimeClass::Log, 7.0), (TimeClass::Cpu, 1.0)]);
        late.window_s = 16.0;
        late.database_per_second = Some(1170.0);
        assert_eq!(class(&late), "inconclusive");
        late.burst = 6.0;
        assert_eq!(class(&late), "log");
        late.database_per_second = Some(1500.0);
        assert_eq!(class(&late), "inconclusive");
    }

    #[test]
    fn a_window_that_is_too_short_is_told_in_plain_words() {
        let mut short = situation(&[(TimeClass::Log, 7.0), (TimeClass::Cpu, 1.0)]);
        short.steady = vec![SteadyState::TooShort; 2];
        (short.window_s, short.wait_samples) = (5.0, 80);
        // What the same shortness brings about.
        short.response_s = Some(0.005);
        let sentence = judge(&short, 0, 8).sentence;
        assert_eq!(
            sentence,
            "no verdict: the measured time is too short: in 2 windows of 5 s the database's sessions were sampled 80 times; \
             100 samples are required (500 for full confidence); set `measure` of [procedure], or --measure, to at least 7s, better 32s"
        );
        short.is_job = true;
        let sentence = judge(&short, 0, 8).sentence;
        assert!(
            sentence.ends_with("give the job enough work for at least 7 s, better 32 s"),
            "{sentence}"
        );

        // Sampled often enough, but too short for other conditions.
        (short.is_job, short.wait_samples) = (false, 800);
        let sentence = judge(&short, 0, 8).sentence;
        let hint = "a window of 5 s may be too short for this: set `measure` of [procedure], or --measure, to at least 30s)";
        assert!(sentence.ends_with(hint), "{sentence}");
    }

    #[test]
    fn the_limit_that_is_told_is_the_one_that_was_kept() {
        let mut short = situation(&[(TimeClass::Log, 7.0), (TimeClass::Cpu, 1.0)]);
        short.alongside_per_second = Some(1040.0);
        let commits = |situation: &Situation| {
            let found = judge(situation, 0, 8);
            found.gates.iter().find(|gate| gate.id == "G3").expect("it is always there").clone()
        };
        let long = commits(&short);
        assert_eq!(long.state, GateState::Soft);
        assert!(long.text.ends_with("(limit 2 %)"), "{}", long.text);
        short.window_s = 5.0;
        let found = commits(&short);
        assert_eq!(found.state, GateState::Passed);
        assert!(found.text.ends_with("(limit 10 %, as the window is short)"), "{}", found.text);
    }

    #[test]
    fn nearly_met_conditions_lower_the_confidence() {
        let mut short = situation(&[(TimeClass::Log, 7.0), (TimeClass::Cpu, 1.0)]);
        short.steady = vec![SteadyState::TooShort; 2];
        short.wait_samples = 300;
        let found = judge(&short, 0, 8);
        assert_eq!((found.class.as_str(), found.confidence), ("log", Confidence::Low));
    }
}
