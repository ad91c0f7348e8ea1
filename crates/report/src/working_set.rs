//! How much of the database the users of a rung touch, and how much of that memory holds.
//!
//! TPC-C's users have a warehouse for good, unless the study lets them draw one for each transaction. Few
//! users then touch a part of the database, which may fit into memory where the whole does not: such a ladder varies
//! load and working set together, and its shape says nothing about load alone. Computed from the plan and from the size
//! of the loaded database; nothing is measured here.

use underlay_record::conventions::document;

use crate::analysis::{Rung, WorkingSet};
use crate::digest::Digest;
use crate::wording::gigabytes;

/// What the users of a rung touch; `None` where not even a part of the database is known.
pub(crate) fn of(digest: &Digest, design: usize, users: u32) -> Option<WorkingSet> {
    if digest.workload.is_block_load() || digest.workload.is_job() {
        return None;
    }
    let reached = reached(digest, design, users);
    let share = reached.map_or(1.0, |(reached, of)| reached as f64 / of.max(1) as f64);
    let in_documents = |name: &str, key: &str| {
        // Of its own runs; of others while it has none.
        let of_runs =
            |own: bool| digest.documents_named(name).filter(move |(of, _)| !own || *of == design);
        of_runs(true).chain(of_runs(false)).find_map(|(_, found)| {
            let value = found.get(key)?;
            let value = value.get("value").unwrap_or(value);
            value.as_f64().or_else(|| value.as_str()?.parse().ok())
        })
    };
    let touched_bytes = in_documents(document::ENGINE, "data_bytes").map(|all| all * share);
    let plan = &digest.manifest.plan;
    let limit = [&plan["designs"][design]["engine"], &plan["engine"]]
        .into_iter()
        .find_map(|engine| engine["memory_limit_bytes"].as_f64());
    // InnoDB reads past the page cache: only its buffer pool holds pages.
    let pool = in_documents(document::ENGINE_SETTINGS, "innodb_buffer_pool_size");
    let memory_bytes = limit.into_iter().chain(pool).min_by(f64::total_cmp);
    let text = match (touched_bytes, reached) {
        (Some(touched), _) => match memory_bytes {
            Some(memory) if memory < touched => {
                format!("touches {}, {} fits", gigabytes(touched), gigabytes(memory))
            }
            Some(_) => format!("touches {}, all of it fits", gigabytes(touched)),
            None => format!("touches {}", gigabytes(touched)),
        },
        (None, Some((reached, of))) => format!("reaches {reached} of {of} warehouses"),
        (None, None) => return None,
    };
    Some(WorkingSet { share, touched_bytes, memory_bytes, text })
}

/// Warehouses that the home transactions of so many users reach, of how many; `None` of other workloads.
fn reached(digest: &Digest, design: usize, users: u32) -> Option<(u64, u64)> {
    let plan = &digest.manifest.plan;
    let own = plan["designs"][design]["workload"].get("tpcc");
    let tpcc = own.or_else(|| plan["workload"].get("tpcc"))?;
    let warehouses = tpcc["warehouses"].as_u64()?;
    // Plans from before the choice had fixed ones.
    let is_drawn = tpcc["home_warehouse"] == "drawn";
    Some((if is_drawn { warehouses } else { warehouses.min(u64::from(users)) }, warehouses))
}

