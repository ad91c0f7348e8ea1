//! The rows of the eight tables, each made from its key.
//!
//! A row depends on the seed and its key alone, so any part of the population can be made again anywhere. Money is in
//! cents, rates in hundredths. REGION and NATION are in [`words`](super::words).

use rand_pcg::Pcg64;
use underlay_core::RootSeed;

use super::date::Day;
use super::scale::Scale;
use super::text::{address, comment, phone};
use super::words::{
    COLORS, CONTAINERS, INSTRUCTIONS, MODES, NATIONS, PRIORITIES, REGIONS, SEGMENTS, TYPES,
};
use crate::draw::{below, uniform};

/// What all rows follow from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Population {
    /// How many.
    pub scale: Scale,
    /// Which.
    pub seed: RootSeed,
}

/// A row of REGION.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The key, from 0.
    pub key: u32,
    /// `R_COMMENT`; its name is in the list.
    pub comment: String,
}

/// A row of NATION.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nation {
    /// The key, from 0.
    pub key: u32,
    /// `N_COMMENT`; name and region are in the list.
    pub comment: String,
}

/// A row of SUPPLIER.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supplier {
    /// The key, from 1.
    pub key: u32,
    /// `S_NAME`.
    pub name: String,
    /// `S_ADDRESS`.
    pub address: String,
    /// `S_NATIONKEY`.
    pub nation: u32,
    /// `S_PHONE`.
    pub phone: String,
    /// `S_ACCTBAL`.
    pub balance_cents: i64,
    /// `S_COMMENT`.
    pub comment: String,
}

/// A row of PART.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The key, from 1.
    pub key: u32,
    /// `P_NAME`.
    pub name: String,
    /// The number in `P_MFGR`, 1 to 5.
    pub manufacturer: u32,
    /// The two digits in `P_BRAND`; the first is the manufacturer.
    pub brand: u32,
    /// `P_TYPE`.
    pub kind: String,
    /// `P_SIZE`.
    pub size: u32,
    /// `P_CONTAINER`.
    pub container: String,
    /// `P_RETAILPRICE`.
    pub price_cents: i64,
    /// `P_COMMENT`.
    pub comment: String,
}

/// A row of PARTSUPP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartSupplier {
    /// `PS_PARTKEY`.
    pub part: u32,
    /// `PS_SUPPKEY`.
    pub supplier: u32,
    /// `PS_AVAILQTY`.
    pub available: u32,
    /// `PS_SUPPLYCOST`.
    pub cost_cents: i64,
    /// `PS_COMMENT`.
    pub comment: String,
}

/// A row of CUSTOMER.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Customer {
    /// The key, from 1.
    pub key: u32,
    /// `C_NAME`.
    pub name: String,
    /// `C_ADDRESS`.
    pub address: String,
    /// `C_NATIONKEY`.
    pub nation: u32,
    /// `C_PHONE`.
    pub phone: String,
    /// `C_ACCTBAL`.
    pub balance_cents: i64,
    /// `C_MKTSEGMENT`.
    pub segment: &'static str,
    /// `C_COMMENT`.
    pub comment: String,
}

/// A row of ORDERS, with its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The key; sparse.
    pub key: u64,
    /// `O_CUSTKEY`.
    pub customer: u32,
    /// `O_ORDERSTATUS`.
    pub status: char,
    /// `O_TOTALPRICE`, rounded to cents.
    pub total_cents: i64,
    /// `O_ORDERDATE`.
    pub date: Day,
    /// `O_ORDERPRIORITY`.
    pub priority: &'static str,
    /// The number in `O_CLERK`.
    pub clerk: u32,
    /// `O_COMMENT`. `O_SHIPPRIORITY` is 0.
    pub comment: String,
    /// Its lines, numbered from 1 in this order.
    pub lines: Vec<Line>,
}

