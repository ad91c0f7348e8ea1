//! Inputs of transactions as statements take them.

use underlay_workload::dvdstore::Line;
use underlay_workload::dvdstore::population::{CUSTOMER_VALUES, Date, Fields, write_customer};

/// The password of every customer.
pub(crate) const PASSWORD: &str = "password";

/// A column of a new customer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A number.
    Integer(i32),
    /// Text.
    Text(String),
}

/// The columns of a new customer.
pub(crate) fn customer_values(draw: u64, username: &str) -> Vec<Value> {
    let mut values = Values(Vec::with_capacity(CUSTOMER_VALUES));
    write_customer(draw, username, &mut values);
    debug_assert_eq!(values.0.len(), CUSTOMER_VALUES);
    values.0
}

struct Values(Vec<Value>);

impl Fields for Values {
    fn integer(&mut self, value: i64) {
        self.0.push(Value::Integer(value as i32));
    }

    fn text(&mut self, value: &str) {
        self.0.push(Value::Text(value.to_string()));
    }

    fn cents(&mut self, _: i64) {
        unreachable!("a customer has no amounts")
    }

    fn date(&mut self, _: Date) {
        unreachable!("a customer has no dates")
    }

    fn end_row(&mut self) {}
}

/// The price of lines, by the prices of their products; none where a product has no price.
pub(crate) fn net_cents(lines: &[Line], prices: &[(i32, i64)]) -> Option<i64> {
    lines
        .iter()
        .map(|line| {
            let price = prices.iter().find(|(product, _)| *product == line.product as i32);
            price.map(|(_, cents)| cents * i64::from(line.quantity))
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::{Value, customer_values, net_cents};
    use underlay_workload::dvdstore::Line;

    #[test]
    fn new_customers_have_all_columns() {
        let values = customer_values(7, "new1-2");
        assert_eq!(values.len(), 19);
        assert_eq!(values[14], Value::Text("new1-2".to_string()));
        assert_eq!(values[15], Value::Text("password".to_string()));
        assert_eq!(values, customer_values(7, "new1-2"));
        assert_ne!(values, customer_values(8, "new1-2"));
    }

    #[test]
    fn amounts_are_prices_times_pieces() {
        let line = |product, quantity| Line { product, quantity };
        let lines = [line(3, 2), line(3, 1), line(9, 3)];
        assert_eq!(net_cents(&lines, &[(9, 1_000), (3, 999)]), Some(3 * 999 + 3_000));
        assert_eq!(net_cents(&lines, &[(9, 1_000)]), None);
    }
}
