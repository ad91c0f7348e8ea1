//! Rows of the population in PostgreSQL's binary COPY format.
//!
//! The format (chapter "COPY", section "Binary Format" of the manual): a signature, then per row the number
//! of columns and per column its length and its bytes in the type's binary form, big-endian; at the end
//! -1. Binary because the server parses it faster than text, and numbers and dates need no formatting.
//!
//! Columns are written in the order of `sql/schema.sql`; a test against a real server would catch a
//! difference, because the checks do.

use bytes::{BufMut, BytesMut};
use underlay_workload::tpcc::Parameters;
use underlay_workload::tpcc::population::{
    AddressRow, CustomerRow, CustomerRows, DistrictRows, HistoryRows, ItemRows, NewOrderRows,
    OrderLineRows, OrderRows, StockRows, Table, Text, UnixSeconds, WarehouseRows,
};

use crate::postgres::numeric::{put_cents, put_rate};

/// What precedes the rows.
pub const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// What follows them.
pub const TRAILER: &[u8] = &[0xff, 0xff];

/// Microseconds of the server's epoch, 2000-01-01, after the Unix epoch.
const EPOCH_SECONDS: i64 = 946_684_800;

/// Appends rows of one table and warehouse (for `item`: all rows, at the first warehouse) to `out`, and
/// calls `full` with the number of rows so far whenever `out` holds `chunk` bytes or more.
///
/// Returns the number of rows.
pub fn rows(
    parameters: &Parameters,
    table: Table,
    warehouse: u32,
) -> Box<dyn FnMut(&mut BytesMut) -> bool + Send> {
    macro_rules! generator {
        ($rows:expr, $encode:expr) => {{
            let mut rows = $rows;
            Box::new(move |out: &mut BytesMut| match rows.next_row() {
                Some(row) => {
                    $encode(&row, out);
                    true
                }
                None => false,
            })
        }};
    }
    match table {
        Table::Warehouse => generator!(
            WarehouseRows::new(parameters, warehouse),
            |row: &underlay_workload::tpcc::population::WarehouseRow<'_>, out: &mut BytesMut| {
                out.put_i16(9);
                put_int(out, row.warehouse);
                put_money(out, row.ytd_cents);
                put_tax(out, row.tax_ten_thousandths);
                put_text(out, row.name);
                put_address(out, &row.address);
            }
        ),
        Table::District => generator!(
            DistrictRows::new(parameters, warehouse),
            |row: &underlay_workload::tpcc::population::DistrictRow<'_>, out: &mut BytesMut| {
                out.put_i16(11);
                put_int(out, row.warehouse);
                put_int(out, row.district);
                put_int(out, row.next_order);
                put_money(out, row.ytd_cents);
                put_tax(out, row.tax_ten_thousandths);
                put_text(out, row.name);
                put_address(out, &row.address);
            }
        ),
        Table::Customer => generator!(CustomerRows::new(parameters, warehouse), put_customer),
        Table::History => generator!(
            HistoryRows::new(parameters, warehouse),
            |row: &underlay_workload::tpcc::population::HistoryRow<'_>, out: &mut BytesMut| {
                out.put_i16(8);
                put_int(out, row.customer);
                put_int(out, row.district);
                put_int(out, row.warehouse);
                put_int(out, row.district);
                put_int(out, row.warehouse);
                put_date(out, row.date);
                put_money(out, row.amount_cents);
                put_text(out, row.data);
            }
        ),
        Table::Order => generator!(
            OrderRows::new(parameters, warehouse),
            |row: &underlay_workload::tpcc::population::OrderRow, out: &mut BytesMut| {
                out.put_i16(8);
                put_int(out, row.warehouse);
                put_int(out, row.district);
                put_int(out, row.order);
                put_int(out, row.customer);
                put_date(out, row.entry_date);
                match row.carrier {
                    Some(carrier) => put_int(out, carrier),
                    None => put_null(out),
                }
                put_small(out, row.line_count);
                put_small(out, row.all_local);
            }
        ),
        Table::NewOrder => generator!(
            NewOrderRows::new(warehouse),
            |row: &underlay_workload::tpcc::population::NewOrderRow, out: &mut BytesMut| {
                out.put_i16(3);
                put_int(out, row.warehouse);
                put_int(out, row.district);
                put_int(out, row.order);
            }
        ),
        Table::OrderLine => generator!(
            OrderLineRows::new(parameters, warehouse),
            |row: &underlay_workload::tpcc::population::OrderLineRow<'_>, out: &mut BytesMut| {
                out.put_i16(10);
                put_int(out, row.warehouse);
                put_int(out, row.district);
                put_int(out, row.order);
                put_small(out, row.number);
                put_small(out, row.quantity);
                put_int(out, row.item);
                put_int(out, row.warehouse);
                match row.delivery_date {
                    Some(date) => put_date(out, date),
                    None => put_null(out),
                }
                put_money(out, row.amount_cents);
                put_text(out, row.district_info);
            }
        ),
        Table::Stock => generator!(
            StockRows::new(parameters, warehouse),
            |row: &underlay_workload::tpcc::population::StockRow<'_>, out: &mut BytesMut| {
                out.put_i16(17);
                put_int(out, row.warehouse);
                put_int(out, row.item);
                put_int(out, row.quantity);
                put_int(out, row.ytd);
                put_int(out, row.order_count);
                put_int(out, row.remote_count);
                row.districts.iter().for_each(|text| put_text(out, *text));
                put_text(out, row.data);
            }
        ),
        Table::Item => generator!(
            ItemRows::new(parameters),
            |row: &underlay_workload::tpcc::population::ItemRow<'_>, out: &mut BytesMut| {
                out.put_i16(5);
                put_int(out, row.item);
                put_int(out, row.image);
                put_money(out, row.price_cents);
                put_text(out, row.name);
                put_text(out, row.data);
            }
        ),
    }
}

