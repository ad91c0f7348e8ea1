//! How rows are inserted.

use underlay_core::words;

/// Rows that the server is given at once for its loop: far more than a round trip is worth, few enough that a stop is
/// heard and rows are counted several times a second.
pub const LOOP_ROWS: u32 = 250;

words! {
    /// Which transactions the rows are in, and how they travel.
    pub enum Mode: "mode" {
        /// One `INSERT` per row, each a transaction of its own: every row waits for the log.
        Implicit = "implicit",
        /// One `INSERT` per row, all of a session in one transaction: one wait for the log, all or nothing.
        Explicit = "explicit",
        /// The engine's way of taking a stream of rows (`COPY`, `LOAD DATA`), in one transaction.
        Bulk = "bulk",
    }
}

words! {
    /// Who goes from row to row.
    pub enum Loop: "loop" {
        /// The client: each row is a statement of its own, and a round trip.
        Client = "client",
        /// The server: it is given many rows at once, and inserts one after the other.
        Server = "server",
    }
}

impl Mode {
    /// Whether the rows of a session become durable together, or not at all.
    pub const fn is_all_or_nothing(self) -> bool {
        !matches!(self, Mode::Implicit)
    }
}

#[cfg(test)]
mod tests {
    use super::{Loop, Mode};

    #[test]
    fn words_read_back() {
        for mode in Mode::ALL {
            assert_eq!(mode.as_str().parse(), Ok(mode));
        }
        assert!("none".parse::<Mode>().is_err());
        for place in Loop::ALL {
            assert_eq!(place.as_str().parse(), Ok(place));
        }
    }
}
