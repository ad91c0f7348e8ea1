//! Parity over data units: XOR, and Reed-Solomon over GF(2^8) for a second failure.
//!
//! `P = D0 + D1 + ...` and `Q = g^0 D0 + g^1 D1 + ...` with `g = 2` and the polynomial x^8 + x^4 + x^3 + x^2 + 1, addition being
//! XOR (H. P. Anvin, "The mathematics of RAID-6"). Any two lost units can be computed from the others.

use std::sync::LazyLock;

/// Most data units in a row.
pub(super) const DATA_MAX: usize = 4;

struct Tables {
    exponent: [u8; 512],
    logarithm: [u8; 256],
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let mut tables = Tables { exponent: [0; 512], logarithm: [0; 256] };
    let mut value = 1u16;
    for power in 0..255 {
        tables.exponent[power] = value as u8;
        tables.exponent[power + 255] = value as u8;
        tables.logarithm[value as usize] = power as u8;
        value <<= 1;
        if value & 0x100 != 0 {
            value ^= 0x11D;
        }
    }
    tables
});

fn multiply(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    let tables = &*TABLES;
    let (a, b) = (tables.logarithm[usize::from(a)], tables.logarithm[usize::from(b)]);
    tables.exponent[usize::from(a) + usize::from(b)]
}

fn inverse(a: u8) -> u8 {
    assert_ne!(a, 0, "zero has no inverse");
    TABLES.exponent[255 - usize::from(TABLES.logarithm[usize::from(a)])]
}

/// `g` to the power of a data unit's number: its weight in Q.
fn weight(index: usize) -> u8 {
    TABLES.exponent[index]
}

/// `target += source`.
pub(super) fn add(target: &mut [u8], source: &[u8]) {
    for (target, source) in target.iter_mut().zip(source) {
        *target ^= source;
    }
}

/// `target += factor * source`.
pub(super) fn add_multiple(target: &mut [u8], source: &[u8], factor: u8) {
    if factor == 1 {
        return add(target, source);
    }
    let products = products(factor);
    for (target, source) in target.iter_mut().zip(source) {
        *target ^= products[usize::from(*source)];
    }
}

fn scale(target: &mut [u8], factor: u8) {
    let products = products(factor);
    for byte in target {
        *byte = products[usize::from(*byte)];
    }
}

fn products(factor: u8) -> [u8; 256] {
    std::array::from_fn(|value| multiply(factor, value as u8))
}

/// Adds the share of data unit `data` to parity unit `parity` (0 = P, 1 = Q).
pub(super) fn accumulate(target: &mut [u8], source: &[u8], data: usize, parity: usize) {
    let factor = if parity == 0 { 1 } else { weight(data) };
    add_multiple(target, source, factor);
}

/// Computes missing data units in place from the others and the parity; false if too much is missing.
///
/// `present[i]` tells whether `data[i]` is known. All buffers have the same length.
pub(super) fn reconstruct(
    data: &mut [Vec<u8>],
    present: &[bool],
    p: Option<&[u8]>,
    q: Option<&[u8]>,
) -> bool {
    let missing: Vec<usize> = (0..data.len()).filter(|index| !present[*index]).collect();
    match (missing.as_slice(), p, q) {
        ([], _, _) => true,
        ([x], Some(p), _) => {
            let sum = remainder(data, present, p, 0);
            data[*x] = sum;
            true
        }
        ([x], None, Some(q)) => {
            let mut sum = remainder(data, present, q, 1);
            scale(&mut sum, inverse(weight(*x)));
            data[*x] = sum;
            true
        }
        ([x, y], Some(p), Some(q)) => {
            // a = Dx + Dy, b = g^x Dx + g^y Dy: Dx = (b + g^y a) / (g^x + g^y).
            let a = remainder(data, present, p, 0);
            let mut first = remainder(data, present, q, 1);
            add_multiple(&mut first, &a, weight(*y));
            scale(&mut first, inverse(weight(*x) ^ weight(*y)));
            let mut second = a;
            add(&mut second, &first);
            data[*x] = first;
            data[*y] = second;
            true
        }
        _ => false,
    }
}

/// The parity less the shares of the known data units.
fn remainder(data: &[Vec<u8>], present: &[bool], parity: &[u8], index: usize) -> Vec<u8> {
    let mut sum = parity.to_vec();
    for (number, unit) in data.iter().enumerate().filter(|(number, _)| present[*number]) {
        accumulate(&mut sum, unit, number, index);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::{accumulate, inverse, multiply, reconstruct};
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    #[test]
    fn the_field_is_a_field() {
        for a in 1..=255u8 {
            assert_eq!(multiply(a, inverse(a)), 1);
            assert_eq!(multiply(a, 1), a);
        }
        assert_eq!(multiply(0x80, 2), 0x1D);
    }

    proptest! {
        /// Whatever two units are lost, data or parity, the data comes back.
        #[test]
        fn any_two_losses_are_survived(
            bytes in proptest::collection::vec(any::<u8>(), 64),
            lost in proptest::collection::btree_set(0..6usize, 0..=2),
            raid5 in any::<bool>(),
        ) {
            let (units, spare) = if raid5 { (3, 1) } else { (4, 2) };
            let data: Vec<Vec<u8>> = bytes.chunks(16).take(units).map(<[u8]>::to_vec).collect();
            let mut parity = vec![vec![0; 16]; spare];
            for (index, target) in parity.iter_mut().enumerate() {
                for (number, unit) in data.iter().enumerate() {
                    accumulate(target, unit, number, index);
                }
            }
            let lost: Vec<usize> = lost.into_iter().filter(|unit| *unit < units + spare).take(spare).collect();
            let present: Vec<bool> = (0..units).map(|unit| !lost.contains(&unit)).collect();
            let mut damaged = data.clone();
            for (unit, known) in damaged.iter_mut().zip(&present) {
                if !known {
                    unit.fill(0xEE);
                }
            }
            let p = (!lost.contains(&units)).then_some(parity[0].as_slice());
            let q = parity.get(1).filter(|_| !lost.contains(&(units + 1))).map(Vec::as_slice);
            prop_assert!(reconstruct(&mut damaged, &present, p, q));
            prop_assert_eq!(damaged, data);
        }
    }

    #[test]
    fn too_many_losses_are_admitted() {
        let mut data = vec![vec![1], vec![2], vec![3]];
        assert!(!reconstruct(&mut data, &[false, false, true], Some(&[0]), None));
        assert!(!reconstruct(&mut data, &[false, true, true], None, None));
    }
}
