//! The ledger as bytes.
//!
//! ```text
//! magic "ULEDGER", version 1 (8 bytes)
//! number of districts
//!   per district: warehouse, district, unknown, duplicates, number of ranges
//!     per range: gap (first number - end of the range before - 1), length - 1
//! first 8 bytes of the SHA-256 of all before
//! ```
//!
//! Numbers are little-endian base-128 (seven bits per byte, the highest bit says "more follows"). The
//! checksum is tested first, so that damaged bytes cannot ask for absurd ranges.

use sha2::{Digest, Sha256};

use super::acknowledged::{DistrictKey, DistrictLedger, Ledger};
use super::id_set::IdSet;

const MAGIC: [u8; 8] = *b"ULEDGER\x01";
const CHECKSUM_BYTES: usize = 8;

/// Why bytes are not a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// Other data, or a version this program does not know.
    #[error(
        "the ledger does not start with the mark of version 1; it is other data or was written by a newer program"
    )]
    UnknownFormat,
    /// Bytes were lost or changed.
    #[error("the ledger's checksum does not match; its bytes were cut or damaged")]
    Damaged,
    /// The checksum is right but the content makes no sense.
    #[error("the ledger holds an impossible value at byte {offset}")]
    Malformed {
        /// Where, from the start.
        offset: usize,
    },
}

impl Ledger {
    /// The ledger as bytes, for a record. Equal ledgers give equal bytes.
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// The ledger that [`Ledger::encode`] wrote.
    ///
    /// # Errors
    /// When the bytes are of another version, cut, or damaged.
    pub fn decode(bytes: &[u8]) -> Result<Ledger, LedgerError> {
        decode(bytes)
    }
}

fn encode(ledger: &Ledger) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    put(&mut bytes, ledger.districts.len() as u64);
    for (key, district) in &ledger.districts {
        put(&mut bytes, u64::from(key.warehouse));
        put(&mut bytes, u64::from(key.district));
        put(&mut bytes, district.unknown);
        put(&mut bytes, district.duplicates);
        put_ids(&mut bytes, &district.acknowledged);
    }
    let checksum = checksum(&bytes);
    bytes.extend_from_slice(&checksum);
    bytes
}

fn decode(bytes: &[u8]) -> Result<Ledger, LedgerError> {
    if !bytes.starts_with(&MAGIC) {
        return Err(LedgerError::UnknownFormat);
    }
    let (body, written) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or(LedgerError::Damaged)?;
    if body.len() < MAGIC.len() || checksum(body) != *written {
        return Err(LedgerError::Damaged);
    }
    let mut reader = Reader { bytes: body, offset: MAGIC.len() };
    let mut ledger = Ledger::default();
    for _ in 0..reader.number()? {
        let key = DistrictKey { warehouse: reader.number32()?, district: reader.number32()? };
        let district = reader.district()?;
        if ledger.districts.insert(key, district).is_some() {
            return Err(reader.malformed());
        }
    }
    if reader.offset == body.len() { Ok(ledger) } else { Err(reader.malformed()) }
}

fn put_ids(bytes: &mut Vec<u8>, ids: &IdSet) {
    put(bytes, ids.ranges().count() as u64);
    // The number that the next range could start with at the earliest.
    let mut earliest = 0;
    for range in ids.ranges() {
        let (first, last) = (u64::from(*range.start()), u64::from(*range.end()));
        put(bytes, first - earliest);
        put(bytes, last - first);
        earliest = last + 1;
    }
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let hash = Sha256::digest(bytes);
    let mut short = [0; CHECKSUM_BYTES];
    short.copy_from_slice(&hash[..CHECKSUM_BYTES]);
    short
}

struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl Reader<'_> {
    fn number(&mut self) -> Result<u64, LedgerError> {
        let mut number = 0u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = *self.bytes.get(self.offset).ok_or_else(|| self.malformed())?;
            let bits = u64::from(byte & 0x7F);
            if bits << shift >> shift != bits {
                return Err(self.malformed());
            }
            self.offset += 1;
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.malformed())
    }

    fn number32(&mut self) -> Result<u32, LedgerError> {
        let number = self.number()?;
        u32::try_from(number).map_err(|_| self.malformed())
    }

    fn district(&mut self) -> Result<DistrictLedger, LedgerError> {
        let (unknown, duplicates) = (self.number()?, self.number()?);
        Ok(DistrictLedger { unknown, duplicates, acknowledged: self.ids()? })
    }

    fn ids(&mut self) -> Result<IdSet, LedgerError> {
        let mut ids = IdSet::default();
        let mut earliest = 0u64;
        for _ in 0..self.number()? {
            let (gap, length) = (self.number()?, self.number()?);
            let first = earliest.checked_add(gap);
            let last = first.and_then(|first| first.checked_add(length));
            let last = last.and_then(|last| u32::try_from(last).ok());
            let last = last.ok_or_else(|| self.malformed())?;
            let first = last - length as u32;
            ids.insert_range(first..=last);
            earliest = u64::from(last) + 1;
        }
        Ok(ids)
    }

    fn malformed(&self) -> LedgerError {
        LedgerError::Malformed { offset: self.offset }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{ProptestConfig, Strategy, prop_assert_eq, proptest};

    use super::{LedgerError, MAGIC, checksum, put};
    use crate::tpcc::ledger::{Acknowledgement, DistrictKey, Ledger};

    fn sample() -> Ledger {
        let mut ledger = Ledger::new();
        for order in (3_001..3_500).chain(3_502..3_600) {
            assert_eq!(ledger.acknowledge(1, 2, order), Acknowledgement::New);
        }
        assert_eq!(ledger.acknowledge(1, 2, 3_100), Acknowledgement::Duplicate);
        ledger.unknown(7, 10);
        ledger
    }

    fn ledgers() -> impl Strategy<Value = Ledger> {
        vec((1u32..4, 1u32..=10, 3_001u32..3_200, proptest::bool::weighted(0.9)), 0..400).prop_map(
            |events| {
                let mut ledger = Ledger::new();
                for (warehouse, district, order, answered) in events {
                    if answered {
                        ledger.acknowledge(warehouse, district, order);
                    } else {
                        ledger.unknown(warehouse, district);
                    }
                }
                ledger
            },
        )
    }

    #[test]
    fn dense_orders_take_few_bytes() {
        let mut ledger = Ledger::new();
        for order in 3_001..103_001 {
            ledger.acknowledge(1, 1, order);
        }
        assert!(ledger.encode().len() < 40);
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_refused() {
        let bytes = sample().encode();
        assert_eq!(Ledger::decode(&bytes), Ok(sample()));
        for cut in 0..bytes.len() {
            assert!(Ledger::decode(&bytes[..cut]).is_err(), "cut at {cut}");
            let mut changed = bytes.clone();
            changed[cut] ^= 0x10;
            assert!(Ledger::decode(&changed).is_err(), "changed at {cut}");
        }
        assert_eq!(Ledger::decode(b"something else"), Err(LedgerError::UnknownFormat));
    }

    #[test]
    fn impossible_contents_with_a_right_checksum_are_refused() {
        let with_body = |numbers: &[u64]| {
            let mut bytes = MAGIC.to_vec();
            numbers.iter().for_each(|number| put(&mut bytes, *number));
            let checksum = checksum(&bytes);
            bytes.extend_from_slice(&checksum);
            Ledger::decode(&bytes)
        };
        assert_eq!(with_body(&[0]), Ok(Ledger::new()));
        let impossible: [&[u64]; 5] = [
            &[1],                                        // ends early
            &[0, 0],                                     // goes on behind the end
            &[1, u64::MAX, 1, 0, 0, 0],                  // a warehouse beyond 32 bits
            &[1, 1, 1, 0, 0, 1, u64::from(u32::MAX), 1], // an order beyond 32 bits
            &[2, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0],          // the same district twice
        ];
        for numbers in impossible {
            assert!(
                matches!(with_body(numbers), Err(LedgerError::Malformed { .. })),
                "{numbers:?}"
            );
        }
    }

    #[test]
    fn merging_counts_duplicates_of_both() {
        let mut ledger = sample();
        ledger.merge(&sample());
        let district = ledger.district(1, 2).unwrap();
        assert_eq!(district.acknowledged_count(), 597);
        assert_eq!(district.duplicate_count(), 1 + 1 + 597);
        assert_eq!(district.next_order_advance(), 597..=597);
        assert_eq!(ledger.district(7, 10).unwrap().next_order_advance(), 0..=2);
        assert_eq!(ledger.unknown_count(), 2);
        let keys: Vec<DistrictKey> = ledger.districts().map(|(key, _)| key).collect();
        assert_eq!(keys[0], DistrictKey { warehouse: 1, district: 2 });
        assert_eq!(keys[1], DistrictKey { warehouse: 7, district: 10 });
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn decode_undoes_encode(ledger in ledgers()) {
            prop_assert_eq!(Ledger::decode(&ledger.encode()), Ok(ledger));
        }

        #[test]
        fn merge_is_union_in_any_order(left in ledgers(), right in ledgers()) {
            let (mut one, mut other) = (left.clone(), right.clone());
            one.merge(&right);
            other.merge(&left);
            prop_assert_eq!(&one, &other);
            let told = |ledger: &Ledger| ledger.acknowledged_count() + ledger.duplicate_count();
            prop_assert_eq!(told(&one), told(&left) + told(&right));
            for warehouse in 1..4 {
                for district in 1..=10 {
                    for order in 3_001..3_200 {
                        let in_either = [&left, &right].iter().any(|ledger| {
                            ledger.district(warehouse, district).is_some_and(|d| d.contains(order))
                        });
                        let merged = one.district(warehouse, district);
                        prop_assert_eq!(merged.is_some_and(|d| d.contains(order)), in_either);
                    }
                }
            }
        }
    }
}
