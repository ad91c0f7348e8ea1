//! The real servers of this host: managed, loaded, driven, checked, and left behind by a killed owner.

mod jobs;
mod killed_owner;
mod managed_server;
mod mariadb;
mod tls;
mod tpcc;
