//! What users do, for the load generator's process: the workload's part of its first line.

use serde::{Deserialize, Serialize};
use underlay_core::Words;
use underlay_study::{DvdstorePlan, Mode, Profile, SysbenchPlan, TpccPlan, WorkloadKind};
use underlay_workload::dvdstore::{Behaviour, Size};
use underlay_workload::sysbench::{Distribution, Script};
use underlay_workload::tpcc::HomeWarehouse;

/// A workload that users follow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum WorkloadLine {
    Tpcc {
        warehouses: u32,
        mode: String,
        profile: String,
        home_warehouse: String,
        entropy: u8,
    },
    Sysbench {
        script: String,
        tables: u32,
        table_size: u32,
        distribution: String,
        range_size: u32,
    },
    Dvdstore {
        size: String,
        /// The numbers of the behaviour, in the order of its fields.
        behaviour: [u32; 9],
        ds2_mode: bool,
    },
}

impl WorkloadLine {
    /// None of a job and of block loads, which have no users.
    pub(super) fn of(kind: &WorkloadKind) -> Option<WorkloadLine> {
        Some(match kind {
            WorkloadKind::Tpcc(plan) => WorkloadLine::Tpcc {
                warehouses: plan.warehouses,
                mode: plan.mode.word().to_string(),
                profile: plan.profile.word().to_string(),
                home_warehouse: plan.home_warehouse.word().to_string(),
                entropy: plan.entropy,
            },
            WorkloadKind::Sysbench(plan) => WorkloadLine::Sysbench {
                script: plan.script.as_str().to_string(),
                tables: plan.tables,
                table_size: plan.table_size,
                distribution: plan.distribution.as_str().to_string(),
                range_size: plan.range_size,
            },
            WorkloadKind::Dvdstore(plan) => {
                let does = &plan.behaviour;
                WorkloadLine::Dvdstore {
                    size: plan.size.to_string(),
                    behaviour: [
                        does.pct_newcustomers,
                        does.pct_newmember,
                        does.n_searches,
                        does.search_batch_size,
                        does.search_depth,
                        does.n_reviews,
                        does.pct_newreviews,
                        does.pct_newhelpfulness,
                        does.n_line_items,
                    ],
                    ds2_mode: does.ds2_mode,
                }
            }
            WorkloadKind::Batch(_)
            | WorkloadKind::Warehouse(_)
            | WorkloadKind::Block(_)
            | WorkloadKind::Backup(_) => {
                return None;
            }
        })
    }

    /// The workload; `None` when the line is of another program.
    pub(super) fn kind(&self) -> Option<WorkloadKind> {
        Some(match self {
            WorkloadLine::Tpcc { warehouses, mode, profile, home_warehouse, entropy } => {
                WorkloadKind::Tpcc(TpccPlan {
                    warehouses: *warehouses,
                    mode: Mode::from_word(mode)?,
                    profile: Profile::from_word(profile)?,
                    home_warehouse: HomeWarehouse::from_word(home_warehouse)?,
                    entropy: *entropy,
                })
            }
            WorkloadLine::Sysbench { script, tables, table_size, distribution, range_size } => {
                WorkloadKind::Sysbench(SysbenchPlan {
                    script: script.parse::<Script>().ok()?,
                    tables: *tables,
                    table_size: *table_size,
                    distribution: distribution.parse::<Distribution>().ok()?,
                    range_size: *range_size,
                })
            }
            WorkloadLine::Dvdstore { size, behaviour, ds2_mode } => {
                let [
                    pct_newcustomers,
                    pct_newmember,
                    n_searches,
                    search_batch_size,
                    search_depth,
                    n_reviews,
                    pct_newreviews,
                    pct_newhelpfulness,
                    n_line_items,
                ] = *behaviour;
                WorkloadKind::Dvdstore(DvdstorePlan {
                    size: size.parse::<Size>().ok()?,
                    behaviour: Behaviour {
                        pct_newcustomers,
                        pct_newmember,
                        n_searches,
                        search_batch_size,
                        search_depth,
                        n_reviews,
                        pct_newreviews,
                        pct_newhelpfulness,
                        n_line_items,
                        ds2_mode: *ds2_mode,
                    },
                })
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::WorkloadLine;
    use underlay_study::{DvdstorePlan, Mode, Profile, SysbenchPlan, TpccPlan, WorkloadKind};
    use underlay_workload::dvdstore::{Behaviour, Size};
    use underlay_workload::sysbench::{Distribution, Script};
    use underlay_workload::tpcc::HomeWarehouse;

    #[test]
    fn every_workload_of_users_survives() {
        let behaviour = Behaviour { n_searches: 7, ds2_mode: true, ..Behaviour::default() };
        let kinds = [
            WorkloadKind::Tpcc(TpccPlan {
                warehouses: 8,
                mode: Mode::Statements,
                profile: Profile::HammerdbLike,
                home_warehouse: HomeWarehouse::Drawn,
                entropy: 40,
            }),
            WorkloadKind::Sysbench(SysbenchPlan {
                script: Script::PointSelect,
                tables: 3,
                table_size: 1_000,
                distribution: Distribution::Pareto,
                range_size: 50,
            }),
            WorkloadKind::Dvdstore(DvdstorePlan { size: Size::SMALL, behaviour }),
        ];
        for kind in kinds {
            let line = WorkloadLine::of(&kind).expect("users follow it");
            let text = serde_json::to_string(&line).expect("text");
            let read: WorkloadLine = serde_json::from_str(&text).expect("a line");
            assert_eq!(read.kind(), Some(kind));
        }
    }
}