fn put_customer(row: &CustomerRow<'_>, out: &mut BytesMut) {
    out.put_i16(21);
    put_int(out, row.warehouse);
    put_int(out, row.district);
    put_int(out, row.customer);
    put_int(out, row.payment_count);
    put_int(out, row.delivery_count);
    put_date(out, row.since);
    put_money(out, row.balance_cents);
    put_money(out, row.ytd_payment_cents);
    put_money(out, row.credit_limit_cents);
    put_tax(out, row.discount_ten_thousandths);
    put_bytes(out, row.credit.as_str().as_bytes());
    put_text(out, row.last);
    put_text(out, row.first);
    put_bytes(out, CustomerRow::MIDDLE.as_bytes());
    put_address(out, &row.address);
    put_text(out, row.phone);
    put_text(out, row.data);
}

fn put_address(out: &mut BytesMut, address: &AddressRow<'_>) {
    for text in [address.street_1, address.street_2, address.city, address.state, address.zip] {
        put_text(out, text);
    }
}

fn put_int(out: &mut BytesMut, value: u32) {
    out.put_i32(4);
    out.put_u32(value);
}

fn put_small(out: &mut BytesMut, value: u32) {
    out.put_i32(2);
    out.put_u16(value as u16);
}

fn put_text(out: &mut BytesMut, text: Text<'_>) {
    put_bytes(out, text.as_bytes());
}

fn put_bytes(out: &mut BytesMut, bytes: &[u8]) {
    out.put_i32(bytes.len() as i32);
    out.put_slice(bytes);
}

fn put_null(out: &mut BytesMut) {
    out.put_i32(-1);
}

fn put_date(out: &mut BytesMut, date: UnixSeconds) {
    out.put_i32(8);
    out.put_i64((date.0 - EPOCH_SECONDS) * 1_000_000);
}

fn put_money(out: &mut BytesMut, cents: i64) {
    put_sized(out, |out| put_cents(out, cents));
}

fn put_tax(out: &mut BytesMut, ten_thousandths: u32) {
    put_sized(out, |out| put_rate(out, ten_thousandths));
}

/// A value whose length is known only when it is written.
fn put_sized(out: &mut BytesMut, put: impl FnOnce(&mut BytesMut)) {
    let at = out.len();
    out.put_i32(0);
    put(out);
    let length = (out.len() - at - 4) as i32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}
