//! Inputs of transactions in the form in which all engines take them.

use underlay_workload::tpcc::{CustomerSelector, NewOrder};

use crate::connection::Value;

/// The lines of an order as arrays, sorted by (supplying warehouse, item) so that all transactions lock
/// stock rows in one order.
pub(crate) struct SortedLines {
    pub numbers: Vec<i32>,
    pub items: Vec<i32>,
    pub supplies: Vec<i32>,
    pub quantities: Vec<i32>,
    /// 1, or more for a repeated line of the same stock row.
    pub rounds: Vec<i32>,
}

impl SortedLines {
    /// Sorts the lines of an order.
    pub fn of(order: &NewOrder) -> SortedLines {
        let mut sequence: Vec<usize> = (0..order.lines.len()).collect();
        sequence.sort_unstable_by_key(|index| {
            let line = &order.lines[*index];
            (line.supply_warehouse, line.item, *index)
        });
        let mut lines = SortedLines {
            numbers: Vec::with_capacity(sequence.len()),
            items: Vec::with_capacity(sequence.len()),
            supplies: Vec::with_capacity(sequence.len()),
            quantities: Vec::with_capacity(sequence.len()),
            rounds: Vec::with_capacity(sequence.len()),
        };
        for index in sequence {
            let line = &order.lines[index];
            let (item, supply) = (int(line.item), int(line.supply_warehouse));
            let repeated =
                lines.items.last() == Some(&item) && lines.supplies.last() == Some(&supply);
            let round = if repeated { lines.rounds.last().map_or(1, |round| round + 1) } else { 1 };
            lines.numbers.push(index as i32 + 1);
            lines.items.push(item);
            lines.supplies.push(supply);
            lines.quantities.push(int(line.quantity));
            lines.rounds.push(round);
        }
        lines
    }
}

/// A customer as the functions take it: a number or a last name.
pub(crate) fn selector(customer: &CustomerSelector) -> [Value<'_>; 2] {
    match customer {
        CustomerSelector::ById(id) => [Value::Int(int(*id)), Value::Null],
        CustomerSelector::ByLastName(name) => [Value::Null, Value::Text(name.as_bytes())],
    }
}

/// An identifier as the engines store it.
pub(crate) fn int(value: u32) -> i32 {
    i32::try_from(value).expect("identifiers of TPC-C fit into 31 bits")
}

#[cfg(test)]
mod tests {
    use super::SortedLines;
    use underlay_workload::tpcc::{NewOrder, OrderLineInput};

    #[test]
    fn lines_are_sorted_and_repeats_come_in_rounds() {
        let line = |item, supply_warehouse| OrderLineInput { item, supply_warehouse, quantity: 5 };
        let order = NewOrder {
            warehouse: 2,
            district: 1,
            customer: 1,
            lines: vec![line(9, 2), line(3, 2), line(9, 2), line(9, 1)],
        };
        let lines = SortedLines::of(&order);
        assert_eq!(lines.supplies, [1, 2, 2, 2]);
        assert_eq!(lines.items, [9, 3, 9, 9]);
        assert_eq!(lines.rounds, [1, 1, 1, 2]);
        assert_eq!(lines.numbers, [4, 2, 1, 3]);
    }
}
