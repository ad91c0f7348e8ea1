//! The value of `--arrivals`: the arrival process of an open loop, by the words that studies use.
//!
//! What is not here: in which commands and together with which options it has an effect.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use underlay_core::Arrivals;

/// Parses the word for an arrival process; `--help` lists them.
pub fn arrival_process() -> impl TypedValueParser<Value = Arrivals> {
    let values = Arrivals::ALL.map(|arrivals| {
        PossibleValue::new(arrivals.as_str()).help(match arrivals {
            Arrivals::Poisson => "Independent of each other",
            Arrivals::Uniform => "Evenly",
        })
    });
    PossibleValuesParser::new(values).try_map(|word| word.parse::<Arrivals>())
}
