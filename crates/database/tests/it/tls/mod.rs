//! TLS with the real servers of this host: what each mode does with each kind of certificate, clients' certificates, and
//! servers that demand TLS or have none.

mod certificates;
mod harness;
mod mariadb;
mod postgres;
