//! ORDERS, ORDERLINES and CUST_HIST: the twelve months before the load.
//!
//! An order's net amount is the price of its lines, so that totals can be checked; the mean, 200, is that of the
//! published 0.01 to 400.00.

use super::date::Date;
use super::fields::Fields;
use super::products::Catalogue;
use super::table::Table;
use crate::dvdstore::Parameters;
use crate::dvdstore::money::tax_cents;
use crate::dvdstore::random::{Counts, TableKey};

/// Lines of an order: 1 to 9, 5 on average.
type LineCounts = Counts<1, 9>;
const QUANTITY_MAX: u32 = 3;

#[derive(Clone, Debug)]
pub(super) struct Orders {
    catalogue: Catalogue,
    key: TableKey,
    counts: LineCounts,
    customers: u32,
    per_month: u32,
}

fn counts(parameters: &Parameters) -> LineCounts {
    Counts::new(TableKey::new(parameters.seed, "orderlines"))
}

/// Lines of the first `orders` orders.
pub(super) fn lines_before(parameters: &Parameters, orders: u64) -> u64 {
    counts(parameters).of(orders).1
}

impl Orders {
    pub(super) fn new(parameters: &Parameters) -> Orders {
        Orders {
            catalogue: Catalogue::new(parameters),
            key: TableKey::new(parameters.seed, "orders"),
            counts: counts(parameters),
            customers: parameters.size.customers(),
            per_month: parameters.size.orders_per_month(),
        }
    }

    /// The order `number`, from 1, as rows of `table`.
    pub(super) fn write(&mut self, table: Table, number: u64, fields: &mut impl Fields) {
        let mut random = self.key.row(number);
        let customer = i64::from(random.uniform(1, self.customers));
        let month = ((number - 1) / u64::from(self.per_month)) as u32 + 1;
        let date = Date { month, day: random.uniform(1, Date::days(month)) };
        let (lines, _) = self.counts.of(number - 1);
        let mut net_cents = 0;
        for line in 1..=lines {
            let product = random.uniform(1, self.catalogue.products());
            let quantity = random.uniform(1, QUANTITY_MAX);
            match table {
                Table::OrderLines => {
                    fields.integer(i64::from(line));
                    fields.integer(number as i64);
                    fields.integer(i64::from(product));
                    fields.integer(i64::from(quantity));
                    fields.date(date);
                    fields.end_row();
                }
                Table::CustHist => {
                    fields.integer(customer);
                    fields.integer(number as i64);
                    fields.integer(i64::from(product));
                    fields.end_row();
                }
                _ => net_cents += i64::from(quantity) * self.catalogue.price_cents(product),
            }
        }
        if table == Table::Orders {
            let tax_cents = tax_cents(net_cents);
            fields.integer(number as i64);
            fields.date(date);
            fields.integer(customer);
            fields.cents(net_cents);
            fields.cents(tax_cents);
            fields.cents(net_cents + tax_cents);
            fields.end_row();
        }
    }
}
