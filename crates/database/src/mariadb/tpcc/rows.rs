//! Rows of the population as the text that `LOAD DATA` reads: a tab between fields, a newline after a row.
//!
//! The population's text has neither tabs nor newlines nor backslashes, so nothing is escaped. Columns
//! are written in the order of `sql/schema.sql`; the checks of a real server would catch a difference.

use bytes::{BufMut, BytesMut};
use underlay_workload::tpcc::Parameters;
use underlay_workload::tpcc::population::{
    AddressRow, CustomerRow, CustomerRows, DistrictRow, DistrictRows, HistoryRow, HistoryRows,
    ItemRow, ItemRows, NewOrderRow, NewOrderRows, OrderLineRow, OrderLineRows, OrderRow, OrderRows,
    StockRow, StockRows, Table, Text, UnixSeconds, WarehouseRow, WarehouseRows,
};

/// Appends the next row of one table and warehouse (for `item`: all rows, at the first warehouse), and
/// says whether there was one.
pub fn rows(
    parameters: &Parameters,
    table: Table,
    warehouse: u32,
) -> Box<dyn FnMut(&mut BytesMut) -> bool + Send> {
    macro_rules! generator {
        ($rows:expr, |$row:ident: $kind:ty| [$($field:expr),+ $(,)?]) => {{
            let mut rows = $rows;
            let mut date = DateText::default();
            Box::new(move |out: &mut BytesMut| match rows.next_row() {
                Some($row) => {
                    let $row: $kind = $row;
                    let mut line = Line { out, date: &mut date, is_first: true };
                    $(Field::put(&$field, &mut line);)+
                    out.put_u8(b'\n');
                    true
                }
                None => false,
            })
        }};
    }
    match table {
        Table::Warehouse => {
            generator!(WarehouseRows::new(parameters, warehouse), |row: WarehouseRow<'_>| [
                row.warehouse,
                Cents(row.ytd_cents),
                Rate(row.tax_ten_thousandths),
                row.name,
                row.address,
            ])
        }
        Table::District => {
            generator!(DistrictRows::new(parameters, warehouse), |row: DistrictRow<'_>| [
                row.warehouse,
                row.district,
                row.next_order,
                Cents(row.ytd_cents),
                Rate(row.tax_ten_thousandths),
                row.name,
                row.address,
            ])
        }
        Table::Customer => {
            generator!(CustomerRows::new(parameters, warehouse), |row: CustomerRow<'_>| [
                row.warehouse,
                row.district,
                row.customer,
                row.payment_count,
                row.delivery_count,
                row.since,
                Cents(row.balance_cents),
                Cents(row.ytd_payment_cents),
                Cents(row.credit_limit_cents),
                Rate(row.discount_ten_thousandths),
                Plain(row.credit.as_str()),
                row.last,
                row.first,
                Plain(CustomerRow::MIDDLE),
                row.address,
                row.phone,
                row.data,
            ])
        }
        Table::History => {
            generator!(HistoryRows::new(parameters, warehouse), |row: HistoryRow<'_>| [
                row.customer,
                row.district,
                row.warehouse,
                row.district,
                row.warehouse,
                row.date,
                Cents(row.amount_cents),
                row.data,
            ])
        }
        Table::Order => generator!(OrderRows::new(parameters, warehouse), |row: OrderRow| [
            row.warehouse,
            row.district,
            row.order,
            row.customer,
            row.entry_date,
            row.carrier,
            row.line_count,
            row.all_local,
        ]),
        Table::NewOrder => generator!(NewOrderRows::new(warehouse), |row: NewOrderRow| [
            row.warehouse,
            row.district,
            row.order
        ]),
        Table::OrderLine => {
            generator!(OrderLineRows::new(parameters, warehouse), |row: OrderLineRow<'_>| [
                row.warehouse,
                row.district,
                row.order,
                row.number,
                row.quantity,
                row.item,
                row.warehouse,
                row.delivery_date,
                Cents(row.amount_cents),
                row.district_info,
            ])
        }
        Table::Stock => generator!(StockRows::new(parameters, warehouse), |row: StockRow<'_>| [
            row.warehouse,
            row.item,
            row.quantity,
            row.ytd,
            row.order_count,
            row.remote_count,
            row.districts[0],
            row.districts[1],
            row.districts[2],
            row.districts[3],
            row.districts[4],
            row.districts[5],
            row.districts[6],
            row.districts[7],
            row.districts[8],
            row.districts[9],
            row.data,
        ]),
        Table::Item => generator!(ItemRows::new(parameters), |row: ItemRow<'_>| [
            row.item,
            row.image,
            Cents(row.price_cents),
            row.name,
            row.data
        ]),
    }
}

/// A row that is being written.
struct Line<'a> {
    out: &'a mut BytesMut,
    date: &'a mut DateText,
    is_first: bool,
}

impl Line<'_> {
    /// Begins the next field.
    fn next(&mut self) -> &mut BytesMut {
        if !self.is_first {
            self.out.put_u8(b'\t');
        }
        self.is_first = false;
        self.out
    }
}

/// What a field can be.
trait Field {
    fn put(&self, line: &mut Line<'_>);
}

/// An amount in cents.
struct Cents(i64);
/// A rate in ten-thousandths.
struct Rate(u32);
/// Text that is not the generator's.
struct Plain<'a>(&'a str);

