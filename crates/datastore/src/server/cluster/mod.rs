//! A hyper-converged cluster in the server: the model driven by the wall clock, its data commands carried
//! out on real files.
//!
//! In reading order: what outlives the server ([`stores`]), where components are ([`file_store`]) and their checksums ([`sums_file`]), requests on their way ([`in_flight`]), the plane that drives model and
//! data ([`plane`]) and carries out what the model says ([`execution`]), what must not be forgotten ([`memory`],
//! [`recovery`]) or left half done ([`write_intent_log`]) or unmarked ([`lost_range_log`]), what happened for the time line ([`journal`]), deduplication and compression of the
//! real bytes ([`reduction`]), faults and changes by name ([`faults`], [`changes`]), what it is made of at present ([`parts`]), and what all
//! that is to an export ([`back_end`], held back by [`prolonged`]) and to the control socket ([`commands`]).
//!
//! A request enters and leaves by [`back_end`], once each.

pub(crate) mod back_end;
#[cfg(test)]
mod back_end_tests;
mod changes;
mod clock_skew;
mod commands;
#[cfg(test)]
mod crashing_stores;
#[cfg(test)]
mod durability_tests;
mod execution;
mod fault_refusal;
mod faults;
pub(crate) mod file_store;
mod fingerprint_file;
#[cfg(test)]
mod full_disk_tests;
mod in_flight;
pub(crate) mod journal;
#[cfg(test)]
mod kill_tests;
mod lost_range_log;
mod mapping;
pub(crate) mod memory;
mod parts;
pub(crate) mod plane;
mod prolonged;
mod recovery;
mod reduction;
#[cfg(test)]
mod reduction_tests;
mod stores;
mod sums_file;
#[cfg(test)]
mod test_directory;
mod write_intent_log;
