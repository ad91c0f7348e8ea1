//! Database engines: managed servers and sessions.