/// `the working set grows with users: 1 touches 0.1 GB, 16 touch 0.9 GB, and 0.3 GB fits`; `None` where all rungs
/// touch the same.
pub(crate) fn growth(rungs: &[&Rung]) -> Option<String> {
    let (first, last) = (rungs.first()?, rungs.last()?);
    let (few, many) = (first.working_set.as_ref()?, last.working_set.as_ref()?);
    if few.share >= many.share {
        return None;
    }
    let words = |set: &WorkingSet| match set.touched_bytes {
        Some(bytes) => gigabytes(bytes),
        None => format!("{:.0} % of the database", 100.0 * set.share),
    };
    let fits = match many.memory_bytes {
        Some(memory) => format!(", and {} fits in memory", gigabytes(memory)),
        None => String::new(),
    };
    Some(format!(
        "the working set grows with users: {} touches {}, {} touch {}{fits}",
        crate::wording::count(u64::from(first.users), "user"),
        words(few),
        last.users,
        words(many)
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};
    use underlay_core::{Evidence, Nanos, RootSeed};
    use underlay_record::{Execution, ExecutionStatus, Manifest, Run, RunId, RunStatus};

    use super::{growth, of};
    use crate::analysis::{Rung, WorkingSet};
    use crate::digest::Digest;

    /// A record with this plan and a run for each of these: its design and its documents by name.
    fn digest(plan: Value, runs: &[(u32, Value)]) -> Digest {
        let run = |(design, _): &(u32, Value)| Run {
            id: RunId(i64::from(*design)),
            design: *design,
            repeat: 1,
            order: *design,
            begin: Nanos::ZERO,
            end: None,
            origin_wall_ns: 0,
            status: RunStatus::Finished,
            reason: None,
            superseded_by: None,
        };
        let documents = |(_, found): &(u32, Value)| -> BTreeMap<String, Value> {
            found.as_object().expect("documents by name").clone().into_iter().collect()
        };
        let manifest = Manifest {
            study_name: "study".to_string(),
            title: String::new(),
            question: String::new(),
            evidence: Evidence::Emulated,
            seed: RootSeed(1),
            identity: String::new(),
            started_wall_ns: 0,
            plan,
            host: Value::Null,
            software: Value::Null,
        };
        let status = ExecutionStatus::Finished;
        let execution = Execution { status, finished_wall_ns: None, sessions: 1 };
        Digest {
            runs: runs.iter().map(run).collect(),
            documents: runs.iter().map(documents).enumerate().collect(),
            ..Digest::new(manifest, execution)
        }
    }

    /// Two designs; the second one has more memory.
    fn plan(tpcc: Value) -> Value {
        json!({
            "designs": [{}, { "engine": { "memory_limit_bytes": 900_000_000 } }],
            "engine": { "memory_limit_bytes": 300_000_000 },
            "workload": { "tpcc": tpcc },
        })
    }

    fn engine(data_bytes: u64) -> Value {
        json!({ "engine": { "data_bytes": data_bytes } })
    }

    fn set(share: f64, touched: f64, memory: f64, text: &str) -> Option<WorkingSet> {
        Some(WorkingSet {
            share,
            touched_bytes: Some(touched),
            memory_bytes: Some(memory),
            text: text.to_string(),
        })
    }

    #[test]
    fn users_touch_the_warehouses_that_they_have() {
        let fixed = plan(json!({ "warehouses": 16 }));
        let found = digest(fixed, &[(0, engine(1_600_000_000))]);
        let cases = [
            (0, 2, set(0.125, 0.2e9, 0.3e9, "touches 0.2 GB, all of it fits")),
            (0, 4, set(0.25, 0.4e9, 0.3e9, "touches 0.4 GB, 0.3 GB fits")),
            // More users than warehouses share them.
            (0, 64, set(1.0, 1.6e9, 0.3e9, "touches 1.6 GB, 0.3 GB fits")),
            // The design's own limit counts; the size is that of the other one, as long as it has no run.
            (1, 4, set(0.25, 0.4e9, 0.9e9, "touches 0.4 GB, all of it fits")),
        ];
        for (design, users, expected) in cases {
            assert_eq!(of(&found, design, users), expected, "design {design}, {users} users");
        }
    }

    #[test]
    fn users_that_draw_their_warehouse_touch_all() {
        let drawn = plan(json!({ "warehouses": 16, "home_warehouse": "drawn" }));
        let found = digest(drawn, &[(0, engine(1_600_000_000))]);
        let expected = set(1.0, 1.6e9, 0.3e9, "touches 1.6 GB, 0.3 GB fits");
        assert_eq!(of(&found, 0, 1), expected);
    }

    #[test]
    fn a_design_has_the_size_of_its_own_runs_and_the_smaller_memory() {
        let fixed = plan(json!({ "warehouses": 16 }));
        let settings = json!({
            "engine": { "data_bytes": 3_200_000_000_u64 },
            "engine-settings": {
                "innodb_buffer_pool_size": { "value": "200000000", "source": "file" },
            },
        });
        let found = digest(fixed, &[(0, engine(1_600_000_000)), (1, settings)]);
        let expected = set(0.25, 0.8e9, 0.2e9, "touches 0.8 GB, 0.2 GB fits");
        assert_eq!(of(&found, 1, 4), expected);
    }

    #[test]
    fn what_is_not_known_is_not_claimed() {
        let share = |found: Option<WorkingSet>| {
            let found = found.expect("something is known");
            assert_eq!(found.touched_bytes, None);
            (found.share, found.text)
        };
        // No run says how large the database is.
        let empty = digest(plan(json!({ "warehouses": 16 })), &[]);
        let expected = (0.25, "reaches 4 of 16 warehouses".to_string());
        assert_eq!(share(of(&empty, 0, 4)), expected);

        // Another workload: all of it, whatever memory there is.
        let other = json!({ "designs": [{}], "workload": { "sysbench": {} } });
        assert_eq!(of(&digest(other.clone(), &[]), 0, 4), None);
        let all = of(&digest(other, &[(0, engine(1_600_000_000))]), 0, 4).expect("its size");
        assert_eq!((all.share, all.memory_bytes), (1.0, None));
        assert_eq!(all.text, "touches 1.6 GB");

        // A job has no users.
        let job = json!({
            "designs": [{}],
            "workload": { "tpcc": { "warehouses": 16 } },
            "outcome": { "kind": "job", "counted": "rows" },
        });
        assert_eq!(of(&digest(job, &[(0, engine(1_600_000_000))]), 0, 4), None);
    }

    fn rung(users: u32, share: f64) -> Rung {
        let touched = 0.9e9 * share;
        let working_set = Some(WorkingSet {
            share,
            touched_bytes: Some(touched),
            memory_bytes: Some(0.3e9),
            text: String::new(),
        });
        Rung {
            design: 0,
            users,
            metrics: Default::default(),
            latencies: Vec::new(),
            volumes: Vec::new(),
            working_set,
            busy_parts: Vec::new(),
        }
    }

    #[test]
    fn a_ladder_that_varies_two_things_says_so() {
        let ladder = [rung(1, 0.125), rung(16, 1.0)];
        assert_eq!(
            growth(&ladder.iter().collect::<Vec<_>>()).as_deref(),
            Some(
                "the working set grows with users: 1 user touches 0.1 GB, 16 touch 0.9 GB, and 0.3 GB fits in memory"
            )
        );
        let even = [rung(1, 1.0), rung(16, 1.0)];
        assert_eq!(growth(&even.iter().collect::<Vec<_>>()), None);
    }
}
