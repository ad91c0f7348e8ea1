//! CUSTOMERS and MEMBERSHIP.

use std::fmt::Write as _;

use super::date::Date;
use super::fields::Fields;
use crate::dvdstore::Parameters;
use crate::dvdstore::random::{RowRandom, TableKey};
use crate::dvdstore::words::{
    NAMES, OTHER_COUNTRIES, STATES, TITLE_WORDS, country, push_first_name, push_last_name,
    push_word, state,
};

/// The columns, the id first.
pub(super) const COLUMNS: &str = "customerid, firstname, lastname, address1, address2, city, state, zip, \
    country, region, email, phone, creditcardtype, creditcard, creditcardexpiration, username, password, \
    age, income, gender";

/// Columns of a customer without the id: what a new customer types in.
pub const CUSTOMER_VALUES: usize = 19;

/// The password of every customer.
const PASSWORD: &str = "password";

#[derive(Clone, Debug)]
pub(super) struct Customers {
    key: TableKey,
    text: String,
    username: String,
}

impl Customers {
    pub(super) fn new(parameters: &Parameters) -> Customers {
        let key = TableKey::new(parameters.seed, "customers");
        Customers { key, text: String::new(), username: String::new() }
    }

    pub(super) fn write(&mut self, id: u32, fields: &mut impl Fields) {
        fields.integer(i64::from(id));
        self.username.clear();
        // Writing to a String cannot fail.
        let _ = write!(self.username, "user{id}");
        write_values(&mut self.key.row(u64::from(id)), &self.username, &mut self.text, fields);
        fields.end_row();
    }
}

/// Gives the [`CUSTOMER_VALUES`] columns of a new customer, as random as `draw`. The row is not ended.
pub fn write_customer(draw: u64, username: &str, fields: &mut impl Fields) {
    write_values(&mut RowRandom::of(draw), username, &mut String::new(), fields);
}

/// Half of the customers live in the first country (region 1), the others in ten others (region 2).
fn write_values(
    random: &mut RowRandom,
    username: &str,
    text: &mut String,
    fields: &mut impl Fields,
) {
    let (first, last) = (random.below(NAMES), random.below(NAMES));
    let is_home = random.below(2) == 0;
    let mut put = |fields: &mut _, compose: &mut dyn FnMut(&mut String)| {
        text.clear();
        compose(text);
        Fields::text(fields, text);
    };
    put(fields, &mut |out| push_first_name(out, first));
    put(fields, &mut |out| push_last_name(out, last));
    let (house, street) = (random.uniform(1, 9_999), random.below(TITLE_WORDS));
    put(fields, &mut |out| {
        let _ = write!(out, "{house} ");
        push_word(out, street);
        out.push_str(" STREET");
    });
    let flat = random.below(4);
    put(fields, &mut |out| {
        if flat == 0 {
            out.push_str("FLAT ");
            let _ = write!(out, "{}", house % 90 + 1);
        }
    });
    let city = random.below(TITLE_WORDS);
    put(fields, &mut |out| {
        push_word(out, city);
        out.push_str(" CITY");
    });
    fields.text(if is_home { state(random.below(STATES)) } else { "" });
    let zip = random.below(100_000);
    put(fields, &mut |out| {
        let _ = write!(out, "{zip:05}");
    });
    fields.text(if is_home { "US" } else { country(random.below(OTHER_COUNTRIES)) });
    fields.integer(if is_home { 1 } else { 2 });
    put(fields, &mut |out| {
        out.push_str(username);
        out.push_str("@shop.example");
    });
    let phone = (random.below(1_000_000), random.below(10_000));
    put(fields, &mut |out| {
        let _ = write!(out, "{:06}{:04}", phone.0, phone.1);
    });
    fields.integer(i64::from(random.uniform(1, 5)));
    let card = (random.below(100_000_000), random.below(100_000_000));
    put(fields, &mut |out| {
        let _ = write!(out, "{:08}{:08}", card.0, card.1);
    });
    let expiration = (random.uniform(1, 12), random.uniform(2027, 2032));
    put(fields, &mut |out| {
        let _ = write!(out, "{}-{:02}", expiration.1, expiration.0);
    });
    fields.text(username);
    fields.text(PASSWORD);
    fields.integer(i64::from(random.uniform(18, 90)));
    fields.integer(i64::from(random.uniform(1, 5)) * 20_000);
    fields.text(if random.below(2) == 0 { "M" } else { "F" });
}

/// One member among every ten customers.
#[derive(Clone, Debug)]
pub(super) struct Membership(TableKey);

impl Membership {
    pub(super) fn new(parameters: &Parameters) -> Membership {
        Membership(TableKey::new(parameters.seed, "membership"))
    }

    pub(super) fn write(&self, number: u32, fields: &mut impl Fields) {
        let mut random = self.0.row(u64::from(number));
        let customer = (number - 1) * 10 + random.uniform(1, 10);
        fields.integer(i64::from(customer));
        fields.integer(i64::from(random.uniform(1, 3)));
        fields.date(Date::any(&mut random));
        fields.end_row();
    }
}
