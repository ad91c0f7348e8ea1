//! The verdict: what limits throughput at one rung.
//!
//! Rules in order (the first that applies decides): load generator, offered load, network, CPU, then the largest
//! class of the time budget. Shares are of the sessions' time without think time. A verdict has at most
//! medium confidence here, because only a perturbation of the storage could confirm it.

use super::gates;
use super::situation::Situation;
use crate::analysis::{Bottleneck, Confidence, Gate, GateState, LimitMode, RuledOut, TimeClass};
use crate::plan_view::Pacing;
use crate::verdict::time_budget::TimeBudget;
use crate::wording::percent;

/// A thread of the generator busy for this share leaves no room.
const SATURATED: f64 = 0.9;
/// Clients idle for this share, and no server class above [`SMALL`]: the load is what limits.
const OFFERED: f64 = 0.6;
const SMALL: f64 = 0.2;
/// Client-side time without think time that points at the network.
const NETWORK: f64 = 0.4;
/// Running and runnable time, as a share of the time not spent at the client.
const CPU_TIME: f64 = 0.5;
/// Processors in use, as a share of the server's allotment or of the host.
const CPU_BUSY: f64 = 0.85;
/// Share of the time in which a task had no processor.
const CPU_PRESSURE: f64 = 0.4;
/// A class decides from this share on, ...
const DECIDES: f64 = 0.35;
/// ... if it is this many times the second, ...
const AHEAD: f64 = 1.5;
/// ... and below this share only with low confidence.
const CONFIDENT: f64 = 0.5;
/// Shares of the host that count as starved by others.
const STARVED: f64 = 0.05;
/// Throughput follows the users with at least this exponent: limited by latency; ...
const FOLLOWS: f64 = 0.7;
/// ... with at most this: limited by capacity.
const FLAT: f64 = 0.3;

/// What the rules say, before words are made of it.
#[derive(Clone, Debug, PartialEq)]
struct Ruling {
    class: &'static str,
    sentence: String,
    share: f64,
}

/// Judges one rung.
pub(crate) fn judge(situation: &Situation, design: usize, users: u32) -> Bottleneck {
    let gates = gates::judge(situation);
    let budget = situation.budget.as_ref();
    let shares = budget.map(|budget| Shares::of(budget, situation));
    let ruling = match (failed(&gates), &shares) {
        (Some(gate), _) => unmet(&gate.title, &gate.text),
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
        closure: budget.map(|budget| budget.total() / situation.users),
        lock_holders: budget.map(TimeBudget::holder_parts).unwrap_or_default(),
        ruled_out: shares
            .map(|shares| ruled_out(situation, &shares, ruling.class))
            .unwrap_or_default(),
        gates,
    }
}

/// Shares of the session time without think time.
#[derive(Clone, Debug)]
struct Shares {
    client: f64,
    driver: f64,
    cpu: f64,
    run_queue: f64,
    log: f64,
    read: f64,
    write: f64,
    lock: f64,
    latch: f64,
    /// Of all session time, think time included: what clients spend outside the server.
    thinking: f64,
    /// Running and runnable, of the time not spent at the client.
    cpu_of_busy: f64,
    /// Largest class of the holders of locks.
    holder: Option<(TimeClass, f64)>,
}

impl Shares {
    fn of(budget: &TimeBudget, situation: &Situation) -> Shares {
        let total = budget.total();
        let thinking = situation.thinking_users().min(budget.of_class(TimeClass::Client));
        let active = (total - thinking).max(f64::MIN_POSITIVE);
        let share = |class| budget.of_class(class) / active;
        let client = (budget.of_class(TimeClass::Client) - thinking) / active;
        let driver = share(TimeClass::Driver);
        let (cpu, run_queue) = (share(TimeClass::Cpu), share(TimeClass::RunQueue));
        let busy = (1.0 - client - driver).max(f64::MIN_POSITIVE);
        Shares {
            client,
            driver,
            cpu,
            run_queue,
            log: share(TimeClass::Log),
            read: share(TimeClass::DataRead),
            write: share(TimeClass::DataWrite),
            lock: share(TimeClass::Lock),
            latch: share(TimeClass::Latch),
            thinking: budget.of_class(TimeClass::Client) / total.max(f64::MIN_POSITIVE),
            cpu_of_busy: (cpu + run_queue) / busy,
            holder: budget
                .holders
                .iter()
                .max_by(|a, b| a.1.total_cmp(b.1))
                .map(|(class, share)| (*class, *share)),
        }
    }

    /// The classes among which the largest decides, largest first.
    fn candidates(&self) -> Vec<(&'static str, &'static str, f64)> {
        let mut classes = vec![
            ("log", "waiting for the log", self.log),
            ("data-read", "waiting for data reads", self.read),
            ("data-write", "waiting for data writes", self.write),
            ("lock", "waiting for locks of other transactions", self.lock),
            ("latch", "waiting for latches", self.latch),
            ("cpu", "running or waiting for a processor", self.cpu + self.run_queue),
        ];
        classes.sort_by(|a, b| b.2.total_cmp(&a.2));
        classes
    }

