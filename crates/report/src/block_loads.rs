//! The loads of a record of block I/O, from the documents of its runs.
//!
//! Nothing in here fails: what a document does not say is absent.

use serde_json::Value;
use underlay_record::conventions::document;

use crate::analysis::{BlockLoads, Delivery, SteadyRounds};
use crate::digest::Digest;
use crate::observed::block_loads;

/// All of them, in the order of execution.
pub(crate) fn all(digest: &Digest) -> Vec<BlockLoads> {
    digest
        .documents
        .iter()
        .filter_map(|(position, documents)| {
            let said = documents.get(document::BLOCK_LOAD)?;
            let run = digest.runs.get(*position)?;
            Some(of_run(*position, run.design as usize, said))
        })
        .collect()
}

fn of_run(run: usize, design: usize, said: &Value) -> BlockLoads {
    let loads = || said["loads"].as_array().into_iter().flatten();
    let sum = |key: &str| loads().filter_map(|load| load[key].as_u64()).sum::<u64>();
    let result = &said["result"];
    let number = |value: &Value, key: &str| value[key].as_u64();
    let steady = &said["steady_state"];
    BlockLoads {
        run,
        design,
        steady: said["steady"].as_bool(),
        steady_state: number(steady, "rounds").map(|rounds| SteadyRounds {
            rounds,
            rounds_max: number(steady, "rounds_max"),
            range_share: steady["range_share"].as_f64(),
            excursion_share: steady["excursion_share"].as_f64(),
        }),
        planned: said["loads_planned"].as_u64(),
        interrupted: said["interrupted"].as_bool().unwrap_or(false),
        delivery: number(result, "due")
            .filter(|due| *due > 0)
            .map(|due| Delivery { due, undelivered: number(result, "undelivered").unwrap_or(0) }),
        errors: sum("errors"),
        generator_busy: said["generator_busy"].as_bool().unwrap_or(false),
        loads: block_loads(said),
    }
}

#[cfg(test)]
mod tests {
    use super::of_run;
    use serde_json::json;

    #[test]
    fn what_is_not_said_is_absent() {
        let said = json!({
            "label": "70 %", "in_flight": 32, "done_per_second": 690.0, "bytes_per_second": 2.8e6,
        });
        let older = of_run(0, 0, &json!({ "loads": [said], "steady": null }));
        assert_eq!((older.loads.len(), older.errors, older.delivery), (1, 0, None));
        assert!(!older.interrupted && older.steady_state.is_none());
    }
}