impl Field for u32 {
    fn put(&self, line: &mut Line<'_>) {
        put_number(line.next(), u64::from(*self), 1);
    }
}

impl<T: Field> Field for Option<T> {
    fn put(&self, line: &mut Line<'_>) {
        match self {
            Some(value) => value.put(line),
            None => line.next().put_slice(b"\\N"),
        }
    }
}

impl Field for Text<'_> {
    fn put(&self, line: &mut Line<'_>) {
        line.next().put_slice(self.as_bytes());
    }
}

impl Field for Plain<'_> {
    fn put(&self, line: &mut Line<'_>) {
        line.next().put_slice(self.0.as_bytes());
    }
}

impl Field for AddressRow<'_> {
    fn put(&self, line: &mut Line<'_>) {
        for text in [self.street_1, self.street_2, self.city, self.state, self.zip] {
            text.put(line);
        }
    }
}

impl Field for Cents {
    fn put(&self, line: &mut Line<'_>) {
        let out = line.next();
        if self.0 < 0 {
            out.put_u8(b'-');
        }
        put_number(out, self.0.unsigned_abs() / 100, 1);
        out.put_u8(b'.');
        put_number(out, self.0.unsigned_abs() % 100, 2);
    }
}

impl Field for Rate {
    fn put(&self, line: &mut Line<'_>) {
        let out = line.next();
        put_number(out, u64::from(self.0 / 10_000), 1);
        out.put_u8(b'.');
        put_number(out, u64::from(self.0 % 10_000), 4);
    }
}

impl Field for UnixSeconds {
    fn put(&self, line: &mut Line<'_>) {
        line.next();
        let text = line.date.of(*self);
        line.out.put_slice(text);
    }
}

/// Appends a number with at least `width` digits.
fn put_number(out: &mut BytesMut, mut value: u64, width: usize) {
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    while value > 0 {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
    }
    out.put_slice(&digits[at.min(digits.len() - width)..]);
}

/// The last date as text: nearly all dates of a population are the same.
struct DateText {
    date: UnixSeconds,
    text: String,
}

impl Default for DateText {
    fn default() -> DateText {
        DateText { date: UnixSeconds(0), text: "1970-01-01 00:00:00".to_string() }
    }
}

impl DateText {
    fn of(&mut self, date: UnixSeconds) -> &[u8] {
        if date != self.date {
            *self = DateText { date, text: date_text(date) };
        }
        self.text.as_bytes()
    }
}

/// `2026-01-01 00:00:00`. Days become a date by the proleptic Gregorian calendar, whose years begin in
/// March here, so that the day that leap years add is a year's last.
fn date_text(date: UnixSeconds) -> String {
    let (days, seconds) = (date.0.div_euclid(86_400), date.0.rem_euclid(86_400));
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!(
        "{:04}-{month:02}-{day:02} {:02}:{:02}:{:02}",
        year + era * 400 + next,
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    )
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use underlay_core::RootSeed;
    use underlay_workload::tpcc::population::{Table, UnixSeconds};
    use underlay_workload::tpcc::{Entropy, Parameters};

    use super::{Cents, Field, Line, Rate, date_text, rows};

    #[test]
    fn dates_are_those_of_the_calendar() {
        let check = |seconds, text: &str| assert_eq!(date_text(UnixSeconds(seconds)), text);
        check(0, "1970-01-01 00:00:00");
        check(951_782_400, "2000-02-29 00:00:00");
        check(1_709_164_800, "2024-02-29 00:00:00");
        check(1_767_225_600, "2026-01-01 00:00:00");
        check(1_767_225_599, "2025-12-31 23:59:59");
    }

    #[test]
    fn money_and_rates_are_exact() {
        let text = |field: &dyn Fn(&mut Line<'_>)| {
            let (mut out, mut date) = (BytesMut::new(), super::DateText::default());
            field(&mut Line { out: &mut out, date: &mut date, is_first: true });
            String::from_utf8(out.to_vec()).unwrap()
        };
        assert_eq!(text(&|line| Cents(30_000_000).put(line)), "300000.00");
        assert_eq!(text(&|line| Cents(-1_005).put(line)), "-10.05");
        assert_eq!(text(&|line| Rate(2_000).put(line)), "0.2000");
        assert_eq!(text(&|line| Rate(7).put(line)), "0.0007");
        assert_eq!(text(&|line| 0u32.put(line)), "0");
    }

    #[test]
    fn every_table_has_its_columns() {
        let parameters = Parameters::new(1, RootSeed(1), Entropy::FULL).unwrap();
        let schema = super::super::schema_sql();
        for table in Table::ALL {
            let name = crate::schema_ownership::tpcc_name(table);
            let (_, definition) = schema.split_once(&format!("CREATE TABLE {name} (")).unwrap();
            let (columns, _) = definition.split_once(") ENGINE").unwrap();
            let columns = columns
                .lines()
                .filter(|line| !line.trim().is_empty() && !line.contains("PRIMARY KEY"))
                .count();
            let mut out = BytesMut::new();
            assert!(rows(&parameters, table, 1)(&mut out));
            let line = String::from_utf8(out.to_vec()).unwrap();
            let fields = line.strip_suffix('\n').unwrap().split('\t').count();
            assert_eq!(fields, columns, "{name}: {line}");
        }
    }
}
