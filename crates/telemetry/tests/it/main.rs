//! Collectors on this host and on real servers.

mod collector;
mod mariadb;
mod reference;
