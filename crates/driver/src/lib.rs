//! The load generator: virtual users, schedules, latency from the intended start, the commit ledger.
