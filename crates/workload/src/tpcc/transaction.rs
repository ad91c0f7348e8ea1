//! The five transactions, as the inputs that a terminal sends.
//!
//! Only inputs: what a database does with them and what it answers belongs to the engines. Every
//! random choice is already made here, so that a retry, another engine or another mode (procedures,
//! statements) does the same work.

use super::cardinality::ITEMS;

/// The item number of the last line of an order that has to roll back: one that is never loaded.
///
/// It is larger than every item, so that an engine that sorts lines by item keeps it behind the
/// others of its warehouse. The work of all valid lines must be done before the roll-back, whatever
/// order an engine chooses.
pub const UNUSED_ITEM: u32 = ITEMS + 1;

/// The item number of lines that the database draws by itself (profile `hammerdb-like`): only their number is
/// the client's.
pub const SERVER_DRAWN_ITEM: u32 = 0;

/// Which of the five transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransactionType {
    /// Enter an order of 5 to 15 lines.
    NewOrder,
    /// Pay an amount for a customer.
    Payment,
    /// Look up a customer's latest order.
    OrderStatus,
    /// Deliver the oldest open order of each district.
    Delivery,
    /// Count recently sold items that are short in stock.
    StockLevel,
}

impl TransactionType {
    /// All types, in the order of their [`index`](TransactionType::index).
    pub const ALL: [TransactionType; 5] = [
        TransactionType::NewOrder,
        TransactionType::Payment,
        TransactionType::OrderStatus,
        TransactionType::Delivery,
        TransactionType::StockLevel,
    ];

    /// The place in [`TransactionType::ALL`], for tables with one row per type.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name in records, reports and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            TransactionType::NewOrder => "new_order",
            TransactionType::Payment => "payment",
            TransactionType::OrderStatus => "order_status",
            TransactionType::Delivery => "delivery",
            TransactionType::StockLevel => "stock_level",
        }
    }
}

/// One line of a new order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OrderLineInput {
    /// The item, 1 to 100,000, or [`UNUSED_ITEM`].
    pub item: u32,
    /// The warehouse that supplies it: the home warehouse, or another one for 1 % of the lines.
    pub supply_warehouse: u32,
    /// How many, 1 to 10.
    pub quantity: u32,
}

/// Inputs of New-Order (clause 2.4.1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NewOrder {
    /// The terminal's home warehouse.
    pub warehouse: u32,
    /// The district, 1 to 10.
    pub district: u32,
    /// The customer who orders, 1 to 3,000.
    pub customer: u32,
    /// 5 to 15 lines, numbered from 1 by their place here. The same item may occur twice.
    pub lines: Vec<OrderLineInput>,
}

impl NewOrder {
    /// Whether the order must roll back because its last item does not exist (1 % of the orders).
    pub fn rolls_back(&self) -> bool {
        self.lines.last().is_some_and(|line| line.item == UNUSED_ITEM)
    }

    /// Whether the database draws the lines, and whether the order rolls back, by itself.
    pub fn is_drawn_by_server(&self) -> bool {
        self.lines.first().is_some_and(|line| line.item == SERVER_DRAWN_ITEM)
    }

    /// O_ALL_LOCAL: whether the home warehouse supplies every line.
    pub fn all_local(&self) -> bool {
        self.lines.iter().all(|line| line.supply_warehouse == self.warehouse)
    }
}

/// How a customer is named.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CustomerSelector {
    /// By number, 1 to 3,000.
    ById(u32),
    /// By last name: of all customers of the district with that name, ordered by first name, the one
    /// at place `ceil(n / 2)`, counted from 1. Each name of the generator occurs in each district.
    ByLastName(String),
}

/// Inputs of Payment (clause 2.5.1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Payment {
    /// The terminal's home warehouse, which receives the money.
    pub warehouse: u32,
    /// The district that receives the money, 1 to 10.
    pub district: u32,
    /// The customer's warehouse: home for 85 %, another one for 15 %.
    pub customer_warehouse: u32,
    /// The customer's district; equal to `district` when the warehouse is home.
    pub customer_district: u32,
    /// The customer who pays.
    pub customer: CustomerSelector,
    /// The amount in cents, 100 to 500,000.
    pub amount_cents: i64,
}

impl Payment {
    /// Whether the customer belongs to another warehouse.
    pub fn is_remote(&self) -> bool {
        self.customer_warehouse != self.warehouse
    }
}

/// Inputs of Order-Status (clause 2.6.1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OrderStatus {
    /// The terminal's home warehouse.
    pub warehouse: u32,
    /// The district, 1 to 10.
    pub district: u32,
    /// The customer who asks.
    pub customer: CustomerSelector,
}

/// Inputs of Delivery (clause 2.7.1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Delivery {
    /// The terminal's home warehouse; all its districts are delivered.
    pub warehouse: u32,
    /// The carrier, 1 to 10.
    pub carrier: u32,
}

/// Inputs of Stock-Level (clause 2.8.1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StockLevel {
    /// The terminal's home warehouse.
    pub warehouse: u32,
    /// The terminal's own district.
    pub district: u32,
    /// Items with less stock than this are counted, 10 to 20.
    pub threshold: u32,
}

/// One transaction with all its inputs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Transaction {
    /// Enter an order.
    NewOrder(NewOrder),
    /// Pay an amount.
    Payment(Payment),
    /// Look up the latest order.
    OrderStatus(OrderStatus),
    /// Deliver the oldest orders.
    Delivery(Delivery),
    /// Count items short in stock.
    StockLevel(StockLevel),
}

impl Transaction {
    /// Which of the five it is.
    pub const fn transaction_type(&self) -> TransactionType {
        match self {
            Transaction::NewOrder(_) => TransactionType::NewOrder,
            Transaction::Payment(_) => TransactionType::Payment,
            Transaction::OrderStatus(_) => TransactionType::OrderStatus,
            Transaction::Delivery(_) => TransactionType::Delivery,
            Transaction::StockLevel(_) => TransactionType::StockLevel,
        }
    }
}
