//! TPC-C on PostgreSQL.
