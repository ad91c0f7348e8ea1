//! A fitted profile with as many digits as a measurement means: what is written into files is read by people.
//!
//! Times and rates keep four digits, and shares three: an order more than two measurements of a device agree in. What
//! was measured and must stay exact (the capacity), and powers of two, are left alone.

use crate::profile::{DeviceProfile, Medium};
use underlay_core::{Bytes, Nanos};

/// Digits of times, rates and sizes.
const DIGITS: u32 = 4;
/// Digits of shares.
const SHARE_DIGITS: usize = 3;
/// The size of a buffer is a multiple of this, or of a power of two that is a 64th of it at most.
const BUFFER_STEP: u64 = 4096;

/// Rounds everything that was fitted.
pub(super) fn round(profile: &mut DeviceProfile) {
    time(&mut profile.flush);
    match &mut profile.medium {
        Medium::Flash(flash) => {
            for value in [
                &mut flash.read_command,
                &mut flash.write_command,
                &mut flash.base,
                &mut flash.read_service,
                &mut flash.slow,
                &mut flash.program,
            ] {
                time(value);
            }
            flash.program_bytes = digits(u64::from(flash.program_bytes)) as u32;
            flash.read_service_cv = share(flash.read_service_cv);
            flash.slow_probability = share(flash.slow_probability);
        }
        // Not fitted.
        Medium::Instant | Medium::Disk(_) => {}
    }
    if let Some(link) = &mut profile.link {
        link.read_bytes_per_second = digits(link.read_bytes_per_second);
        link.write_bytes_per_second = digits(link.write_bytes_per_second);
    }
    if let Some(buffer) = &mut profile.write_buffer {
        buffer.capacity = size(buffer.capacity);
        time(&mut buffer.latency);
        buffer.drain_sequential_bytes_per_second = digits(buffer.drain_sequential_bytes_per_second);
        buffer.drain_random_bytes_per_second = digits(buffer.drain_random_bytes_per_second);
        buffer.fresh_budget = Bytes(digits(buffer.fresh_budget.0));
    }
}

fn time(value: &mut Nanos) {
    *value = Nanos(digits(value.0));
}

/// With [`DIGITS`] digits.
fn digits(value: u64) -> u64 {
    let length = value.checked_ilog10().map_or(0, |log| log + 1);
    let unit = 10u64.pow(length.saturating_sub(DIGITS));
    // The largest values have no room for half a unit above them.
    value.checked_add(unit / 2).unwrap_or(value) / unit * unit
}

fn size(value: Bytes) -> Bytes {
    let step = (value.0 / 64).checked_ilog2().map_or(BUFFER_STEP, |log| 1 << log).max(BUFFER_STEP);
    Bytes(((value.0 + step / 2) / step * step).max(step))
}

/// The text of a number is the shortest that reads back to it, so that a rounded one has few digits.
fn share(value: f64) -> f64 {
    format!("{value:.*e}", SHARE_DIGITS - 1).parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::{digits, share, size};
    use underlay_core::Bytes;

    #[test]
    fn few_digits_stay() {
        let values = [0, 1, 9_999, 12_345, 523_412_331, u64::MAX];
        let expected = [0, 1, 9_999, 12_350, 523_400_000, 18_440_000_000_000_000_000];
        assert_eq!(values.map(digits), expected);
        assert_eq!(share(0.1 + 0.2), 0.3);
        assert_eq!(share(0.012_345_678), 0.0123);
        assert_eq!(share(0.0), 0.0);
        assert_eq!(size(Bytes::from_mib(8)), Bytes::from_mib(8));
        assert_eq!(size(Bytes(13_234_176)), Bytes::from_kib(12_928));
        assert_eq!(size(Bytes::from_kib(256)), Bytes::from_kib(256));
    }
}