    fn largest_server_share(&self) -> f64 {
        self.candidates().first().map_or(0.0, |class| class.2)
    }
}

fn failed(gates: &[Gate]) -> Option<&Gate> {
    // Interference has a rule of its own: it is what starves a server of CPU.
    gates.iter().find(|gate| gate.state == GateState::Failed && gate.id != "G5")
}

fn unmet(condition: &str, found: &str) -> Ruling {
    inconclusive(format!("a condition for it is not met: {condition} ({found})"))
}

fn inconclusive(why: String) -> Ruling {
    Ruling { class: "inconclusive", sentence: format!("no verdict: {why}"), share: 0.0 }
}

fn rule(situation: &Situation, shares: &Shares) -> Ruling {
    generator_rule(situation)
        .or_else(|| offered_load_rule(situation, shares))
        .or_else(|| network_rule(situation, shares))
        .or_else(|| cpu_rule(situation, shares))
        .or_else(|| interference_rule(situation))
        .unwrap_or_else(|| largest_class_rule(shares))
}

fn generator_rule(situation: &Situation) -> Option<Ruling> {
    let share = situation.driver_busiest_share.filter(|share| *share >= SATURATED)?;
    Some(Ruling {
        class: "load-generator",
        sentence: format!(
            "the load generator is the limit: its busiest thread ran or wanted to run {} of the time; \
             the database was not measured",
            percent(share)
        ),
        share: 1.0,
    })
}

fn offered_load_rule(situation: &Situation, shares: &Shares) -> Option<Ruling> {
    let paced = match situation.pacing {
        Pacing::Open => true,
        Pacing::Closed { key_think } => key_think > 0.0,
        Pacing::Unknown => false,
    };
    let largest = shares.largest_server_share() * (1.0 - shares.thinking);
    (paced && shares.thinking >= OFFERED && largest < SMALL).then(|| Ruling {
        class: "offered-load",
        sentence: format!(
            "nothing limits: sessions wait {} of the time for their users, so that throughput is the load \
             that was offered",
            percent(shares.thinking)
        ),
        share: shares.thinking,
    })
}

fn network_rule(situation: &Situation, shares: &Shares) -> Option<Ruling> {
    (situation.pacing != Pacing::Open && shares.client >= NETWORK).then(|| Ruling {
        class: "network",
        sentence: format!(
            "between client and server: {} of the sessions' time passes outside the server",
            percent(shares.client)
        ),
        share: shares.client,
    })
}

fn cpu_rule(situation: &Situation, shares: &Shares) -> Option<Ruling> {
    let busy = cpu_busy(situation);
    let pressed = situation.pressure_share.is_some_and(|share| share >= CPU_PRESSURE);
    let exhausted = busy.is_some_and(|share| share >= CPU_BUSY);
    if shares.cpu_of_busy < CPU_TIME || !(exhausted || pressed) {
        return None;
    }
    let numbers = format!(
        "{} of the time in the server is running or runnable, and its processors are {} busy",
        percent(shares.cpu_of_busy),
        busy.map_or("an unknown part".to_string(), percent)
    );
    let starved = situation.interference_share.is_some_and(|share| share > STARVED)
        || situation.steal_share.is_some_and(|share| share > 0.01);
    let ruling = if starved {
        let others =
            situation.interference_share.unwrap_or(0.0) + situation.steal_share.unwrap_or(0.0);
        Ruling {
            class: "cpu-starved",
            sentence: format!(
                "CPU, of which others took {} of the host ({numbers})",
                percent(others)
            ),
            share: shares.cpu_of_busy,
        }
    } else {
        Ruling { class: "cpu", sentence: format!("CPU ({numbers})"), share: shares.cpu_of_busy }
    };
    Some(ruling)
}

/// Use of the server's processors, or of all of the host's if those are scarcer.
fn cpu_busy(situation: &Situation) -> Option<f64> {
    let server = situation.server_cores.zip(situation.server_allotment).map(|(used, of)| used / of);
    let host = situation.idle_share.map(|idle| 1.0 - idle);
    server.into_iter().chain(host).max_by(f64::total_cmp)
}

fn interference_rule(situation: &Situation) -> Option<Ruling> {
    let others = situation.interference_share.filter(|share| *share > 0.25);
    let steal = situation.steal_share.filter(|share| *share > 0.05);
    let share = others.or(steal)?;
    Some(unmet(
        "nobody else used the host",
        &format!("{} of its CPU went to others", percent(share)),
    ))
}

