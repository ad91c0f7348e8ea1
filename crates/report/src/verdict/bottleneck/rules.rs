//! The rules that decide what limits, in their order.

use super::classes::{class_title, title};
use super::shares::Shares;
use crate::plan_view::Pacing;
use crate::verdict::situation::Situation;
use crate::wording::{amount, percent};

/// A thread of the generator busy for this share leaves no room.
pub(super) const SATURATED: f64 = 0.9;
/// Clients idle for this share, and no server class above [`SMALL`]: the load is what limits.
const OFFERED: f64 = 0.6;
const SMALL: f64 = 0.2;
/// Client-side time without think time that points at the network.
pub(super) const NETWORK: f64 = 0.4;
/// Running and runnable time, as a share of the time not spent at the client.
const CPU_TIME: f64 = 0.5;
/// Processors in use, as a share of the server's allotment or of the host.
pub(super) const CPU_BUSY: f64 = 0.85;
/// Share of the time in which a task had no processor.
const CPU_PRESSURE: f64 = 0.4;
/// A class decides from this share on, ...
pub(super) const DECIDES: f64 = 0.35;
/// ... if it is this many times the second.
const AHEAD: f64 = 1.5;
/// Response time spent waiting for a shared connection that points at the number of connections.
pub(super) const QUEUED: f64 = 0.5;
/// Shares of the host that count as starved by others.
const STARVED: f64 = 0.05;

/// What the rules say, before words are made of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ruling {
    pub(super) class: &'static str,
    pub(super) sentence: String,
    pub(super) share: f64,
}

/// What the first rule says that applies.
pub(super) fn rule(situation: &Situation, shares: &Shares) -> Ruling {
    generator_rule(situation)
        .or_else(|| generator_limit_rule(situation, shares))
        .or_else(|| offered_load_rule(situation, shares))
        .or_else(|| network_rule(situation, shares))
        .or_else(|| cpu_rule(situation, shares))
        .or_else(|| interference_rule(situation))
        .or_else(|| connections_rule(situation))
        .unwrap_or_else(|| largest_class_rule(situation, shares))
}

/// No verdict, because a condition for one is not met.
pub(super) fn unmet(condition: &str, found: &str) -> Ruling {
    inconclusive(format!("this condition failed: {condition} ({found})"))
}

/// No verdict.
pub(super) fn inconclusive(why: String) -> Ruling {
    Ruling { class: "inconclusive", sentence: format!("no verdict: {why}"), share: 0.0 }
}

fn generator_rule(situation: &Situation) -> Option<Ruling> {
    // Within the server's limits it is part of what is measured, and so are the processors that it lacks.
    if situation.client_is_local {
        return None;
    }
    let share = situation.driver_busiest_share.filter(|share| *share >= SATURATED)?;
    Some(Ruling {
        class: "load-generator",
        sentence: format!(
            "the load generator is the bottleneck: its busiest thread was running or runnable {} of the time; \
             the database was not measured",
            percent(share)
        ),
        share: 1.0,
    })
}

fn generator_limit_rule(situation: &Situation, shares: &Shares) -> Option<Ruling> {
    (shares.driver_limit >= DECIDES).then(|| Ruling {
        class: "load-generator",
        sentence: format!(
            "the load generator is the bottleneck: a CPU limit stopped it {} of the time; the database was not measured",
            percent(situation.driver_throttled.unwrap_or(shares.driver_limit))
        ),
        share: shares.driver_limit,
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
            "no bottleneck: sessions wait {} of the time for their users, so throughput equals the offered \
             load",
            percent(shares.thinking)
        ),
        share: shares.thinking,
    })
}

fn network_rule(situation: &Situation, shares: &Shares) -> Option<Ruling> {
    let outside = shares.client + shares.network;
    (situation.pacing != Pacing::Open && outside >= NETWORK).then(|| Ruling {
        class: "network",
        sentence: format!(
            "the path between client and server: {} of the sessions' time is spent outside the server{}",
            percent(outside),
            match shares.network > 0.0 {
                true => format!(", {} on the client's network", percent(shares.network)),
                false => String::new(),
            }
        ),
        share: outside,
    })
}

