//! How storage behaves: device service times without I/O and without a clock.
