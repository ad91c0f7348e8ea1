//! The order in which the designs of a study run, so that neither drift of the host nor the place in a repeat favours one.
//!
//! No time: how long a run lasts is an estimate (`estimate`).

use std::collections::HashSet;

use underlay_core::RootSeed;

use crate::plan::{Order, ProcedurePlan, RunPlan};

/// Every run in the order of execution.
pub(crate) fn schedule(designs: usize, procedure: &ProcedurePlan, seed: RootSeed) -> Vec<RunPlan> {
    let runs: Vec<RunPlan> = (0..procedure.repeats)
        .flat_map(|repeat| {
            let order = order(designs, repeat, procedure.order, seed);
            order.into_iter().map(move |design| RunPlan { design, repeat })
        })
        .collect();
    debug_assert_eq!(
        runs.iter().collect::<HashSet<_>>().len(),
        designs * procedure.repeats as usize
    );
    runs
}

/// The designs in the order of one repeat.
fn order(designs: usize, repeat: u32, order: Order, seed: RootSeed) -> Vec<usize> {
    let forward: Vec<usize> = (0..designs).collect();
    let reversed = |order: &[usize]| order.iter().rev().copied().collect();
    match order {
        Order::Rotating => forward,
        Order::Abba if repeat % 2 == 1 => reversed(&forward),
        Order::Abba => forward,
        Order::Random => {
            // Four repeats at a time: two orders and their reverses, shuffled.
            let (block, place) = (u64::from(repeat / 4), (repeat % 4) as usize);
            let of = |name| shuffled(designs, seed.child(name, block));
            let (first, second) = (of("order.first"), of("order.second"));
            let drawn: [Vec<usize>; 4] = [reversed(&first), reversed(&second), first, second];
            drawn[shuffled(4, seed.child("order.block", block))[place]].clone()
        }
    }
}

/// The numbers below `n` in an order that the seed decides.
fn shuffled(n: usize, seed: RootSeed) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..n).collect();
    numbers.sort_by_key(|number| seed.child("shuffle", *number as u64));
    numbers
}

#[cfg(test)]
mod tests {
    use super::order;
    use crate::plan::Order;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
    use underlay_core::RootSeed;

    fn letters(designs: usize, repeats: u32, by: Order) -> String {
        (0..repeats)
            .flat_map(|repeat| order(designs, repeat, by, RootSeed(1)))
            .map(|design| char::from(b'A' + design as u8))
            .collect()
    }

    #[test]
    fn drawn_orders_are_balanced_and_unpredictable() {
        // Whether A comes first, in 4,000 repeats.
        let first: Vec<bool> =
            (0..4000).map(|repeat| order(2, repeat, Order::Random, RootSeed(7))[0] == 0).collect();
        assert!(first.chunks(4).all(|block| block.iter().filter(|first| **first).count() == 2));
        // Two of four are A B: the next repeat has the same order as this one in 2 of 6 cases within a block
        // and half of them between blocks. Strict alternation has none.
        let same = first.windows(2).filter(|two| two[0] == two[1]).count();
        assert!((1350..=1650).contains(&same), "{same}");
        let other = (0..40).map(|repeat| order(2, repeat, Order::Random, RootSeed(8))[0] == 0);
        assert!(other.ne(first[..40].iter().copied()), "the seed decides");
    }

    #[test]
    fn every_second_repeat_is_reversed() {
        assert_eq!(letters(2, 3, Order::Abba), "ABBAAB");
        assert_eq!(letters(3, 3, Order::Abba), "ABCCBAABC");
        assert_eq!(letters(2, 3, Order::Rotating), "ABABAB");
        assert_eq!(letters(1, 2, Order::Abba), "AA");
    }

    proptest! {
        #[test]
        fn every_design_runs_once_per_repeat(designs in 1..6usize, blocks in 1..4u32, seed: u64) {
            for by in [Order::Abba, Order::Random] {
                let mut places = vec![0; designs];
                for repeat in 0..blocks * 4 {
                    let order = order(designs, repeat, by, RootSeed(seed));
                    let mut sorted = order.clone();
                    sorted.sort_unstable();
                    prop_assert_eq!(sorted, (0..designs).collect::<Vec<_>>());
                    order.iter().enumerate().for_each(|(place, design)| places[*design] += place);
                }
                // All designs have the same mean place.
                prop_assert!(places.iter().all(|place| *place == places[0]), "{by}: {places:?}");
            }
        }
    }
}
