//! A hyper-converged cluster under the server: the model by the wall clock, its data commands on real files.
//!
//! In reading order: where components are ([`file_store`]) and their checksums ([`sums_file`]), requests on their way ([`request`]), the plane that drives model and
//! data ([`plane`]) and carries out what the model says ([`execution`]), what must not be forgotten ([`memory`],
//! [`recollection`]) or left half done ([`intent_file`]) or unmarked ([`mark_file`]), what happened for the time line ([`journal`]), deduplication and compression of the
//! real bytes ([`reduction`]), faults and changes by name ([`faults`], [`changes`]), what it is made of at present ([`parts`]), and what the service does with a request to a
//! volume of the cluster ([`carried`]).

pub(crate) mod carried;
pub(crate) mod changes;
#[cfg(test)]
mod durability_tests;
mod execution;
pub(crate) mod faults;
pub(crate) mod file_store;
#[cfg(test)]
mod full_disk_tests;
mod intent_file;
pub(crate) mod journal;
#[cfg(test)]
mod kill_tests;
mod mark_file;
pub(crate) mod memory;
#[cfg(test)]
mod mortality;
mod pace;
mod parts;
pub(crate) mod plane;
mod print_file;
mod recollection;
mod reduction;
#[cfg(test)]
mod reduction_tests;
pub(crate) mod request;
mod sums_file;
#[cfg(test)]
mod test_directory;

pub(crate) use print_file::next_data;
