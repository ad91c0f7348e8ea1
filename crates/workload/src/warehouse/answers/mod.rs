//! The answers, computed from the rows in memory: the judge of what a database answers.
//!
//! Written for each question from its meaning, with hash tables and exact integers; nothing here knows SQL. Rows come
//! in the order that the question asks for, ties broken by key.

mod customers;
mod orders;
mod sales;
mod suppliers;
mod tables;
mod value;

pub use tables::Tables;
pub use value::{Answer, Difference, Value};

use super::query::Query;

impl Tables {
    /// The answer to a question.
    pub fn answer(&self, query: &Query) -> Answer {
        match query {
            Query::PricingSummary { last_shipped } => self.pricing_summary(*last_shipped),
            Query::MinimumCostSupplier { size, kind_end, region } => {
                self.minimum_cost_supplier(*size, kind_end, *region)
            }
            Query::ShippingPriority { segment, date } => self.shipping_priority(segment, *date),
            Query::OrderPriority { from, to } => self.order_priority(*from..*to),
            Query::LocalSupplierVolume { region, year } => {
                self.local_supplier_volume(*region, *year)
            }
            Query::ForecastRevenue { year, discount, quantity } => {
                self.forecast_revenue(*year, *discount, *quantity)
            }
            Query::VolumeShipping { nations } => self.volume_shipping(*nations),
            Query::MarketShare { nation, kind } => self.market_share(*nation, kind),
            Query::ProductTypeProfit { color } => self.product_type_profit(color),
            Query::ReturnedItems { from, to } => self.returned_items(*from..*to),
            Query::ImportantStock { nation } => self.important_stock(*nation),
            Query::ShippingModes { modes, year } => self.shipping_modes(*modes, *year),
            Query::CustomerDistribution { words } => self.customer_distribution(*words),
            Query::PromotionEffect { from, to } => self.promotion_effect(*from..*to),
            Query::TopSupplier { from, to } => self.top_supplier(*from..*to),
            Query::PartSupplierRelationship { brand, kind_start, sizes } => {
                self.part_supplier_relationship(*brand, kind_start, sizes)
            }
            Query::SmallQuantityRevenue { brand, container } => {
                self.small_quantity_revenue(*brand, container)
            }
            Query::LargeVolumeCustomers { quantity } => self.large_volume_customers(*quantity),
            Query::DiscountedRevenue { quantities, brands } => {
                self.discounted_revenue(*quantities, *brands)
            }
            Query::PotentialPromotion { color, year, nation } => {
                self.potential_promotion(color, *year, *nation)
            }
            Query::SuppliersKeptWaiting { nation } => self.suppliers_kept_waiting(*nation),
            Query::GlobalSales { codes } => self.global_sales(codes),
        }
    }
}

/// Sorts by `key` and keeps the first `limit`.
fn top<T, K: Ord>(mut rows: Vec<T>, limit: usize, key: impl FnMut(&T) -> K) -> Vec<T> {
    rows.sort_by_cached_key(key);
    rows.truncate(limit);
    rows
}
