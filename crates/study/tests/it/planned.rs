//! Plans of studies that must be sound, for a host of any size.

use underlay_study::{Colour, HostView, Plan, PlanOptions, Source, check};

/// The plan, or the end of the test with the problems.
pub fn planned_with(source: &Source, options: &PlanOptions) -> Plan {
    match check(source, options, &HostView::unlimited()) {
        Ok((_, plan)) => plan,
        Err(problems) => panic!("{}", problems.render(100, Colour::Plain)),
    }
}
