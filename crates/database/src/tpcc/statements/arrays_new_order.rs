//! New-Order, statement by statement.
//!
//! Its items are read at once, its stock is locked and read at once and taken with an array of the lines' values, its
//! lines are inserted at once: as an application does that knows all lines from the beginning.

use underlay_workload::tpcc::NewOrder;
use underlay_workload::tpcc::cardinality::LINES_PER_ORDER_MAX;

use super::arrays::{Arrays, INSERT_LINES};
use crate::connection::Value::{self, Int};
use crate::connection::{Connection, RequestError, Row};
use crate::tpcc::Outcome;
use crate::tpcc::inputs::{SortedLines, int};

/// For how many lines the statements have room.
const LINES_MAX: usize = LINES_PER_ORDER_MAX as usize;

/// An item that exists.
struct Item {
    id: i32,
    cents: i64,
}

/// A row of stock, locked.
struct Stock {
    warehouse: i32,
    item: i32,
    quantity: i32,
    /// The text for the order's district.
    dist_info: Vec<u8>,
}

impl<C: Connection> Arrays<C> {
    pub(super) async fn new_order(
        &self,
        link: &mut C,
        order: &NewOrder,
    ) -> Result<Outcome, RequestError> {
        let (warehouse, district) = (int(order.warehouse), int(order.district));
        let customer = int(order.customer);
        let lines = SortedLines::of(order);
        let numbered = link.change(&self.district_next, &[warehouse, district].map(Int)).await?;
        let order_id =
            i32::try_from(numbered.last_insert_id).map_err(|_| RequestError::no_row())?;
        link.row(&self.terms, &[warehouse, district, customer].map(Int), |_| Ok(())).await?;
        let all_local = lines.supplies.iter().all(|supply| *supply == warehouse);
        let count = lines.items.len() as i32;
        let values = [warehouse, district, order_id, customer, count, i32::from(all_local)];
        link.change(&self.insert_order, &values.map(Int)).await?;
        let values = [warehouse, district, order_id];
        link.change(&self.insert_new_order, &values.map(Int)).await?;
        let items = self.items(link, &lines.items).await?;
        // The 1 % of orders with an item that does not exist: all their valid lines are carried out before the
        // transaction is undone, as clause 2.4.2.3 wants.
        let exists = |index: &usize| items.iter().any(|item| item.id == lines.items[*index]);
        let valid: Vec<usize> = (0..lines.items.len()).filter(exists).collect();
        if !valid.is_empty() {
            let mut stock = self.stock(link, district, &lines, &valid).await?;
            let mut taken = Vec::with_capacity(valid.len());
            let mut text = INSERT_LINES.as_bytes().to_vec();
            for index in &valid {
                let (item, supply) = (lines.items[*index], lines.supplies[*index]);
                let quantity = lines.quantities[*index];
                let held = stock
                    .iter_mut()
                    .find(|held| (held.warehouse, held.item) == (supply, item))
                    .ok_or_else(RequestError::no_row)?;
                held.take(quantity);
                let remote = i32::from(supply != warehouse);
                taken.push([held.quantity, quantity, remote, supply, item].map(Int));
                let price = items.iter().find(|known| known.id == item).map(|known| known.cents);
                let cents = price.ok_or_else(RequestError::no_row)? * i64::from(quantity);
                let number = lines.numbers[*index];
                let numbers = [warehouse, district, order_id, number, quantity, item, supply];
                push_line(&mut text, &numbers, cents, &held.dist_info);
            }
            link.change_each(&self.take_stock, &taken).await?;
            // Behind the last line.
            text.pop();
            link.query(&text).await?;
        }
        if valid.len() < lines.items.len() {
            return Ok(Outcome::ROLLED_BACK);
        }
        Ok(Outcome { order_id: Some(order_id.cast_unsigned()), ..Outcome::COMMITTED })
    }

    /// The items that exist.
    async fn items(&self, link: &mut C, wanted: &[i32]) -> Result<Vec<Item>, RequestError> {
        let last = *wanted.last().ok_or_else(RequestError::no_row)?;
        let mut values = [Int(last); LINES_MAX];
        fill(&mut values, wanted.iter().copied().map(Int))?;
        let read = |row: C::Row<'_>| Ok(Item { id: row.number(0)?, cents: row.number(1)? });
        link.list(&self.items, &values, read).await
    }

