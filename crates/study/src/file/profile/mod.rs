//! The text form of a device profile: the overrides of a device in a study, or a file of its own.

mod lowering;
mod tables;

pub(crate) use lowering::lower;
pub(crate) use tables::Profile;
