//! Which TPC-C it is: on how large a database, and by which rules its terminals go.
//!
//! Not here: how the load generator drives it.

use super::home::HomeWarehouse;
use super::parameters::Parameters;
use super::profile::Profile;

/// TPC-C on a database of some size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tpcc {
    /// Size, seed and constants.
    pub parameters: Parameters,
    /// Whether the acknowledged new orders are kept for comparison with the database: some bits per order.
    pub keeps_ledger: bool,
    /// The rules of the terminals.
    pub profile: Profile,
    /// How the home warehouse of a transaction is chosen.
    pub home_warehouse: HomeWarehouse,
}

impl Tpcc {
    /// TPC-C by the rules of the specification, with its ledger kept.
    pub fn new(parameters: Parameters) -> Tpcc {
        Tpcc {
            parameters,
            keeps_ledger: true,
            profile: Profile::Specification,
            home_warehouse: HomeWarehouse::Fixed,
        }
    }

    /// What deviates from the specification beyond what all of Underlay's results deviate in.
    pub fn deviations(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.profile.deviations().iter().chain(self.home_warehouse.deviations()).copied()
    }
}