    /// The rows of stock of those lines whose items exist.
    async fn stock(
        &self,
        link: &mut C,
        district: i32,
        lines: &SortedLines,
        valid: &[usize],
    ) -> Result<Vec<Stock>, RequestError> {
        let key = |index: &usize| [Int(lines.supplies[*index]), Int(lines.items[*index])];
        let [supply, item] = key(valid.last().ok_or_else(RequestError::no_row)?);
        let mut values = [supply; 1 + 2 * LINES_MAX];
        values[0] = Int(district);
        for pair in values[1..].chunks_exact_mut(2) {
            pair[1] = item;
        }
        fill(&mut values[1..], valid.iter().flat_map(key))?;
        let read = |row: C::Row<'_>| {
            Ok(Stock {
                warehouse: row.number(0)?,
                item: row.number(1)?,
                quantity: row.number(2)?,
                dist_info: row.bytes(4)?,
            })
        };
        link.list(&self.stock, &values, read).await
    }
}

impl Stock {
    /// Takes from what is left, and orders more when it is little (clause 2.4.2.2).
    fn take(&mut self, quantity: i32) {
        self.quantity -= quantity;
        if self.quantity < 10 {
            self.quantity += 91;
        }
    }
}

/// Writes `given` over the first of `values`; there is room for the longest order.
fn fill<'a>(
    values: &mut [Value<'a>],
    given: impl Iterator<Item = Value<'a>>,
) -> Result<(), RequestError> {
    let mut places = values.iter_mut();
    for value in given {
        *places.next().ok_or_else(RequestError::no_row)? = value;
    }
    Ok(())
}

/// Appends the values of a line, and a comma.
fn push_line(text: &mut Vec<u8>, numbers: &[i32; 7], cents: i64, dist_info: &[u8]) {
    text.push(b'(');
    for number in numbers {
        push_number(text, number.unsigned_abs());
        text.push(b',');
    }
    text.extend_from_slice(b"NULL,");
    debug_assert!(cents >= 0, "a line costs something");
    text.extend_from_slice(format!("{}.{:02}", cents / 100, cents % 100).as_bytes());
    text.extend_from_slice(b",'");
    // Texts of the population are letters and digits; what another has put there is quoted.
    for byte in dist_info {
        if matches!(byte, b'\\' | b'\'') {
            text.push(*byte);
        }
        text.push(*byte);
    }
    text.extend_from_slice(b"'),");
}

fn push_number(text: &mut Vec<u8>, number: u32) {
    let begin = text.len();
    let mut rest = number;
    loop {
        text.push(b'0' + (rest % 10) as u8);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    text[begin..].reverse();
}

#[cfg(test)]
mod tests {
    use super::{LINES_MAX, Stock, push_line};
    use crate::tpcc::statements::arrays::texts;

    #[test]
    fn lines_are_written_as_the_statement_reads_them() {
        let mut text = Vec::new();
        push_line(&mut text, &[1, 10, 3001, 2, 5, 100_000, 1], 1_205, b"a'b\\c");
        let expected = r"(1,10,3001,2,5,100000,1,NULL,12.05,'a''b\\c'),";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }

    #[test]
    fn little_stock_is_filled_up() {
        let left = |quantity, taken| {
            let mut stock = Stock { warehouse: 1, item: 1, quantity, dist_info: Vec::new() };
            stock.take(taken);
            stock.quantity
        };
        assert_eq!((left(20, 10), left(19, 10), left(10, 1)), (10, 100, 100));
    }

    #[test]
    fn lists_have_room_for_the_longest_order() {
        let count = |name: &str| {
            let texts = texts();
            let text = texts.iter().find(|text| text.contains(name)).unwrap();
            text.matches('?').count()
        };
        assert_eq!(count("i_id IN ("), LINES_MAX);
        assert_eq!(count("(s_w_id, s_i_id) IN ("), 1 + 2 * LINES_MAX);
    }
}
