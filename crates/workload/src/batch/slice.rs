//! Which session inserts which rows.

/// Consecutive rows of one session, inserted in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The first row's number.
    pub first: u32,
    /// The last row's number; not before the first.
    pub last: u32,
}

impl Slice {
    /// How many rows.
    pub fn rows(self) -> u32 {
        self.last - self.first + 1
    }
}

/// Rows `1..=rows` in as many slices as there are sessions, or rows if those are fewer; sizes differ by one at most.
pub fn slices(rows: u32, sessions: u32) -> Vec<Slice> {
    let parts = u64::from(sessions.min(rows));
    // The quotient is below `rows`.
    let bound = |part: u64| (u64::from(rows) * part / parts) as u32;
    (0..parts).map(|part| Slice { first: bound(part) + 1, last: bound(part + 1) }).collect()
}

#[cfg(test)]
mod tests {
    use super::slices;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_row_is_in_one_slice(rows in 1u32..2_000_000, sessions in 1u32..300) {
            let slices = slices(rows, sessions);
            prop_assert_eq!(slices.len() as u32, sessions.min(rows));
            let mut next = 1;
            for slice in &slices {
                prop_assert_eq!(slice.first, next);
                prop_assert!(slice.rows().abs_diff(rows / slices.len() as u32) <= 1);
                next = slice.last + 1;
            }
            prop_assert_eq!(next, rows + 1);
        }
    }

    #[test]
    fn nothing_is_divided_into_nothing() {
        assert!(slices(0, 4).is_empty());
    }
}
