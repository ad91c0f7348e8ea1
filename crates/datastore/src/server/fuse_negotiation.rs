//! What the kernel's FUSE offers at the beginning of a mount, and what this server takes of it. Pure.
//!
//! The ring (FUSE over io_uring) is offered where the kernel has it and its administrator switched it on; nothing here does.

use super::fuse_protocol::{Layout, PAGE_BYTES};

const MAJOR: u32 = 7;
const MINOR: u32 = 31;

const ASYNC_READ: u32 = 1 << 0;
const BIG_WRITES: u32 = 1 << 5;
const ASYNC_DIO: u32 = 1 << 15;
const MAX_PAGES: u32 = 1 << 22;
/// There are 32 flags more.
const MORE_FLAGS: u32 = 1 << 30;
/// `FUSE_OVER_IO_URING`, bit 41 of all flags.
const RING: u32 = 1 << (41 - 32);

/// What the kernel offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) major: u32,
    pub(crate) minor: u32,
    pub(crate) flags: u32,
    /// Flags 32 to 63; of a meaning only if `flags` says that they are there.
    pub(crate) more_flags: u32,
}

impl Offer {
    /// Whether the kernel can work with us: the protocol's major version, and asynchronous direct I/O, without
    /// which the loop device would be served one request at a time.
    pub(crate) fn is_compatible(&self) -> bool {
        let needed = ASYNC_DIO | MAX_PAGES;
        self.major == MAJOR && self.minor >= MINOR && self.flags & needed == needed
    }

    /// Whether requests may come through an io_uring.
    pub(crate) fn has_ring(&self) -> bool {
        self.flags & MORE_FLAGS != 0 && self.more_flags & RING != 0
    }
}

/// What both sides agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreement {
    /// Largest data of one request; a multiple of the page size.
    pub(crate) request_bytes: u32,
    /// Asynchronous requests in flight.
    pub(crate) background: u16,
    /// Requests come through an io_uring; only where it was offered.
    pub(crate) ring: bool,
}

impl Agreement {
    /// The answer to an offer.
    pub(crate) fn encode(&self) -> [u8; 64] {
        let (flags, more_flags) = if self.ring { (MORE_FLAGS, RING) } else { (0, 0) };
        let mut layout = Layout::new();
        layout.u32(MAJOR).u32(MINOR);
        layout.u32(self.request_bytes); // Read-ahead, which direct I/O does not use.
        layout.u32(ASYNC_READ | BIG_WRITES | ASYNC_DIO | MAX_PAGES | flags);
        layout.u16(self.background).u16(self.background / 4 * 3);
        layout.u32(self.request_bytes);
        layout.u32(1); // Granularity of times: 1 ns.
        layout.u16((self.request_bytes / PAGE_BYTES) as u16);
        layout.u16(0); // Alignment of mappings, which there are not.
        layout.u32(more_flags);
        layout.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{Agreement, Offer};

    fn offer(minor: u32, flags: u32, more_flags: u32) -> Offer {
        Offer { major: 7, minor, flags, more_flags }
    }

    #[test]
    fn old_kernels_are_recognised() {
        assert!(offer(31, u32::MAX, 0).is_compatible());
        assert!(!offer(30, u32::MAX, 0).is_compatible());
        assert!(!offer(31, !(1 << 15), 0).is_compatible());
    }

    #[test]
    fn the_ring_is_taken_where_it_is_offered() {
        assert!(offer(42, 1 << 30, 1 << 9).has_ring());
        assert!(!offer(42, 1 << 30, 1 << 8).has_ring());
        assert!(!offer(42, 0, 1 << 9).has_ring(), "of no meaning");
        let agreed = |ring| Agreement { request_bytes: 1 << 20, background: 1024, ring }.encode();
        let word = |bytes: [u8; 64], at: usize| {
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        assert_eq!(word(agreed(true), 12) & 1 << 30, 1 << 30);
        assert_eq!(word(agreed(true), 32), 1 << 9);
        assert_eq!(word(agreed(false), 12) & 1 << 30, 0);
        assert_eq!(word(agreed(false), 32), 0);
        assert_eq!(agreed(true)[28..30], 256u16.to_ne_bytes());
    }
}
