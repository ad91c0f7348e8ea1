//! What a run of the workload is a function of.

use underlay_core::RootSeed;

use super::Size;

/// Size, seed and the users' behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The size of the shop.
    pub size: Size,
    /// The root of rows and users.
    pub seed: RootSeed,
    /// What users do.
    pub behaviour: Behaviour,
}

/// What users do: the kit's driver parameters of the same names, with its defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behaviour {
    /// Visits of new customers, in percent.
    pub pct_newcustomers: u32,
    /// Visits in which a new customer registers, in percent.
    pub pct_newmember: u32,
    /// Searches per visit on average: 1 to 2n - 1.
    pub n_searches: u32,
    /// Rows that a search asks for on average: 1 to 2n - 1.
    pub search_batch_size: u32,
    /// Reviews that a search for reviews looks at, at most.
    pub search_depth: u32,
    /// Searches for reviews, and products whose reviews are read, per visit on average: 1 to 2n - 1 each.
    pub n_reviews: u32,
    /// Visits with a new review, in percent.
    pub pct_newreviews: u32,
    /// Visits in which a review is rated, in percent.
    pub pct_newhelpfulness: u32,
    /// Lines of an order on average: 1 to 2n - 1, at most 10.
    pub n_line_items: u32,
    /// The flow of DVD Store 2: no members, no reviews.
    pub ds2_mode: bool,
}

/// Why a behaviour was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BehaviourError {
    /// More than all.
    #[error("{name} is {value}; use 0 to 100")]
    Percent {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: u32,
    },
    /// None, or absurdly many.
    #[error("{name} is {value}; use 1 to {most}")]
    Count {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: u32,
        /// The largest.
        most: u32,
    },
}

/// Most lines of an order.
pub const LINES_MAX: u32 = 10;

impl Default for Behaviour {
    fn default() -> Behaviour {
        Behaviour {
            pct_newcustomers: 20,
            pct_newmember: 1,
            n_searches: 3,
            search_batch_size: 5,
            search_depth: 500,
            n_reviews: 3,
            pct_newreviews: 5,
            pct_newhelpfulness: 10,
            n_line_items: 5,
            ds2_mode: false,
        }
    }
}

impl Behaviour {
    /// All that is wrong with it.
    pub fn problems(&self) -> Vec<BehaviourError> {
        let percents = [
            ("pct_newcustomers", self.pct_newcustomers),
            ("pct_newmember", self.pct_newmember),
            ("pct_newreviews", self.pct_newreviews),
            ("pct_newhelpfulness", self.pct_newhelpfulness),
        ];
        let counts = [
            ("n_searches", self.n_searches, 1_000),
            ("search_batch_size", self.search_batch_size, 10_000),
            ("search_depth", self.search_depth, 1_000_000),
            ("n_reviews", self.n_reviews, 1_000),
            ("n_line_items", self.n_line_items, LINES_MAX),
        ];
        let percent = |(name, value): &(&'static str, u32)| {
            (*value > 100).then_some(BehaviourError::Percent { name, value: *value })
        };
        let count = |(name, value, most): &(&'static str, u32, u32)| {
            (!(1..=*most).contains(value)).then_some(BehaviourError::Count {
                name,
                value: *value,
                most: *most,
            })
        };
        percents.iter().filter_map(percent).chain(counts.iter().filter_map(count)).collect()
    }
}

impl Parameters {
    /// With the default behaviour.
    pub fn new(size: Size, seed: RootSeed) -> Parameters {
        Parameters { size, seed, behaviour: Behaviour::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::Behaviour;

    #[test]
    fn every_problem_is_reported() {
        assert!(Behaviour::default().problems().is_empty());
        let wrong = Behaviour {
            pct_newmember: 101,
            n_searches: 0,
            n_line_items: 11,
            ..Behaviour::default()
        };
        let told: Vec<String> = wrong.problems().iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "pct_newmember is 101; use 0 to 100",
                "n_searches is 0; use 1 to 1000",
                "n_line_items is 11; use 1 to 10",
            ]
        );
    }
}
