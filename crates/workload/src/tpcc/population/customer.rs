//! CUSTOMER: 3,000 rows per district.

use super::address::{AddressBuffer, AddressRow};
use super::load_time::{LOADED_AT, UnixSeconds};
use super::selection::Selection;
use super::text::{Text, TextBuffer, TextSource};
use crate::tpcc::cardinality::{CUSTOMERS_PER_DISTRICT, DISTRICTS_PER_WAREHOUSE, LAST_NAMES};
use crate::tpcc::names::{LAST_NAME_BYTES_MAX, write_last_name};
use crate::tpcc::nurand;
use crate::tpcc::{Constants, Parameters};

/// A row of CUSTOMER. C_MIDDLE is [`CustomerRow::MIDDLE`] in all rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CustomerRow<'a> {
    /// C_W_ID, from 1.
    pub warehouse: u32,
    /// C_D_ID, 1 to 10.
    pub district: u32,
    /// C_ID, 1 to 3,000.
    pub customer: u32,
    /// C_FIRST, 8 to 16 characters; random whatever the entropy is, as it orders namesakes.
    pub first: Text<'a>,
    /// C_LAST, one of the 1,000 last names.
    pub last: Text<'a>,
    /// C_STREET_1 to C_ZIP.
    pub address: AddressRow<'a>,
    /// C_PHONE, 16 digits.
    pub phone: Text<'a>,
    /// C_SINCE.
    pub since: UnixSeconds,
    /// C_CREDIT.
    pub credit: Credit,
    /// C_CREDIT_LIM in cents: 50,000.00.
    pub credit_limit_cents: i64,
    /// C_DISCOUNT in ten-thousandths, 0 to 5,000.
    pub discount_ten_thousandths: u32,
    /// C_BALANCE in cents: -10.00.
    pub balance_cents: i64,
    /// C_YTD_PAYMENT in cents: 10.00.
    pub ytd_payment_cents: i64,
    /// C_PAYMENT_CNT: 1.
    pub payment_count: u32,
    /// C_DELIVERY_CNT: 0.
    pub delivery_count: u32,
    /// C_DATA, 300 to 500 characters.
    pub data: Text<'a>,
}

impl CustomerRow<'_> {
    /// C_MIDDLE.
    pub const MIDDLE: &'static str = "OE";
}

/// C_CREDIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Credit {
    /// `GC`, 90 % of the customers.
    Good,
    /// `BC`, 10 % of the customers.
    Bad,
}

impl Credit {
    /// The value of the column.
    pub const fn as_str(self) -> &'static str {
        match self {
            Credit::Good => "GC",
            Credit::Bad => "BC",
        }
    }
}

/// Generates the rows of CUSTOMER of one warehouse.
#[derive(Clone, Debug)]
pub struct CustomerRows {
    source: TextSource,
    constants: Constants,
    bad_credit: Selection,
    warehouse: u32,
    /// Rows generated so far.
    row: u32,
    first: TextBuffer<16>,
    last: TextBuffer<LAST_NAME_BYTES_MAX>,
    address: AddressBuffer,
    phone: TextBuffer<16>,
    data: TextBuffer<500>,
}

impl CustomerRows {
    /// Rows per warehouse.
    pub const COUNT: u32 = DISTRICTS_PER_WAREHOUSE * CUSTOMERS_PER_DISTRICT;

    /// The rows of `warehouse`, counted from 1.
    pub fn new(parameters: &Parameters, warehouse: u32) -> CustomerRows {
        CustomerRows {
            source: TextSource::new(parameters, "tpcc/customer", warehouse),
            constants: parameters.constants,
            bad_credit: Selection::tenth_of(Self::COUNT),
            warehouse,
            row: 0,
            first: TextBuffer::new(),
            last: TextBuffer::new(),
            address: AddressBuffer::new(),
            phone: TextBuffer::new(),
            data: TextBuffer::new(),
        }
    }

    /// The next row, by district and customer.
    pub fn next_row(&mut self) -> Option<CustomerRow<'_>> {
        if self.row == Self::COUNT {
            return None;
        }
        let district = self.row / CUSTOMERS_PER_DISTRICT + 1;
        let customer = self.row % CUSTOMERS_PER_DISTRICT + 1;
        self.row += 1;
        let name = self.last_name_number(customer);
        self.last.write_with(|out| write_last_name(name, out));
        self.generate_texts();
        Some(CustomerRow {
            warehouse: self.warehouse,
            district,
            customer,
            credit: self.credit(),
            discount_ten_thousandths: self.source.number(0, 5_000),
            first: self.first.text(),
            last: self.last.text(),
            address: self.address.row(),
            phone: self.phone.text(),
            data: self.data.text(),
            since: LOADED_AT,
            credit_limit_cents: 5_000_000,
            balance_cents: -1_000,
            ytd_payment_cents: 1_000,
            payment_count: 1,
            delivery_count: 0,
        })
    }

    /// The first thousand customers have all names in sequence, the others non-uniform ones.
    fn last_name_number(&mut self, customer: u32) -> u32 {
        if customer <= LAST_NAMES {
            customer - 1
        } else {
            nurand::last_name_number(self.source.random(), self.constants.c_load_last)
        }
    }

    fn generate_texts(&mut self) {
        self.source.random_string(&mut self.first, 8, 16);
        self.address.generate(&mut self.source);
        self.source.digits(self.phone.resize(16));
        self.source.string(&mut self.data, 300, 500);
    }

    fn credit(&mut self) -> Credit {
        if self.bad_credit.next(self.source.random()) { Credit::Bad } else { Credit::Good }
    }
}
