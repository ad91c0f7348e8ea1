//! Simulations of published block experiments, compared with the published results.
//!
//! Devices and networks have their figures from datasheets. Per test bed at most one experiment is used to fit one
//! parameter, the cost of the hypervisor's stack per I/O; everything else is predicted, and each row says which
//! it is. What the publications leave open (number of volumes, working sets, load machines) is assumed, and
//! said in [`Testbed::assumptions`].

mod testbed;

mod catalogue;

mod fit;

mod comparison;

pub use catalogue::testbeds;
pub use comparison::{Comparison, Effort, Role, Row, compare, is_reduced, median};
pub use testbed::{Experiment, Load, Prefill, Shape, System, Testbed};
