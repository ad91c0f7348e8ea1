//! The 22 questions, with what is put into them.
//!
//! A stream draws each query's values from its own random stream, within the ranges of the specification. What a
//! query means is in `answers`, how it is asked in SQL in the crate `database`.

use super::date::Day;
use super::rows::Population;
use super::words::{COLORS, COMMENT_WORDS, CONTAINERS, MODES, NATIONS, REGIONS, SEGMENTS, TYPES};
use crate::draw::{shuffle, uniform};

/// A question. Nations and regions are given by key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are what the question names")]
pub enum Query {
    /// Pricing summary of what was shipped up to a day.
    PricingSummary { last_shipped: Day },
    /// Suppliers in a region with the lowest cost of parts of a size and type.
    MinimumCostSupplier { size: u32, kind_end: &'static str, region: usize },
    /// Unshipped orders with the largest value.
    ShippingPriority { segment: &'static str, date: Day },
    /// Orders of a quarter with a line that came late, by priority.
    OrderPriority { from: Day, to: Day },
    /// Revenue of suppliers who sold to their own nation.
    LocalSupplierVolume { region: usize, year: i32 },
    /// What revenue would be without some discounts.
    ForecastRevenue { year: i32, discount: i64, quantity: i64 },
    /// What two nations ship to each other.
    VolumeShipping { nations: [usize; 2] },
    /// The share of a nation in its region's market of a type of parts.
    MarketShare { nation: usize, kind: String },
    /// Profit by nation and year on parts of a colour.
    ProductTypeProfit { color: &'static str },
    /// Customers who returned the most in a quarter.
    ReturnedItems { from: Day, to: Day },
    /// Parts that make up a nation's stock.
    ImportantStock { nation: usize },
    /// Whether cheap modes of shipping delay urgent orders.
    ShippingModes { modes: [&'static str; 2], year: i32 },
    /// How many customers have how many orders, but for some.
    CustomerDistribution { words: [&'static str; 2] },
    /// The share of promoted parts in a month's revenue.
    PromotionEffect { from: Day, to: Day },
    /// The suppliers with the most revenue in a quarter.
    TopSupplier { from: Day, to: Day },
    /// How many suppliers can supply parts that a customer wants.
    PartSupplierRelationship { brand: u32, kind_start: String, sizes: [u32; 8] },
    /// What would be lost without small orders.
    SmallQuantityRevenue { brand: u32, container: String },
    /// Customers with very large orders.
    LargeVolumeCustomers { quantity: i64 },
    /// Revenue of parts shipped by air and delivered in person.
    DiscountedRevenue { quantities: [i64; 3], brands: [u32; 3] },
    /// Suppliers who have too many of some parts.
    PotentialPromotion { color: &'static str, year: i32, nation: usize },
    /// Suppliers who alone kept orders waiting.
    SuppliersKeptWaiting { nation: usize },
    /// Customers without orders but with a good balance.
    GlobalSales { codes: [u32; 7] },
}

impl Population {
    /// Query `number` (1 to 22) as a stream asks it.
    ///
    /// # Panics
    /// When there is no such query.
    pub fn query(&self, stream: u32, number: u8) -> Query {
        let mut random =
            self.seed.stream("warehouse-query", u64::from(stream) * 32 + u64::from(number));
        let r = &mut random;
        macro_rules! pick {
            ($list:expr) => {
                $list[uniform(r, 0, $list.len() as u32 - 1) as usize]
            };
        }
        macro_rules! draw {
            ($low:expr, $high:expr) => {
                uniform(r, $low, $high)
            };
        }
        macro_rules! months {
            ($year:expr, $count:expr, $length:expr) => {{
                let first = uniform(r, 0, $count - 1) as i32;
                (Day::of_month($year, first), Day::of_month($year, first + $length))
            }};
        }
        macro_rules! year {
            () => {
                uniform(r, 1993, 1997) as i32
            };
        }
        macro_rules! nation {
            () => {
                uniform(r, 0, NATIONS.len() as u32 - 1) as usize
            };
        }
        macro_rules! brand {
            () => {
                uniform(r, 1, 5) * 10 + uniform(r, 1, 5)
            };
        }
        match number {
            1 => Query::PricingSummary {
                last_shipped: Day::new(1998, 12, 1).plus(-(draw!(60, 120) as i32)),
            },
            2 => Query::MinimumCostSupplier {
                size: draw!(1, 50),
                kind_end: pick!(TYPES[2]),
                region: draw!(0, REGIONS.len() as u32 - 1) as usize,
            },
            3 => Query::ShippingPriority {
                segment: pick!(SEGMENTS),
                date: Day::new(1995, 3, draw!(1, 31) as i32),
            },
            4 => {
                let (from, to) = months!(1993, 58, 3);
                Query::OrderPriority { from, to }
            }
            5 => Query::LocalSupplierVolume {
                region: draw!(0, REGIONS.len() as u32 - 1) as usize,
                year: year!(),
            },
            6 => Query::ForecastRevenue {
                year: year!(),
                discount: i64::from(draw!(2, 9)),
                quantity: i64::from(draw!(24, 25)),
            },
            7 => {
                let first = nation!();
                let other = (first + draw!(1, NATIONS.len() as u32 - 1) as usize) % NATIONS.len();
                Query::VolumeShipping { nations: [first, other] }
            }
            8 => Query::MarketShare {
                nation: nation!(),
                kind: TYPES.map(|syllables| pick!(syllables)).join(" "),
            },
            9 => Query::ProductTypeProfit { color: pick!(COLORS) },
            10 => {
                // 1993-02 to 1995-01.
                let first = draw!(1, 24) as i32;
                Query::ReturnedItems {
                    from: Day::of_month(1993, first),
                    to: Day::of_month(1993, first + 3),
                }
            }
            11 => Query::ImportantStock { nation: nation!() },
            12 => {
                let mut modes = MODES;
                shuffle(r, &mut modes);
                Query::ShippingModes { modes: [modes[0], modes[1]], year: year!() }
            }
            13 => Query::CustomerDistribution { words: COMMENT_WORDS.map(|words| pick!(words)) },
            14 => {
                let (from, to) = months!(1993, 60, 1);
                Query::PromotionEffect { from, to }
            }
            15 => {
                let (from, to) = months!(1993, 58, 3);
                Query::TopSupplier { from, to }
            }
            16 => {
                let brand = brand!();
                let kind_start = [pick!(TYPES[0]), pick!(TYPES[1])].join(" ");
                let mut sizes: Vec<u32> = (1..=50).collect();
                shuffle(r, &mut sizes);
                let sizes = std::array::from_fn(|index| sizes[index]);
                Query::PartSupplierRelationship { brand, kind_start, sizes }
            }
            17 => Query::SmallQuantityRevenue {
                brand: brand!(),
                container: CONTAINERS.map(|syllables| pick!(syllables)).join(" "),
            },
            18 => Query::LargeVolumeCustomers { quantity: i64::from(draw!(312, 315)) },
            19 => Query::DiscountedRevenue {
                quantities: [(1, 10), (10, 20), (20, 30)]
                    .map(|(low, high)| i64::from(draw!(low, high))),
                brands: [(); 3].map(|()| brand!()),
            },
            20 => {
                Query::PotentialPromotion { color: pick!(COLORS), year: year!(), nation: nation!() }
            }
            21 => Query::SuppliersKeptWaiting { nation: nation!() },
            22 => {
                let mut codes: Vec<u32> = (10..35).collect();
                shuffle(r, &mut codes);
                Query::GlobalSales { codes: std::array::from_fn(|index| codes[index]) }
            }
            _ => panic!("there is no query {number}"),
        }
    }
}
