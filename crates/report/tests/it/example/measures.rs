//! Numbers per rung of the example: metrics, latencies, volumes, distributions, driver cost.

use std::collections::BTreeMap;

use underlay_report::analysis::{
    BlockLoad, BlockLoads, CurvePoint, CurveReading, Distribution, DriverLoad, Estimate,
    LatencyRow, Operation, RateCurve, RateSearch, RateStep, Rung, VolumeRow,
};

use super::{NOPM, USERS, estimate};

const TRANSACTIONS: [&str; 5] = ["new_order", "payment", "order_status", "delivery", "stock_level"];

fn each_rung<T>(make: impl Fn(usize, usize, u32) -> T) -> Vec<T> {
    let make = &make;
    (0..2)
        .flat_map(|design| {
            USERS.iter().enumerate().map(move |(rung, users)| make(design, rung, *users))
        })
        .collect()
}

fn key(design: usize, rung: usize, what: usize) -> u64 {
    (design * 10_000 + rung * 100 + what) as u64
}

/// Latency of a type at a rung, nanoseconds: the median and how much higher a quantile is.
fn latency_ns(design: usize, rung: usize, kind: usize, stretch: f64) -> f64 {
    [4e6, 9e6][design] * (1.0 + 0.3 * rung as f64) * (1.0 + 0.4 * kind as f64) * stretch
}

pub fn rungs() -> Vec<Rung> {
    each_rung(|design, rung, users| {
        let nopm = NOPM[design][rung];
        let idle = [0.85 - 0.17 * rung as f64, 0.9 - 0.06 * rung as f64][design];
        let number = |value, what| estimate(value, 0.03, key(design, rung, what));
        Rung {
            design,
            users,
            metrics: BTreeMap::from([
                ("headline".to_string(), number(nopm, 0)),
                ("tpm".to_string(), number(nopm * 2.22, 1)),
                ("tpm_per_user".to_string(), number(nopm * 2.22 / f64::from(users), 2)),
                ("cpu_idle".to_string(), number(idle, 3)),
                ("server_cores".to_string(), number((1.0 - idle) * 1.7, 4)),
            ]),
            latencies: TRANSACTIONS
                .iter()
                .enumerate()
                .map(|(kind, name)| latency_row(design, rung, kind, name))
                .collect(),
            volumes: ["data", "wal"].iter().map(|name| volume_row(design, rung, name)).collect(),
            working_set: None,
            busy_parts: Vec::new(),
        }
    })
}

fn latency_row(design: usize, rung: usize, kind: usize, name: &str) -> LatencyRow {
    let quantile = |stretch, what: usize| {
        estimate(latency_ns(design, rung, kind, stretch), 0.05, key(design, rung, 10 + what + kind))
    };
    LatencyRow {
        transaction: name.into(),
        count: (NOPM[design][rung] * [5.0, 5.0, 0.5, 0.5, 0.5][kind]) as u64,
        p50: quantile(1.0, 0),
        p95: quantile(2.1, 20),
        p99: quantile(4.3, 40),
        mean_ns: Some(latency_ns(design, rung, kind, 1.2)),
        max_ns: Some(latency_ns(design, rung, kind, 30.0) as u64),
        service_p99_ns: Some(latency_ns(design, rung, kind, 4.1) as u64),
        errors: u64::from(kind == 1),
    }
}

fn volume_row(design: usize, rung: usize, name: &str) -> VolumeRow {
    let grows = (rung + 1) as f64;
    let number =
        |value, what: usize| -> Estimate { estimate(value, 0.04, key(design, rung, 70 + what)) };
    VolumeRow {
        volume: name.into(),
        shared_by: Vec::new(),
        metrics: BTreeMap::from([
            ("read_iops".to_string(), number([2400.0, 900.0][design] * grows, 0)),
            ("write_iops".to_string(), number([1200.0, 500.0][design] * grows, 1)),
            ("read_bytes_per_second".to_string(), number([19e6, 7e6][design] * grows, 2)),
            ("read_latency_ns".to_string(), number([130e3, 410e3][design], 3)),
        ]),
    }
}

pub fn distributions() -> Vec<Distribution> {
    each_rung(|design, rung, users| {
        TRANSACTIONS.iter().enumerate().map(move |(kind, name)| {
            // From p0 to p99.999 in equal steps of nines.
            let nines: Vec<f64> = (0..=100).map(|step| f64::from(step) * 0.05).collect();
            Distribution {
                design,
                users,
                transaction: name.to_string(),
                count: 100_000,
                shares: nines.iter().map(|n| 1.0 - 10f64.powf(-n)).chain([1.0]).collect(),
                nanos: nines
                    .iter()
                    .map(|n| latency_ns(design, rung, kind, 0.5 * (n * 0.75).exp()) as u64)
                    .chain([latency_ns(design, rung, kind, 30.0) as u64])
                    .collect(),
            }
        })
    })
    .into_iter()
    .flatten()
    .collect()
}

pub fn driver() -> Vec<DriverLoad> {
    each_rung(|design, rung, users| DriverLoad {
        design,
        users,
        cores: Some(0.02 * NOPM[design][rung] / 6000.0),
        share_of_host: Some(0.01 * NOPM[design][rung] / 6000.0),
        cpu_seconds_per_10000: Some(2.0),
        dispatch_lag_p99_ns: Some(90_000),
        saturated: Some(false),
    })
}