fn largest_class_rule(shares: &Shares) -> Ruling {
    let classes = shares.candidates();
    let (class, words, share) = classes[0];
    let (second_class, _, second) = classes[1];
    if share >= DECIDES && share >= AHEAD * second {
        let mut sentence =
            format!("{} (sessions spend {} of their time {words})", title(class), percent(share));
        if class == "lock"
            && let Some((holder, held)) = shares.holder
        {
            sentence.push_str(&format!(
                "; the holders of the locks spend {} of that time {}",
                percent(held),
                class_title(holder)
            ));
        }
        return Ruling { class, sentence, share };
    }
    if share < SMALL {
        return inconclusive(format!(
            "no class of waiting is large; the largest is {} with {}",
            title(class),
            percent(share)
        ));
    }
    Ruling {
        class: "mixed",
        sentence: format!(
            "mixed ({} with {} and {} with {} of the sessions' time)",
            title(class),
            percent(share),
            title(second_class),
            percent(second)
        ),
        share,
    }
}

fn confidence(ruling: &Ruling, gates: &[Gate]) -> Confidence {
    let soft = gates.iter().any(|gate| matches!(gate.state, GateState::Soft | GateState::Failed));
    match ruling.class {
        "inconclusive" => Confidence::None,
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
        add("offered-load", "users do not think".to_string());
    }
    if shares.client < NETWORK {
        let outside = shares.client + shares.driver;
        add("network", format!("{} of the time passes outside the server", percent(outside)));
    }
    if let Some(busy) = cpu_busy(situation).filter(|_| verdict != "cpu-starved") {
        let time = percent(shares.cpu + shares.run_queue);
        if busy < CPU_BUSY || shares.cpu_of_busy < CPU_TIME {
            add("cpu", format!("{time} of the time, processors {} busy", percent(busy)));
        }
    }
    for (class, words, share) in shares.candidates() {
        if class != "cpu" && share < DECIDES && verdict != "mixed" {
            add(class, format!("{} of the time {words}", percent(share)));
        }
    }
    list
}

/// A class for readers.
pub(crate) fn title(class: &str) -> String {
    match class {
        "data-read" => "data reads".to_string(),
        "data-write" => "data writes".to_string(),
        "log" => "the log".to_string(),
        "lock" => "locks".to_string(),
        "latch" => "latches".to_string(),
        "cpu" => "CPU".to_string(),
        other => other.replace('-', " "),
    }
}

/// A class of the time budget for readers.
pub(crate) fn class_title(class: TimeClass) -> &'static str {
    match class {
        TimeClass::Driver => "in the load generator",
        TimeClass::Client => "at the client",
        TimeClass::Cpu => "running on a processor",
        TimeClass::RunQueue => "waiting for a processor",
        TimeClass::Log => "waiting for the log",
        TimeClass::DataRead => "waiting for data reads",
        TimeClass::DataWrite => "waiting for data writes",
        TimeClass::Lock => "waiting for locks",
        TimeClass::Latch => "waiting for latches",
        TimeClass::Other => "waiting for something else",
    }
}

#[cfg(test)]
mod tests {
    use super::judge;
    use crate::analysis::{Confidence, LimitMode, SteadyState, TimeClass};
    use crate::plan_view::Pacing;
    use crate::verdict::situation::Situation;
    use crate::verdict::time_budget::TimeBudget;

    /// A quiet host with 4 processors and 8 users whose time goes where `budget` says.
    fn situation(budget: &[(TimeClass, f64)]) -> Situation {
        let sessions = budget.iter().copied().collect();
        Situation {
            users: 8.0,
            pacing: Pacing::Closed { key_think: 0.0 },
            completed_per_second: 1000.0,
            response_s: Some(0.008),
            think_s: Some(0.0),
            error_share: 0.0,
            database_per_second: Some(1000.0),
            alongside_per_second: Some(1000.0),
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
            slope: None,
        }
    }

    fn class(situation: &Situation) -> String {
        judge(situation, 0, 8).class
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
        scarce.interference_share = Some(0.2);
        assert_eq!(class(&scarce), "cpu-starved");
    }

    #[test]
    fn a_saturated_generator_comes_first() {
        let mut busy = situation(&[(TimeClass::Client, 7.9), (TimeClass::Cpu, 0.1)]);
        busy.driver_busiest_share = Some(0.97);
        assert_eq!(class(&busy), "load-generator");
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
        let broken: [(&str, Fault); 7] = [
            ("G1", |s| s.response_s = Some(0.005)),
            ("G2", |s| s.users = 12.0),
            ("G3", |s| s.database_per_second = Some(1200.0)),
            ("G4", |s| s.wait_samples = 50),
            ("G6", |s| s.steady = vec![SteadyState::NotSteady; 2]),
            ("G7", |s| s.log_volume_bytes_per_second = Some(1e5)),
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

    #[test]
    fn nearly_met_conditions_lower_the_confidence() {
        let mut short = situation(&[(TimeClass::Log, 7.0), (TimeClass::Cpu, 1.0)]);
        short.steady = vec![SteadyState::TooShort; 2];
        short.wait_samples = 300;
        let found = judge(&short, 0, 8);
        assert_eq!((found.class.as_str(), found.confidence), ("log", Confidence::Low));
    }
}
