//! Which designs of a family carry a rate within a latency target, and which of them is the
//! smallest.
//!
//! Designs of few devices come first. One that contains a design which meets the target is not
//! simulated, unless every design is asked for: more of the same hosts, groups and drives are taken
//! to carry no less. Room comes before speed: designs that do not hold the volumes with their
//! copies are not simulated either.

use super::family::{Family, Member};
use super::highest_rate::{AtRate, Bed, Target};
use super::mapping::Assumptions;
use super::prediction::SinglePlan;
use super::space::{Space, space};
use super::storage::DesignTarget;
use super::what_if::chain;
use underlay_core::RootSeed;
use underlay_study::DatastoreKind;

/// What is asked of every design of a family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Transactions of all types per second.
    pub rate_per_second: f64,
    /// Within what.
    pub target: Target,
    /// The capacity devices may be this full, in percent, once the volumes are.
    pub full_at_most_percent: f64,
    /// Whether designs are simulated that contain one which meets the target.
    pub every_design: bool,
}

/// What became of a design.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The volumes do not fit, or cannot be placed, and why.
    NoRoom(String),
    /// It was simulated.
    Simulated(Box<AtRate>),
    /// It contains a design that meets the target, by its position.
    Contains(usize),
}

/// A design with its answer.
#[derive(Clone, Debug)]
pub struct Row {
    /// The design.
    pub member: Member,
    /// The room that its volumes take.
    pub space: Space,
    /// What became of it.
    pub answer: Answer,
}

impl Row {
    /// Whether it was seen to meet the target.
    pub fn meets(&self) -> bool {
        matches!(&self.answer, Answer::Simulated(at) if at.meets)
    }
}

/// Asks every design of a family; `before` is told which one is simulated next.
///
/// # Errors
/// What cannot be simulated on any storage.
pub fn sized(
    plan: SinglePlan<'_>,
    family: Family,
    demand: &Demand,
    (assumed, seed): (&Assumptions, RootSeed),
    before: &mut dyn FnMut(&Member),
) -> Result<Vec<Row>, String> {
    let mut rows: Vec<Row> = Vec::with_capacity(family.members.len());
    for member in family.members {
        let DatastoreKind::Cluster(cluster) = &member.design.kind else { continue };
        let space = space(cluster, &member.design.volumes);
        let contained = rows
            .iter()
            .position(|row| row.meets() && member.contains(&row.member))
            .filter(|_| !demand.every_design);
        let answer = match (no_room(&member, &space, demand, seed), contained) {
            (Some(why), _) => Answer::NoRoom(why),
            (None, Some(smaller)) => Answer::Contains(smaller),
            (None, None) => {
                before(&member);
                let bed = Bed { plan, design: &member.design, assumed, seed };
                let at = bed.at_rate(&demand.target, demand.rate_per_second)?;
                Answer::Simulated(Box::new(at))
            }
        };
        rows.push(Row { member, space, answer });
    }
    Ok(rows)
}

fn no_room(member: &Member, space: &Space, demand: &Demand, seed: RootSeed) -> Option<String> {
    let full = space.full_percent();
    if full > demand.full_at_most_percent {
        let Space { stored, others, devices, .. } = space;
        let others = match others.0 {
            0 => String::new(),
            _ => format!(", plus {others} of other data"),
        };
        return Some(format!(
            "the volumes take {stored} with their copies{others}, {full:.0} % of {devices}"
        ));
    }
    DesignTarget::new(&member.design, seed.child("storage", 0)).err().map(|error| chain(&error))
}

#[cfg(test)]
mod tests {
    use super::{Answer, Demand, Row, sized};
    use crate::databases::tests::plan;
    use crate::databases::{Assumptions, Family, SinglePlan, Target};
    use underlay_core::{Bytes, Nanos, RootSeed};

    const ASSUMED: Assumptions = Assumptions::defaults(2);

    fn demand(rate_per_second: f64, slo: &str) -> Demand {
        let target = Target {
            objective: slo.parse().expect("a target"),
            sessions: 16,
            settle: Nanos::from_secs(1),
            measure: Nanos::from_secs(10),
            resolution: 0.1,
            cached_at_most: 10_000,
        };
        Demand { rate_per_second, target, full_at_most_percent: 80.0, every_design: false }
    }

    /// Rows of a family of a mirrored cluster, with data volumes of that size.
    fn rows(data: Bytes, vary: &[&str], demand: &Demand) -> (Vec<Row>, usize) {
        let plan = plan("kingston-nvme-vsan");
        let mut base = plan.designs[0].clone();
        base.volumes[0].capacity = data;
        let vary: Vec<_> = vary.iter().map(|text| text.parse().expect("a quantity")).collect();
        let family = Family::new(&base, &vary).expect("a family");
        let single = SinglePlan::new(&plan).expect("one database");
        let mut simulated = 0;
        let with = (&ASSUMED, RootSeed(5));
        let rows = sized(single, family, demand, with, &mut |_| simulated += 1);
        (rows.expect("simulated"), simulated)
    }

    #[test]
    fn designs_that_contain_a_sufficient_one_are_not_simulated() {
        let vary = ["hosts=3,4", "capacity-drives=1,2"];
        let mut demand = demand(40.0, "p99=1s");
        let (rows, simulated) = self::rows(Bytes::from_gib(2), &vary, &demand);
        assert!(rows[0].meets() && simulated == 1, "{simulated} of {rows:?}");
        assert!(rows[1..].iter().all(|row| row.answer == Answer::Contains(0)), "{rows:?}");
        demand.every_design = true;
        let (rows, simulated) = self::rows(Bytes::from_gib(2), &vary, &demand);
        assert!(simulated == 4 && rows.iter().all(Row::meets), "{rows:?}");
    }

    #[test]
    fn a_target_that_no_design_meets_leaves_every_design_simulated() {
        let (rows, simulated) =
            rows(Bytes::from_gib(2), &["hosts=3,4"], &demand(40.0, "p99=100us"));
        assert!(simulated == 2 && !rows.iter().any(Row::meets), "{rows:?}");
        for row in rows {
            let Answer::Simulated(at) = row.answer else { panic!("{:?}", row.answer) };
            assert!(at.judgement.observed.is_some_and(|it| it > Nanos::from_micros(100)));
        }
    }

    #[test]
    fn room_counts_with_copies_and_comes_before_speed() {
        // Six hosts with two drives of 960 GB: 11.5 TB, of which 80 % are 9.2 TB.
        let tb = |number: f64| Bytes((number * 1e12 / 4096.0) as u64 * 4096);
        let demand = demand(40.0, "p99=1s");
        let (rows, simulated) = self::rows(tb(4.0), &["ftt=1,2", "hosts=6"], &demand);
        assert_eq!(simulated, 1, "{rows:?}");
        assert!(rows[0].meets() && rows[0].member.failures == 1, "{rows:?}");
        let Answer::NoRoom(why) = &rows[1].answer else { panic!("{:?}", rows[1].answer) };
        assert!(why.contains("with their copies"), "{why}");
        // Two failures need five hosts, whatever room there is.
        let (rows, simulated) = self::rows(Bytes::from_gib(2), &["ftt=2", "hosts=4"], &demand);
        let Answer::NoRoom(why) = &rows[0].answer else { panic!("{:?}", rows[0].answer) };
        assert!(simulated == 0 && why.contains("fault domains"), "{why}");
    }
}
