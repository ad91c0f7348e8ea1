//! Loads on real servers: PostgreSQL and MariaDB driven as users drive them.

mod dvdstore;
mod postgres;
mod real_time;
mod support;
mod sysbench;
mod thousand_users;
