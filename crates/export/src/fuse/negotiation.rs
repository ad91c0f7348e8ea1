//! What the kernel's FUSE offers at the beginning of a mount, and what this server takes of it. Pure.

use super::layout::{Layout, PAGE_BYTES};

const MAJOR: u32 = 7;
const MINOR: u32 = 31;

const ASYNC_READ: u32 = 1 << 0;
const BIG_WRITES: u32 = 1 << 5;
const ASYNC_DIO: u32 = 1 << 15;
const MAX_PAGES: u32 = 1 << 22;

/// What the kernel offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) major: u32,
    pub(crate) minor: u32,
    pub(crate) flags: u32,
}

impl Offer {
    /// Whether the kernel can work with us: the protocol's major version, and asynchronous direct I/O, without
    /// which the loop device would be served one request at a time.
    pub(crate) fn is_compatible(&self) -> bool {
        let needed = ASYNC_DIO | MAX_PAGES;
        self.major == MAJOR && self.minor >= MINOR && self.flags & needed == needed
    }
}

/// What both sides agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreement {
    /// Largest data of one request; a multiple of the page size.
    pub(crate) request_bytes: u32,
    /// Asynchronous requests in flight.
    pub(crate) background: u16,
}

impl Agreement {
    /// The answer to an offer.
    pub(crate) fn encode(&self) -> [u8; 64] {
        let mut layout = Layout::new();
        layout.u32(MAJOR).u32(MINOR);
        layout.u32(self.request_bytes); // Read-ahead, which direct I/O does not use.
        layout.u32(ASYNC_READ | BIG_WRITES | ASYNC_DIO | MAX_PAGES);
        layout.u16(self.background).u16(self.background / 4 * 3);
        layout.u32(self.request_bytes);
        layout.u32(1); // Granularity of times: 1 ns.
        layout.u16((self.request_bytes / PAGE_BYTES) as u16);
        layout.u16(0); // Alignment of mappings, which there are not.
        layout.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{Agreement, Offer};

    fn offer(minor: u32, flags: u32) -> Offer {
        Offer { major: 7, minor, flags }
    }

    #[test]
    fn old_kernels_are_recognised() {
        assert!(offer(31, u32::MAX).is_compatible());
        assert!(!offer(30, u32::MAX).is_compatible());
        assert!(!offer(31, !(1 << 15)).is_compatible());
    }

    #[test]
    fn the_answer_takes_no_flag_that_is_not_known() {
        let answer = Agreement { request_bytes: 1 << 20, background: 1024 }.encode();
        let word = |at: usize| {
            u32::from_ne_bytes([answer[at], answer[at + 1], answer[at + 2], answer[at + 3]])
        };
        // Flags 32 to 63 (at 32) are there only if bit 30 says so.
        assert_eq!((word(12) & 1 << 30, word(32)), (0, 0));
        assert_eq!(answer[28..30], 256u16.to_ne_bytes());
    }
}
