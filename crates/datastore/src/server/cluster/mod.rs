//! A hyper-converged cluster under the server: the model by the wall clock, its data commands on real files.
//!
//! In reading order: where components are ([`file_store`]), the plane that drives model and data ([`plane`]), what happened
//! for the time line ([`journal`]), what must not be forgotten ([`memory`]), counters ([`series`]), and what the service does with a request to a volume of the
//! cluster ([`carried`]).

pub(crate) mod carried;
pub(crate) mod faults;
pub(crate) mod file_store;
pub(crate) mod journal;
pub(crate) mod memory;
pub(crate) mod plane;
pub(crate) mod series;
