//! The initial rows of every table (clauses 4.3.3 and 1.3).
//!
//! One generator per table and warehouse, with random streams of its own: any warehouse of any table
//! is generated alone, in any order, and is the same each time. A generator hands out one row at a
//! time, borrowed from its own buffers; it never allocates per row.
//!
//! Rows come in the order of the primary key. All dates are [`LOADED_AT`]. Money is whole cents, rates
//! are ten-thousandths. What "10 % of the rows" have, exactly 10 % of the rows have, at random places.
//!
//! Not here: column types, null markers, SQL; that is the engine's encoding of the rows.

mod address;
mod customer;
mod district;
mod history;
mod item;
mod load_time;
mod new_order;
mod order;
mod order_line;
mod selection;
mod stock;
mod table;
mod text;
mod warehouse;

pub use address::AddressRow;
pub use customer::{Credit, CustomerRow, CustomerRows};
pub use district::{DistrictRow, DistrictRows};
pub use history::{HistoryRow, HistoryRows};
pub use item::{ItemRow, ItemRows};
pub use load_time::{LOADED_AT, UnixSeconds};
pub use new_order::{NewOrderRow, NewOrderRows};
pub use order::{OrderRow, OrderRows};
pub use order_line::{OrderLineRow, OrderLineRows};
pub use stock::{StockRow, StockRows};
pub use table::{Table, nominal_size, order_line_count};
pub use text::Text;
pub use warehouse::{WarehouseRow, WarehouseRows};

/// Changes whenever equal parameters generate other rows. Part of the workload's identity.
pub const GENERATION: u32 = 1;
