//! Where a terminal's transactions go: always to one warehouse, or to a warehouse of their own each.
//!
//! TPC-C binds a terminal to a warehouse (clauses 2.4.1.1, 2.5.1.1, 2.6.1.1, 2.7.1.1 and 2.8.1.1), and scales
//! the warehouses with the terminals. A ladder of users over a database of fixed size then varies two things: load
//! and working set. Drawn warehouses keep the working set of every rung equal, at the price of that rule.

use underlay_core::words;

words! {
    /// How the home warehouse of a transaction is chosen.
    #[derive(Default)]
    pub enum HomeWarehouse: "home warehouse" {
        /// Each user has one for good, as the specification says.
        #[default]
        Fixed = "fixed",
        /// Each transaction draws its own from all, equally likely. HammerDB's "use all warehouses" has the
        /// same purpose, but divides the warehouses among its users.
        Drawn = "drawn",
    }
}

impl HomeWarehouse {
    /// What deviates from the specification, one sentence each; empty for fixed homes.
    pub const fn deviations(self) -> &'static [&'static str] {
        match self {
            HomeWarehouse::Fixed => &[],
            HomeWarehouse::Drawn => &[
                "drawn home warehouses: each transaction draws its warehouse from all; the specification binds a \
                 terminal to one warehouse (clauses 2.4.1.1 to 2.8.1.1)",
            ],
        }
    }

    /// How many of `warehouses` the home transactions of `users` users can reach.
    ///
    /// An upper bound where users draw their fixed home at random (profile `hammerdb-like`), because two may draw
    /// the same. Remote lines and payments reach a few rows of the others.
    pub fn reachable(self, warehouses: u32, users: u32) -> u32 {
        match self {
            HomeWarehouse::Fixed => warehouses.min(users),
            HomeWarehouse::Drawn => warehouses,
        }
    }
}
