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
    use super::growth;
    use crate::analysis::{Rung, WorkingSet};

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
