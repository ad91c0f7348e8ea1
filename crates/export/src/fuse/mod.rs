//! Volumes as files for block devices: a directory over `/dev/fuse`, whose protocol is spoken directly.
//!
//! In reading order: the messages ([`protocol`]), what the kernel offers at the beginning ([`negotiation`]), the connection
//! ([`device`]), what a request does to a volume ([`front`]).

pub(crate) mod device;
pub(crate) mod front;
mod layout;
pub(crate) mod negotiation;
pub(crate) mod protocol;
