//! What a table holds, compared with what should be in it.
//!
//! Rows are given in the order of their numbers. A session inserts its slice sequentially, so its durable part is a
//! prefix of it: how much may be there is a [`Claim`], made from what the server acknowledged.

use sha2::{Digest, Sha256};

use super::parameters::Parameters;
use super::row::Row;
use super::slice::Slice;

/// Violations that are worded; more of them say no more.
const WORDED: usize = 8;

/// How many of a slice's rows may be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The slice.
    pub slice: Slice,
    /// So many were acknowledged as committed.
    pub least: u32,
    /// So many were sent with their commit.
    pub most: u32,
    /// Either none of them or all are there.
    pub whole: bool,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Rows in the table.
    pub rows: u32,
    /// SHA-256 of their contents, as 64 hexadecimal digits.
    pub checksum: String,
    /// The same of the generator's rows with these numbers.
    pub expected_checksum: String,
    /// Violations.
    pub violation_count: u64,
    /// The first of them in words.
    pub violations: Vec<String>,
}

/// Compares rows one by one.
#[derive(Debug)]
pub struct Verifier {
    parameters: Parameters,
    claims: Vec<Claim>,
    /// Found rows per claim.
    found: Vec<u32>,
    current: usize,
    previous: u32,
    rows: u32,
    hash: Sha256,
    expected_hash: Sha256,
    violation_count: u64,
    violations: Vec<String>,
}

impl Claim {
    /// All rows are there.
    pub fn all(slice: Slice) -> Claim {
        Claim { slice, least: slice.rows(), most: slice.rows(), whole: true }
    }

    /// No row is there.
    pub fn none(slice: Slice) -> Claim {
        Claim { slice, least: 0, most: 0, whole: true }
    }

    /// It is unknown how far the session came.
    pub fn unknown(slice: Slice, all_or_nothing: bool) -> Claim {
        Claim { slice, least: 0, most: slice.rows(), whole: all_or_nothing }
    }

    fn holds(self, found: u32) -> bool {
        (self.least..=self.most).contains(&found)
            && (!self.whole || found == 0 || found == self.slice.rows())
    }
}

impl Verifier {
    /// `claims` are those of [`slices`](super::slices), in their order.
    pub fn new(parameters: Parameters, claims: Vec<Claim>) -> Verifier {
        Verifier {
            parameters,
            found: vec![0; claims.len()],
            claims,
            current: 0,
            previous: 0,
            rows: 0,
            hash: Sha256::new(),
            expected_hash: Sha256::new(),
            violation_count: 0,
            violations: Vec::new(),
        }
    }

    /// The next row of the table, in ascending order of numbers.
    pub fn row(&mut self, row: &Row) {
        let number = row.rec_num;
        let expected = Row::of(self.parameters.seed, number);
        self.rows += 1;
        row.add_to(&mut self.hash);
        expected.add_to(&mut self.expected_hash);
        if *row != expected {
            self.violated(|| format!("row {number} is {row:?}, not {expected:?}"));
        }
        if number <= self.previous {
            self.violated(|| format!("row {number} exists twice, or is out of order"));
            return;
        }
        self.previous = number;
        while self.claims.get(self.current).is_some_and(|claim| claim.slice.last < number) {
            self.current += 1;
        }
        let claim = self.claims.get(self.current).copied();
        let Some(Claim { slice, .. }) = claim.filter(|claim| claim.slice.first <= number) else {
            self.violated(|| format!("row {number} was never inserted"));
            return;
        };
        let found = self.found[self.current];
        let next = slice.first + found;
        if number != next {
            self.violated(|| {
                format!("row {number} exists, but row {next}, inserted before it, does not")
            });
        }
        self.found[self.current] = number - slice.first + 1;
    }

    /// A row that cannot be one of the generator's.
    pub fn impossible(&mut self, what: &str) {
        self.rows += 1;
        self.hash.update(what.as_bytes());
        self.violated(|| what.to_string());
    }