/// A row of LINEITEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// `L_PARTKEY`.
    pub part: u32,
    /// `L_SUPPKEY`.
    pub supplier: u32,
    /// `L_QUANTITY`.
    pub quantity: i64,
    /// `L_EXTENDEDPRICE`.
    pub price_cents: i64,
    /// `L_DISCOUNT`, in hundredths.
    pub discount: i64,
    /// `L_TAX`, in hundredths.
    pub tax: i64,
    /// `L_RETURNFLAG`.
    pub return_flag: char,
    /// `L_LINESTATUS`.
    pub status: char,
    /// `L_SHIPDATE`.
    pub shipped: Day,
    /// `L_COMMITDATE`.
    pub committed: Day,
    /// `L_RECEIPTDATE`.
    pub received: Day,
    /// `L_SHIPINSTRUCT`.
    pub instruction: &'static str,
    /// `L_SHIPMODE`.
    pub mode: &'static str,
    /// `L_COMMENT`.
    pub comment: String,
}

fn pick(random: &mut Pcg64, values: &[&'static str]) -> &'static str {
    values[below(random, values.len() as u64) as usize]
}

fn balance_cents(random: &mut Pcg64) -> i64 {
    i64::from(uniform(random, 0, 1_099_998)) - 99_999
}

/// `P_RETAILPRICE` of a part.
pub fn retail_price_cents(part: u32) -> i64 {
    let part = i64::from(part);
    90_000 + (part / 10) % 20_001 + 100 * (part % 1_000)
}

impl Population {
    fn stream(&self, table: &str, key: u64) -> Pcg64 {
        self.seed.stream(table, key)
    }

    /// Row `key` of REGION.
    pub fn region(&self, key: u32) -> Region {
        debug_assert!((key as usize) < REGIONS.len());
        let mut r = self.stream("warehouse-region", u64::from(key));
        Region { key, comment: comment(&mut r, 31, 115) }
    }

    /// Row `key` of NATION.
    pub fn nation(&self, key: u32) -> Nation {
        debug_assert!((key as usize) < NATIONS.len());
        let mut r = self.stream("warehouse-nation", u64::from(key));
        Nation { key, comment: comment(&mut r, 31, 114) }
    }

    /// Row `key` of SUPPLIER, 1 to [`Scale::suppliers`].
    pub fn supplier(&self, key: u32) -> Supplier {
        let r = &mut self.stream("warehouse-supplier", u64::from(key));
        let nation = uniform(r, 0, 24);
        let mut text = comment(r, 25, 100);
        if let Some(remark) = self.remark(key) {
            // Anywhere in the text, with other text between its words.
            let room = text.len() - "Customer".len() - remark.len();
            let gap = uniform(r, 0, room as u32) as usize;
            let at = uniform(r, 0, (room - gap) as u32) as usize;
            text.replace_range(at..at + 8, "Customer");
            text.replace_range(at + 8 + gap..at + 8 + gap + remark.len(), remark);
        }
        Supplier {
            key,
            name: format!("Supplier#{key:09}"),
            address: address(r),
            nation,
            phone: phone(r, nation),
            balance_cents: balance_cents(r),
            comment: text,
        }
    }

    /// The second word of a supplier's remark, of the few that have one. They are spread over all suppliers.
    fn remark(&self, key: u32) -> Option<&'static str> {
        let count = self.scale.remarked_suppliers();
        let step = self.scale.suppliers() / count;
        if (key - 1) / step >= count {
            return None;
        }
        match (key - 1) % step {
            at if at == step / 3 => Some("Complaints"),
            at if at == step / 3 * 2 => Some("Recommends"),
            _ => None,
        }
    }

    /// Row `key` of PART, 1 to [`Scale::parts`].
    pub fn part(&self, key: u32) -> Part {
        let r = &mut self.stream("warehouse-part", u64::from(key));
        let mut words: Vec<&str> = Vec::with_capacity(5);
        while words.len() < 5 {
            let word = pick(r, &COLORS);
            if !words.contains(&word) {
                words.push(word);
            }
        }
        let manufacturer = uniform(r, 1, 5);
        let brand = manufacturer * 10 + uniform(r, 1, 5);
        let kind = TYPES.map(|syllables| pick(r, syllables)).join(" ");
        let size = uniform(r, 1, 50);
        let container = CONTAINERS.map(|syllables| pick(r, syllables)).join(" ");
        Part {
            key,
            name: words.join(" "),
            manufacturer,
            brand,
            kind,
            size,
            container,
            price_cents: retail_price_cents(key),
            comment: comment(r, 5, 22),
        }
    }

    /// The supplier number `which` (0 to 3) of a part.
    pub fn supplier_of(&self, part: u32, which: u32) -> u32 {
        let suppliers = u64::from(self.scale.suppliers());
        let part = u64::from(part);
        let step = suppliers / 4 + (part - 1) / suppliers;
        ((part + u64::from(which) * step) % suppliers + 1) as u32
    }

    /// Row of PARTSUPP: a part and its supplier number `which` (0 to 3).
    pub fn part_supplier(&self, part: u32, which: u32) -> PartSupplier {
        let r = &mut self.stream("warehouse-partsupp", u64::from(part) * 4 + u64::from(which));
        PartSupplier {
            part,
            supplier: self.supplier_of(part, which),
            available: uniform(r, 1, 9_999),
            cost_cents: i64::from(uniform(r, 100, 100_000)),
            comment: comment(r, 49, 198),
        }
    }

    /// Row `key` of CUSTOMER, 1 to [`Scale::customers`].
    pub fn customer(&self, key: u32) -> Customer {
        let r = &mut self.stream("warehouse-customer", u64::from(key));
        let nation = uniform(r, 0, 24);
        Customer {
            key,
            name: format!("Customer#{key:09}"),
            address: address(r),
            nation,
            phone: phone(r, nation),
            balance_cents: balance_cents(r),
            segment: pick(r, &SEGMENTS),
            comment: comment(r, 29, 116),
        }
    }

    /// Order number `index`: of those of the load from 0 on; after them those that refreshes insert.
    pub fn order(&self, index: u64) -> Order {
        let r = &mut self.stream("warehouse-order", index);
        // Two of three customers have orders.
        let customer = below(r, u64::from(self.scale.customers()) / 3 * 2) as u32;
        let customer = customer / 2 * 3 + customer % 2 + 1;
        let last = Day::END.0 - 151;
        let date = Day(uniform(r, 0, last as u32) as i32);
        let priority = pick(r, &PRIORITIES);
        let clerk = uniform(r, 1, self.scale.clerks());
        let text = comment(r, 19, 78);
        let count = uniform(r, 1, 7);
        let lines: Vec<Line> = (0..count).map(|_| self.line(r, date)).collect();
        let open = lines.iter().filter(|line| line.status == 'O').count();
        let status = match open {
            0 => 'F',
            open if open == lines.len() => 'O',
            _ => 'P',
        };
        // Millionths of a unit, rounded to cents at the end.
        let total: i64 = lines
            .iter()
            .map(|line| line.price_cents * (100 + line.tax) * (100 - line.discount))
            .sum();
        let key = order_key(index, self.scale.orders());
        let total_cents = (total + 5_000) / 10_000;
        Order { key, customer, status, total_cents, date, priority, clerk, comment: text, lines }
    }

    fn line(&self, r: &mut Pcg64, ordered: Day) -> Line {
        let part = uniform(r, 1, self.scale.parts());
        let supplier = self.supplier_of(part, uniform(r, 0, 3));
        let quantity = i64::from(uniform(r, 1, 50));
        let mut days = |low, high| uniform(r, low, high) as i32;
        let shipped = ordered.plus(days(1, 121));
        let committed = ordered.plus(days(30, 90));
        let received = shipped.plus(days(1, 30));
        let return_flag = match (received <= Day::CURRENT, uniform(r, 0, 1)) {
            (false, _) => 'N',
            (true, 0) => 'R',
            (true, _) => 'A',
        };
        Line {
            part,
            supplier,
            quantity,
            price_cents: quantity * retail_price_cents(part),
            discount: i64::from(uniform(r, 0, 10)),
            tax: i64::from(uniform(r, 0, 8)),
            return_flag,
            status: if shipped > Day::CURRENT { 'O' } else { 'F' },
            shipped,
            committed,
            received,
            instruction: pick(r, &INSTRUCTIONS),
            mode: pick(r, &MODES),
            comment: comment(r, 10, 43),
        }
    }
}

/// Of every 32 keys the load uses the first eight, refreshes the second eight.
fn order_key(index: u64, loaded: u64) -> u64 {
    let (index, hole) = if index < loaded { (index, 0) } else { (index - loaded, 8) };
    index / 8 * 32 + hole + index % 8 + 1
}