/// A search on each design: up, down, and the answer seen again.
pub fn searches() -> Vec<RateSearch> {
    let step = |rate: f64, p99_ms: f64, purpose: &str| RateStep {
        rate_per_second: rate,
        delivered_per_second: Some(rate * 0.999),
        observed_ns: Some((p99_ms * 1e6) as u64),
        late_share: Some(if p99_ms > 10.0 { 0.04 } else { 0.004 }),
        late_share_low: Some(if p99_ms > 10.0 { 0.03 } else { 0.002 }),
        late_share_high: Some(if p99_ms > 10.0 { 0.05 } else { 0.006 }),
        verdict: if p99_ms > 10.0 { "exceeded" } else { "met" }.to_string(),
        holds: Some(p99_ms <= 10.0),
        by_point_estimate: false,
        purpose: purpose.to_string(),
        begin_s: Some(10.0),
        end_s: Some(20.0),
    };
    let search = |run: usize, design: usize, knee: f64| RateSearch {
        run,
        design,
        repeat: 1,
        slo: "p99 <= 10 ms".to_string(),
        quantile: Some(0.99),
        limit_ns: Some(10_000_000),
        found: "rate".to_string(),
        holds_per_second: Some(knee),
        fails_per_second: Some(knee * 1.05),
        steps: vec![
            step(knee * 0.5, 3.0, "bracket"),
            step(knee, 9.0, "bracket"),
            step(knee * 2.0, 900.0, "bracket"),
            step(knee * 1.4, 40.0, "bisect"),
            step(knee * 1.05, 11.0, "bisect"),
            step(knee, 9.2, "confirm"),
        ],
    };
    vec![search(0, 0, 900.0), search(1, 1, 2000.0)]
}

/// Three cycles of a backup and its restore on two designs.
pub fn operations() -> Vec<Operation> {
    let one = |design: usize, kind: &str, cycle: u32| {
        let (seconds, key) = match kind {
            "backup" => (26.5 * [1.0, 1.5][design], 900),
            _ => (12.9 * [1.0, 2.15][design], 950),
        };
        let key = key + design as u64 * 10 + u64::from(cycle);
        Operation {
            design,
            kind: kind.to_string(),
            cycle,
            seconds: estimate(seconds, 0.03, key),
            bytes_per_second: estimate(15.7e9 / seconds, 0.03, key + 100),
            read_latency_ns: estimate(1.4e6 * [1.0, 3.0][design], 0.05, key + 200),
            write_latency_ns: estimate(2.6e6 * [1.0, 2.0][design], 0.05, key + 300),
        }
    };
    let of_design = |design: usize| {
        ["backup", "restore"]
            .into_iter()
            .flat_map(move |kind| (1..=3).map(move |cycle| one(design, kind, cycle)))
    };
    (0..2).flat_map(of_design).collect()
}

/// A curve: the maximum, then shares of it, of which the last is more than there is.
pub fn block_loads() -> BlockLoads {
    let load = |share: Option<f64>| {
        let waiting = 1.0 / (1.05 - share.unwrap_or(1.0).min(1.0));
        let ns = |factor: f64| Some((80_000.0 * factor * waiting) as u64);
        let done_per_second = 50_000.0 * share.unwrap_or(1.0).min(1.0);
        BlockLoad {
            label: share.map_or("maximum".to_string(), |share| format!("{:.0} %", share * 100.0)),
            in_flight: 32,
            counts: share.is_none(),
            offered_per_second: share.map(|share| share * 50_000.0),
            done_per_second,
            bytes_per_second: done_per_second * 4096.0,
            mean_ns: Some(90_000.0 * waiting),
            p50_ns: ns(1.0),
            p95_ns: ns(2.0),
            p99_ns: ns(3.0),
            p999_ns: ns(5.0),
            saturated: Some(share.is_some_and(|share| share > 1.0)),
            ended_early: false,
        }
    };
    let shares = [None, Some(0.1), Some(0.4), Some(0.7), Some(1.0), Some(1.2)];
    BlockLoads {
        run: 0,
        design: 0,
        steady: None,
        steady_state: None,
        planned: Some(shares.len() as u64),
        interrupted: false,
        delivery: None,
        errors: 0,
        generator_busy: false,
        loads: shares.into_iter().map(load).collect(),
    }
}

/// The curves of two designs: the faster one stays below the limit for longer.
pub fn curves() -> Vec<RateCurve> {
    let curve = |design: usize, most: f64| {
        let point = |(number, share): (usize, f64)| {
            let waiting = 1.0 / (1.05 - share.min(1.0));
            let (offered, done) = (most * share, most * share.min(1.0));
            let key = (design * 100 + number * 10) as u64;
            CurvePoint {
                label: format!("{:.0} %", share * 100.0),
                offered_per_second: estimate(offered, 0.01, key),
                done_per_second: estimate(done, 0.01, key + 1),
                bytes_per_second: estimate(done * 4096.0, 0.01, key + 2),
                mean_ns: estimate(200_000.0 * waiting, 0.05, key + 3),
                p99_ns: estimate(700_000.0 * waiting, 0.1, key + 4),
                saturated: share > 1.0,
            }
        };
        let shares = [0.1, 0.4, 0.7, 0.9, 1.0, 1.2];
        RateCurve {
            design,
            limit_ns: 1_000_000,
            rate_at_limit: estimate(most * 0.85, 0.02, design as u64),
            found: CurveReading::Interpolated,
            points: shares.into_iter().enumerate().map(point).collect(),
        }
    };
    vec![curve(0, 20_000.0), curve(1, 45_000.0)]
}
