//! The memory in which requests are placed and answered: a header and a payload per place.
//!
//! Payloads are as long as the largest request and take memory once they are touched, so places that carry large requests now
//! and then would keep all of it. Who uses them bounds that, by [`Places::trim`].

use std::io;
use std::ops::Range;

use super::protocol::{self, HEADER_BYTES};
use crate::server::fuse_protocol::ANSWER_HEADER_BYTES;
use crate::server::mapping::Mapping;

/// From one header to the next: whole cache lines, the same number in each page.
const HEADER_STRIDE: usize = 512;
/// What a place keeps of its payload in any case.
const KEPT_BYTES: usize = 64 << 10;

/// The places of all queues, by number.
pub(crate) struct Places {
    headers: Mapping,
    payloads: Mapping,
    payload_bytes: usize,
    count: usize,
}

impl Places {
    /// Memory for so many places.
    pub(crate) fn new(count: usize, payload_bytes: usize) -> io::Result<Places> {
        let headers = Mapping::anonymous(count * HEADER_STRIDE)?;
        let payloads = Mapping::anonymous(count * payload_bytes)?;
        Ok(Places { headers, payloads, payload_bytes, count })
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Header and payload of a place, as the kernel wants to know them.
    pub(crate) fn vectors(&self, place: usize) -> [libc::iovec; 2] {
        let payload = self.payload_range(place, self.payload_bytes);
        [
            libc::iovec { iov_base: self.header_at(place).cast(), iov_len: HEADER_BYTES },
            libc::iovec { iov_base: self.payloads.at(payload).cast(), iov_len: self.payload_bytes },
        ]
    }

    /// The header of a place whose request has arrived.
    pub(crate) fn header(&self, place: usize) -> [u8; HEADER_BYTES] {
        // SAFETY: the header lies within the mapping and has no alignment. The kernel wrote it before it announced the request
        // and leaves it alone until the request is answered; volatile, because the compiler sees nobody write it.
        unsafe { self.header_at(place).cast::<[u8; HEADER_BYTES]>().read_volatile() }
    }

    /// The payload of a place whose request has arrived and is not answered yet. Its first bytes are those that came.
    pub(crate) fn payload(&self, place: usize) -> &[u8] {
        let start = self.payloads.at(self.payload_range(place, self.payload_bytes));
        // SAFETY: the range lies within the mapping, which lives as long as `self`. The kernel filled it before it announced
        // the request and touches it again only after the request was answered; answers are written by `answer`, at a time
        // when no request is being looked at, and data by `fill` and `room`, into places whose request came without any.
        unsafe { std::slice::from_raw_parts(start, self.payload_bytes) }
    }

    /// Where the data of a read is to go.
    ///
    /// # Safety
    /// The place's request must be a read that is not answered yet, and nobody else may look at its payload meanwhile.
    #[expect(
        clippy::mut_from_ref,
        reason = "places are memory of the kernel's; who may write one is said above"
    )]
    pub(crate) unsafe fn room(&self, place: usize, length: usize) -> &mut [u8] {
        let start = self.payloads.at(self.payload_range(place, length));
        // SAFETY: the range lies within the mapping; the caller says that it is ours.
        unsafe { std::slice::from_raw_parts_mut(start, length) }
    }

    /// Puts the header of an answer and, unless it is there already, its body into a place.
    ///
    /// # Safety
    /// The place's request must not be answered yet, and nobody may look at its payload meanwhile.
    pub(crate) unsafe fn answer(
        &self,
        place: usize,
        header: &[u8; ANSWER_HEADER_BYTES],
        body: Body<'_>,
    ) {
        let length = match body {
            Body::InPlace(length) => length,
            Body::Bytes(bytes) => {
                let start = self.payloads.at(self.payload_range(place, bytes.len()));
                // SAFETY: the range lies within the mapping and, as the caller says, is ours; the bytes are elsewhere.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len()) };
                bytes.len()
            }
        };
        // SAFETY: as above; headers have no alignment.
        let place = unsafe { &mut *self.header_at(place).cast::<[u8; HEADER_BYTES]>() };
        protocol::answer(place, header, length);
    }

    /// Whether a request that touched so many bytes of a payload makes its place take more memory than it always keeps.
    pub(crate) fn is_large(bytes: usize) -> bool {
        bytes > KEPT_BYTES
    }

    /// Gives back what a place's payload took beyond that.
    ///
    /// # Safety
    /// Neither the kernel nor anybody else may use the payload meanwhile.
    pub(crate) unsafe fn trim(&self, place: usize) {
        let whole = self.payload_range(place, self.payload_bytes);
        self.payloads.forget((whole.start + KEPT_BYTES).min(whole.end)..whole.end);
    }

    fn header_at(&self, place: usize) -> *mut u8 {
        let start = place * HEADER_STRIDE;
        self.headers.at(start..start + HEADER_BYTES)
    }

    /// # Panics
    /// When the place is none, or its payload shorter.
    fn payload_range(&self, place: usize, length: usize) -> Range<usize> {
        assert!(length <= self.payload_bytes, "longer than a payload");
        let start = place * self.payload_bytes;
        start..start + length
    }
}

/// What an answer says besides its header.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body<'a> {
    Bytes(&'a [u8]),
    /// So many bytes that were read into the place's payload.
    InPlace(usize),
}

#[cfg(test)]
mod tests {
    use super::{Body, HEADER_BYTES, Places};

    #[test]
    fn each_place_has_memory_of_its_own() {
        let places = Places::new(3, 1 << 20).unwrap();
        for place in 0..3 {
            let fill = place as u8 + 1;
            // SAFETY: there is no kernel at the other end.
            unsafe {
                places.room(place, 1 << 20).fill(fill);
                places.answer(place, &[fill; 16], Body::Bytes(&[9; 4]));
            }
        }
        for place in 0..3 {
            let fill = place as u8 + 1;
            assert_eq!(places.header(place)[..16], [fill; 16]);
            assert_eq!(places.header(place)[272..276], 4u32.to_ne_bytes());
            assert_eq!(places.payload(place)[..5], [9, 9, 9, 9, fill]);
            assert_eq!(places.payload(place)[(1 << 20) - 1], fill);
            let [header, payload] = places.vectors(place);
            assert_eq!((header.iov_len, payload.iov_len), (HEADER_BYTES, 1 << 20));
        }
        // SAFETY: as above.
        unsafe { places.trim(1) };
        assert_eq!(places.payload(1)[(64 << 10) - 1..][..2], [2, 0], "given back");
        assert_eq!(places.payload(2)[(1 << 20) - 1], 3, "its neighbour keeps its own");
    }
}
