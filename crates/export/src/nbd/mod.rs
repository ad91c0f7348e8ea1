//! Volumes for NBD clients: virtual machines, other programs, anything that cannot or must not use a block device of
//! this host.
//!
//! In reading order: the messages ([`protocol`]), the handshake ([`negotiation`]), one client's socket and
//! buffers ([`connection`]), all of them behind one descriptor ([`listener`]), what a request does to a
//! volume ([`front`]).
//!
//! There is neither encryption nor authentication: users that may open the unix socket may use the volumes, and
//! TCP is bound to loopback addresses only.

pub(crate) mod connection;
pub(crate) mod front;
pub(crate) mod listener;
pub(crate) mod negotiation;
pub(crate) mod protocol;
