//! The write buffer of a group: room, and an account of every byte.
//!
//! A log on the cache device: writes are appended where the last one ended, wrapping at the end, so the
//! device sees one sequential stream. Space becomes free block by block, when a block has been destaged, overwritten
//! or discarded; what a real log pays for reusing scattered space is not modelled, for want of public
//! numbers. Blocks are read back from an address derived from where they belong, which puts
//! neighbours side by side.

use super::buffered::BLOCK_BYTES;
use underlay_core::Bytes;

/// The log of a group.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    usable_bytes: u64,
    head: u64,
    /// Bytes of writes on their way to the cache device.
    reserved_bytes: u64,
    pub(crate) account: LogAccount,
}

/// Bytes that entered and left the buffer since the start.
/// `admitted = destaged + overwritten + discarded + dropped + buffered`, always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogAccount {
    /// Written into the buffer and acknowledged.
    pub admitted_bytes: u64,
    /// Arrived on a capacity device.
    pub destaged_bytes: u64,
    /// Replaced by a newer version before they left: work the capacity devices were spared.
    pub overwritten_bytes: u64,
    /// Discarded before they left.
    pub discarded_bytes: u64,
    /// Gone with a lost device.
    pub dropped_bytes: u64,
    /// In the buffer now.
    pub buffered_bytes: u64,
}

impl LogAccount {
    /// Whether every byte is accounted for.
    pub fn is_balanced(&self) -> bool {
        self.admitted_bytes
            == self.destaged_bytes
                + self.overwritten_bytes
                + self.discarded_bytes
                + self.dropped_bytes
                + self.buffered_bytes
    }
}

impl Log {
    pub(crate) fn new(usable: Bytes) -> Log {
        Log { usable_bytes: usable.0, head: 0, reserved_bytes: 0, account: LogAccount::default() }
    }

    /// Bytes in use, those on their way included.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.account.buffered_bytes + self.reserved_bytes
    }

    /// Used share of the buffer; above 1 only for a single write larger than all of it.
    pub(crate) fn fill(&self) -> f64 {
        self.used_bytes() as f64 / self.usable_bytes as f64
    }

    /// The most bytes in use at which [`Log::fill`] is at most `share`: what is compared often is compared as a number of bytes.
    pub(crate) fn most_bytes_at(&self, share: f64) -> u64 {
        let fill = |bytes: u64| bytes as f64 / self.usable_bytes as f64;
        let mut bytes = (share * self.usable_bytes as f64) as u64;
        while fill(bytes + 1) <= share {
            bytes += 1;
        }
        while bytes > 0 && fill(bytes) > share {
            bytes -= 1;
        }
        bytes
    }

    /// The fewest bytes in use at which [`Log::fill`] is at least `share`.
    pub(crate) fn fewest_bytes_at(&self, share: f64) -> u64 {
        let fill = |bytes: u64| bytes as f64 / self.usable_bytes as f64;
        let mut bytes = (share * self.usable_bytes as f64) as u64;
        while fill(bytes) < share {
            bytes += 1;
        }
        while bytes > 0 && fill(bytes - 1) >= share {
            bytes -= 1;
        }
        bytes
    }

    /// Whether a write fits. One larger than the whole buffer fits when it is empty.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        let used = self.used_bytes();
        used + bytes <= self.usable_bytes || used == 0
    }

    /// Makes room for a write; returns its address on the cache device.
    pub(crate) fn reserve(&mut self, bytes: u64) -> u64 {
        self.reserved_bytes += bytes;
        let address = if self.head + bytes > self.usable_bytes { 0 } else { self.head };
        debug_assert!(
            address + bytes <= self.usable_bytes || address == 0,
            "a write lies within the log"
        );
        self.head = address + bytes;
        address
    }

    /// A reserved write is in the buffer, having replaced some bytes of it.
    pub(crate) fn admit(&mut self, bytes: u64, replaced_bytes: u64) {
        debug_assert!(bytes <= self.reserved_bytes, "only reserved bytes are given back");
        self.reserved_bytes -= bytes;
        debug_assert!(replaced_bytes <= bytes, "a write replaces at most as much as it holds");
        self.account.admitted_bytes += bytes;
        self.account.overwritten_bytes += replaced_bytes;
        self.account.buffered_bytes += bytes - replaced_bytes;
        debug_assert!(self.account.is_balanced(), "{:?}", self.account);
    }

    /// A reserved write did not make it.
    pub(crate) fn release(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.reserved_bytes, "only reserved bytes are given back");
        self.reserved_bytes -= bytes;
    }

    /// No write is on its way any more: a power cut.
    pub(crate) fn release_all(&mut self) {
        self.reserved_bytes = 0;
    }

    pub(crate) fn destaged(&mut self, blocks: u64) {
        debug_assert!(
            blocks * BLOCK_BYTES <= self.account.buffered_bytes,
            "only buffered bytes leave"
        );
        debug_assert!(self.account.is_balanced(), "{:?}", self.account);
        self.account.destaged_bytes += blocks * BLOCK_BYTES;
        self.account.buffered_bytes -= blocks * BLOCK_BYTES;
    }

    pub(crate) fn overwritten(&mut self, blocks: u64) {
        debug_assert!(
            blocks * BLOCK_BYTES <= self.account.buffered_bytes,
            "only buffered bytes leave"
        );
        debug_assert!(self.account.is_balanced(), "{:?}", self.account);
        self.account.overwritten_bytes += blocks * BLOCK_BYTES;
        self.account.buffered_bytes -= blocks * BLOCK_BYTES;
    }

    pub(crate) fn discarded(&mut self, blocks: u64) {
        debug_assert!(
            blocks * BLOCK_BYTES <= self.account.buffered_bytes,
            "only buffered bytes leave"
        );
        debug_assert!(self.account.is_balanced(), "{:?}", self.account);
        self.account.discarded_bytes += blocks * BLOCK_BYTES;
        self.account.buffered_bytes -= blocks * BLOCK_BYTES;
    }

    pub(crate) fn dropped(&mut self, blocks: u64) {
        debug_assert!(
            blocks * BLOCK_BYTES <= self.account.buffered_bytes,
            "only buffered bytes leave"
        );
        debug_assert!(self.account.is_balanced(), "{:?}", self.account);
        self.account.dropped_bytes += blocks * BLOCK_BYTES;
        self.account.buffered_bytes -= blocks * BLOCK_BYTES;
    }

    /// Where a buffered block of a disk is read back from.
    pub(crate) fn address(&self, disk: usize, block: u64) -> u64 {
        let disks_apart = self.usable_bytes / 8 / BLOCK_BYTES * BLOCK_BYTES;
        (block * BLOCK_BYTES + disk as u64 * disks_apart) % self.usable_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::Log;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
    use underlay_core::Bytes;

    proptest! {
        /// Bytes and shares are compared alike, right beside the limit too.
        #[test]
        fn limits_in_bytes_are_those_in_shares(
            usable in 1u64 << 20..600_000_000_000, share in 0.0..=1.0f64, beside in -3i64..=3,
        ) {
            let mut log = Log::new(Bytes(usable));
            for share in [share, 0.0, 0.3, 0.6, 1.0] {
                let (most, fewest) = (log.most_bytes_at(share), log.fewest_bytes_at(share));
                prop_assert!(most <= usable && fewest <= usable);
                for limit in [most, fewest] {
                    log.reserved_bytes = limit.saturating_add_signed(beside);
                    prop_assert_eq!(log.fill() <= share, log.used_bytes() <= most);
                    prop_assert_eq!(log.fill() >= share, log.used_bytes() >= fewest);
                }
            }
        }
    }
}
