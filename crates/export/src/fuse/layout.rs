//! Messages to the kernel, laid out field by field. Pure.
//!
//! It deliberately knows no message: its caller gives the fields.

pub(super) const PAGE_BYTES: u32 = 4096;

/// Lays fields out one after the other; what is not set is zero.
pub(super) struct Layout<const N: usize> {
    bytes: [u8; N],
    used: usize,
}

impl<const N: usize> Layout<N> {
    pub(super) fn new() -> Layout<N> {
        Layout { bytes: [0; N], used: 0 }
    }

    fn put(&mut self, field: &[u8]) -> &mut Layout<N> {
        self.bytes[self.used..self.used + field.len()].copy_from_slice(field);
        self.used += field.len();
        self
    }

    pub(super) fn u16(&mut self, value: u16) -> &mut Layout<N> {
        self.put(&value.to_ne_bytes())
    }

    pub(super) fn u32(&mut self, value: u32) -> &mut Layout<N> {
        self.put(&value.to_ne_bytes())
    }

    pub(super) fn u64(&mut self, value: u64) -> &mut Layout<N> {
        self.put(&value.to_ne_bytes())
    }

    pub(super) fn finish(self) -> [u8; N] {
        self.bytes
    }
}