    /// After the last row.
    pub fn finish(mut self) -> Verdict {
        for (claim, found) in std::mem::take(&mut self.claims).into_iter().zip(self.found.clone()) {
            if claim.holds(found) {
                continue;
            }
            let Slice { first, last } = claim.slice;
            let wanted = match claim {
                Claim { least, most, .. } if least == most => least.to_string(),
                Claim { whole: true, slice, .. } => format!("none or {}", slice.rows()),
                Claim { least, most, .. } => format!("{least} to {most}"),
            };
            self.violated(|| {
                format!("of the rows {first} to {last} the first {found} exist, not {wanted}")
            });
        }
        Verdict {
            rows: self.rows,
            checksum: hex(self.hash),
            expected_checksum: hex(self.expected_hash),
            violation_count: self.violation_count,
            violations: self.violations,
        }
    }

    fn violated(&mut self, what: impl FnOnce() -> String) {
        self.violation_count += 1;
        if self.violations.len() < WORDED {
            self.violations.push(what());
        }
    }
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::{Claim, Verdict, Verifier};
    use crate::batch::{Parameters, Row, slices};
    use underlay_core::RootSeed;

    const PARAMETERS: Parameters = Parameters { rows: 10, seed: RootSeed(3) };

    fn verdict(claims: Vec<Claim>, numbers: &[u32]) -> Verdict {
        let mut verifier = Verifier::new(PARAMETERS, claims);
        for number in numbers {
            verifier.row(&Row::of(PARAMETERS.seed, *number));
        }
        verifier.finish()
    }

    fn claims(make: impl Fn(crate::batch::Slice) -> Claim) -> Vec<Claim> {
        slices(10, 2).into_iter().map(make).collect()
    }

    #[test]
    fn a_full_table_is_accepted_and_each_fault_is_found() {
        let all = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
        let full = verdict(claims(Claim::all), &all);
        assert_eq!((full.rows, full.violation_count), (10, 0), "{full:?}");
        assert_eq!(full.checksum, full.expected_checksum);
        let without_last = verdict(claims(Claim::all), &all[..9]);
        assert_eq!(without_last.violation_count, 1, "{without_last:?}");
        let with_gap = verdict(claims(Claim::all), &[1, 2, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(with_gap.violation_count, 1, "{with_gap:?}");
        let twice = verdict(claims(Claim::all), &[1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(twice.violation_count, 1, "{twice:?}");
        let beyond = verdict(claims(Claim::all), &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        assert_eq!(beyond.violation_count, 1, "{beyond:?}");
    }

    #[test]
    fn other_contents_are_found_by_row_and_by_checksum() {
        let mut verifier = Verifier::new(PARAMETERS, claims(Claim::all));
        for number in 1..=10 {
            let mut row = Row::of(PARAMETERS.seed, number);
            row.checkord[15] ^= u8::from(number == 7);
            verifier.row(&row);
        }
        let verdict = verifier.finish();
        assert_eq!(verdict.violation_count, 1);
        assert!(verdict.violations[0].starts_with("row 7 "), "{verdict:?}");
        assert_ne!(verdict.checksum, verdict.expected_checksum);
    }

    #[test]
    fn all_or_nothing_per_session() {
        let unknown = |whole| claims(|slice| Claim::unknown(slice, whole));
        assert_eq!(verdict(unknown(true), &[6, 7, 8, 9, 10]).violation_count, 0);
        assert_eq!(verdict(unknown(true), &[1, 2, 3]).violation_count, 1);
        assert_eq!(verdict(unknown(false), &[1, 2, 3, 6]).violation_count, 0);
        assert_eq!(verdict(claims(Claim::none), &[]).violation_count, 0);
        assert_eq!(verdict(claims(Claim::none), &[1]).violation_count, 1);
    }

    #[test]
    fn acknowledged_rows_must_be_there_and_one_more_may_be() {
        let claim = |slice| Claim { slice, least: 2, most: 3, whole: false };
        assert_eq!(verdict(claims(claim), &[1, 2, 6, 7, 8]).violation_count, 0);
        assert_eq!(verdict(claims(claim), &[1, 6, 7]).violation_count, 1);
        assert_eq!(verdict(claims(claim), &[1, 2, 6, 7, 8, 9]).violation_count, 1);
    }
}
