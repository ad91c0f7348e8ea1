//! Rows of the population, for the engine's bulk path.
//!
//! Columns are written in the order of the schemas; the checks of a real server would catch a difference.

use bytes::BytesMut;
use underlay_workload::tpcc::Parameters;
use underlay_workload::tpcc::population::{
    AddressRow, CustomerRow, CustomerRows, DistrictRows, HistoryRows, ItemRows, NewOrderRows,
    OrderLineRows, OrderRows, StockRows, Table, WarehouseRows,
};

use crate::connection::RowEncoder;

/// Appends the next row to a buffer, and says whether there was one.
pub(super) type NextRow = Box<dyn FnMut(&mut BytesMut) -> bool>;

/// The rows of one table and warehouse (for `item`: all rows, at the first warehouse).
pub(super) fn rows<E: RowEncoder + 'static>(
    parameters: &Parameters,
    table: Table,
    warehouse: u32,
) -> NextRow {
    macro_rules! generator {
        ($rows:expr, $columns:literal, |$row:ident, $line:ident| $write:block) => {{
            let mut rows = $rows;
            let mut encoder = E::default();
            Box::new(move |out: &mut BytesMut| match rows.next_row() {
                Some($row) => {
                    encoder.begin(out, $columns);
                    let mut $line = Line { encoder: &mut encoder, out };
                    $write
                    encoder.end(out);
                    true
                }
                None => false,
            })
        }};
    }
    match table {
        Table::Warehouse => {
            generator!(WarehouseRows::new(parameters, warehouse), 9, |row, line| {
                line.int(row.warehouse);
                line.cents(row.ytd_cents);
                line.rate(row.tax_ten_thousandths);
                line.text(row.name.as_bytes());
                line.address(&row.address);
            })
        }
        Table::District => {
            generator!(DistrictRows::new(parameters, warehouse), 11, |row, line| {
                line.ints(&[row.warehouse, row.district, row.next_order]);
                line.cents(row.ytd_cents);
                line.rate(row.tax_ten_thousandths);
                line.text(row.name.as_bytes());
                line.address(&row.address);
            })
        }
        Table::Customer => {
            generator!(CustomerRows::new(parameters, warehouse), 21, |row, line| {
                line.ints(&[row.warehouse, row.district, row.customer]);
                line.ints(&[row.payment_count, row.delivery_count]);
                line.timestamp(row.since.0);
                line.cents(row.balance_cents);
                line.cents(row.ytd_payment_cents);
                line.cents(row.credit_limit_cents);
                line.rate(row.discount_ten_thousandths);
                line.text(row.credit.as_str().as_bytes());
                line.text(row.last.as_bytes());
                line.text(row.first.as_bytes());
                line.text(CustomerRow::MIDDLE.as_bytes());
                line.address(&row.address);
                line.text(row.phone.as_bytes());
                line.text(row.data.as_bytes());
            })
        }
        Table::History => {
            generator!(HistoryRows::new(parameters, warehouse), 8, |row, line| {
                line.ints(&[
                    row.customer,
                    row.district,
                    row.warehouse,
                    row.district,
                    row.warehouse,
                ]);
                line.timestamp(row.date.0);
                line.cents(row.amount_cents);
                line.text(row.data.as_bytes());
            })
        }
        Table::Order => generator!(OrderRows::new(parameters, warehouse), 8, |row, line| {
            line.ints(&[row.warehouse, row.district, row.order, row.customer]);
            line.timestamp(row.entry_date.0);
            match row.carrier {
                Some(carrier) => line.int(carrier),
                None => line.null(),
            }
            line.small(row.line_count);
            line.small(row.all_local);
        }),
        Table::NewOrder => generator!(NewOrderRows::new(warehouse), 3, |row, line| {
            line.ints(&[row.warehouse, row.district, row.order]);
        }),
        Table::OrderLine => {
            generator!(OrderLineRows::new(parameters, warehouse), 10, |row, line| {
                line.ints(&[row.warehouse, row.district, row.order]);
                line.small(row.number);
                line.small(row.quantity);
                line.ints(&[row.item, row.warehouse]);
                match row.delivery_date {
                    Some(date) => line.timestamp(date.0),
                    None => line.null(),
                }
                line.cents(row.amount_cents);
                line.text(row.district_info.as_bytes());
            })
        }
        Table::Stock => generator!(StockRows::new(parameters, warehouse), 17, |row, line| {
            line.ints(&[row.warehouse, row.item, row.quantity, row.ytd]);
            line.ints(&[row.order_count, row.remote_count]);
            for text in &row.districts {
                line.text(text.as_bytes());
            }
            line.text(row.data.as_bytes());
        }),
        Table::Item => generator!(ItemRows::new(parameters), 5, |row, line| {
            line.ints(&[row.item, row.image]);
            line.cents(row.price_cents);
            line.text(row.name.as_bytes());
            line.text(row.data.as_bytes());
        }),
    }
}

/// A row that is being written.
struct Line<'a, E> {
    encoder: &'a mut E,
    out: &'a mut BytesMut,
}

impl<E: RowEncoder> Line<'_, E> {
    fn int(&mut self, value: u32) {
        self.encoder.int(self.out, value);
    }

    fn ints(&mut self, values: &[u32]) {
        values.iter().for_each(|value| self.int(*value));
    }

    fn small(&mut self, value: u32) {
        self.encoder.small(self.out, value);
    }

    fn text(&mut self, text: &[u8]) {
        self.encoder.text(self.out, text);
    }

    fn null(&mut self) {
        self.encoder.null(self.out);
    }

    fn cents(&mut self, cents: i64) {
        self.encoder.cents(self.out, cents);
    }

    fn rate(&mut self, ten_thousandths: u32) {
        self.encoder.rate(self.out, ten_thousandths);
    }

    fn timestamp(&mut self, unix_seconds: i64) {
        self.encoder.timestamp(self.out, unix_seconds);
    }

    fn address(&mut self, address: &AddressRow<'_>) {
        for text in [address.street_1, address.street_2, address.city, address.state, address.zip] {
            self.text(text.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use underlay_core::RootSeed;
    use underlay_workload::tpcc::population::Table;
    use underlay_workload::tpcc::{Entropy, Parameters};

    use super::rows;
    use crate::Engine;
    use crate::connection::Connection;
    use crate::mariadb::MariadbConnection;
    use crate::tpcc::sql::dialect;

    type Encoder = <MariadbConnection as Connection>::Encoder;

    #[test]
    fn every_table_has_its_columns() {
        let parameters = Parameters::new(1, RootSeed(1), Entropy::FULL).unwrap();
        let schema = dialect(Engine::Mariadb).schema;
        for table in Table::ALL {
            let name = crate::schema_ownership::tpcc_name(table);
            let (_, definition) = schema.split_once(&format!("CREATE TABLE {name} (")).unwrap();
            let (columns, _) = definition.split_once(") ENGINE").unwrap();
            let columns = columns
                .lines()
                .filter(|line| !line.trim().is_empty() && !line.contains("PRIMARY KEY"))
                .count();
            let mut out = BytesMut::new();
            assert!(rows::<Encoder>(&parameters, table, 1)(&mut out));
            let line = String::from_utf8(out.to_vec()).unwrap();
            let fields = line.strip_suffix('\n').unwrap().split('\t').count();
            assert_eq!(fields, columns, "{name}: {line}");
        }
    }
}