/// Users queue for a connection, and the processors have room for more sessions.
fn connections_rule(situation: &Situation) -> Option<Ruling> {
    let share = situation.connection_wait_share.filter(|share| *share >= QUEUED)?;
    let one = match situation.sessions == 1.0 {
        true => "the only one".to_string(),
        false => format!("one of {}", amount(situation.sessions)),
    };
    Some(Ruling {
        class: "connections",
        sentence: format!(
            "the number of connections: users spend {} of the response time waiting for {one}",
            percent(share)
        ),
        share,
    })
}

fn cpu_rule(situation: &Situation, shares: &Shares) -> Option<Ruling> {
    let busy = cpu_busy(situation);
    let pressed = situation.pressure_share.is_some_and(|share| share >= CPU_PRESSURE);
    let exhausted = busy.is_some_and(|share| share >= CPU_BUSY);
    if shares.cpu_of_busy < CPU_TIME || !(exhausted || pressed) {
        return None;
    }
    let (class, ..) = shares.cpu_candidate();
    if class == "cpu-limit" {
        return Some(Ruling {
            class,
            sentence: format!(
                "the server's CPU limit: {} of the time in the server is running, stopped by the limit or waiting for a session \
                 that is{}",
                percent(shares.cpu_of_busy),
                limit_numbers(situation)
            ),
            share: shares.cpu_of_busy,
        });
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
                "CPU, because other processes took {} of the host ({numbers})",
                percent(others)
            ),
            share: shares.cpu_of_busy,
        }
    } else {
        Ruling { class: "cpu", sentence: format!("CPU ({numbers})"), share: shares.cpu_of_busy }
    };
    Some(ruling)
}

/// What the limit is, and how much the host has left, in words that follow a sentence.
fn limit_numbers(situation: &Situation) -> String {
    let stopped = situation.server_throttled.map(|share| {
        let processors = situation.server_allotment.map_or(String::new(), |of| {
            format!(" (limit {} processors)", crate::wording::amount(of))
        });
        format!("; it was stopped {} of the time{processors}", percent(share))
    });
    let idle =
        situation.idle_share.map(|idle| format!(", while the host was {} idle", percent(idle)));
    [stopped, idle].into_iter().flatten().collect()
}

/// Use of the server's processors, or of all of the host's if those are scarcer.
pub(super) fn cpu_busy(situation: &Situation) -> Option<f64> {
    let server = situation.server_cores.zip(situation.server_allotment).map(|(used, of)| used / of);
    let host = situation.idle_share.map(|idle| 1.0 - idle);
    server.into_iter().chain(host).max_by(f64::total_cmp)
}

fn interference_rule(situation: &Situation) -> Option<Ruling> {
    let others = situation.interference_share.filter(|share| *share > 0.25);
    let steal = situation.steal_share.filter(|share| *share > 0.05);
    let share = others.or(steal)?;
    Some(unmet(
        "no other process used the host",
        &format!("other processes used {} of its CPU", percent(share)),
    ))
}

fn largest_class_rule(situation: &Situation, shares: &Shares) -> Ruling {
    let classes = shares.candidates();
    let (class, words, share) = classes[0];
    let (second_class, _, second) = classes[1];
    if share >= DECIDES && share >= AHEAD * second {
        let mut sentence =
            format!("{} (sessions spend {} of their time {words})", title(class), percent(share));
        match class {
            "log-behind-data" => {
                let device = situation.log_device.as_deref().unwrap_or("they share");
                sentence = format!(
                    "the log waits behind data writes on device {device} (sessions spend {} of their time {words}, {} of \
                     that behind data writes)",
                    percent(share),
                    percent(shares.log_behind_data / shares.log)
                );
            }
            "host-io" => {
                sentence = format!(
                    "this host, not storage (sessions spend {} of their time {words})",
                    percent(share)
                );
            }
            "cpu-limit" => sentence.push_str(&limit_numbers(situation)),
            _ => {}
        }
        if class == "lock"
            && let Some((holder, held)) = shares.holder
        {
            sentence.push_str(&format!(
                "; lock holders spend {} of that time {}",
                percent(held),
                class_title(holder)
            ));
        }
        return Ruling { class, sentence, share };
    }
    if share < SMALL {
        return inconclusive(format!(
            "no wait class dominates; the largest is {} with {}",
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
