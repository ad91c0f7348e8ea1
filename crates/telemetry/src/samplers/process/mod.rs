//! Process trees (being written).

pub(crate) mod root;

pub(crate) use root::ProcessRoot;
