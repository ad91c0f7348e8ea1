//! What passes between the ublk driver and whoever serves a device. Pure.
//!
//! ```text
//! request, in shared memory by its tag (24 bytes): 0 operation:u8, flags:u24  4 sectors:u32  8 first-sector:u64  16 address:u64
//! command of a server (16 bytes of an io_uring command): 0 queue:u16  2 tag:u16  4 result:i32  8 buffer:u64
//! ```
//!
//! A server fetches each tag once and later commits a result and fetches again in one command. The completion of a command
//! says that a request has arrived under its tag; that of a write has its data in the tag's buffer already.

/// Bytes of a request in the shared memory.
pub(crate) const DESCRIPTOR_BYTES: usize = 24;
/// Sectors of requests, whatever those of the device are.
const SECTOR_BYTES: u64 = 512;

const FLAG_FUA: u32 = 1 << 13;
const FLAG_NO_UNMAP: u32 = 1 << 15;

/// `_IOWR('u', 0x20, struct ublksrv_io_cmd)`.
pub(crate) const FETCH: u32 = io_code(0x20);
/// `_IOWR('u', 0x21, struct ublksrv_io_cmd)`.
pub(crate) const COMMIT_AND_FETCH: u32 = io_code(0x21);

const fn io_code(number: u32) -> u32 {
    3 << 30 | 16 << 16 | (b'u' as u32) << 8 | number
}

/// A request of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UblkRequest {
    pub(crate) kind: Kind,
    pub(crate) offset_bytes: u64,
    pub(crate) length_bytes: u64,
    /// Done only when it is durable.
    pub(crate) force_unit_access: bool,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Flush,
    Discard,
    /// Zeroes that may lose their space.
    WriteZeroes,
    /// Zeroes that keep it.
    WriteZeroesInPlace,
    /// Something that a device with our parameters is not asked.
    Unsupported,
}

impl UblkRequest {
    /// Understands a request of the shared memory.
    pub(crate) fn decode(bytes: &[u8; DESCRIPTOR_BYTES]) -> UblkRequest {
        let word = |at: usize| {
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let flags = word(0);
        let mut first = [0; 8];
        first.copy_from_slice(&bytes[8..16]);
        let kind = match flags & 0xff {
            0 => Kind::Read,
            1 => Kind::Write,
            2 => Kind::Flush,
            3 => Kind::Discard,
            5 if flags & FLAG_NO_UNMAP != 0 => Kind::WriteZeroesInPlace,
            5 => Kind::WriteZeroes,
            _ => Kind::Unsupported,
        };
        UblkRequest {
            kind,
            // A sector number that overflows is beyond every volume's end.
            offset_bytes: u64::from_ne_bytes(first).saturating_mul(SECTOR_BYTES),
            length_bytes: u64::from(word(4)) * SECTOR_BYTES,
            force_unit_access: flags & FLAG_FUA != 0,
        }
    }
}

/// A command of the server, for one tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IoCommand {
    pub(crate) code: u32,
    pub(crate) tag: u16,
    /// Bytes done, or a negative errno; of no meaning when nothing is committed.
    pub(crate) result: i32,
    /// Where the tag's data is.
    pub(crate) buffer: u64,
}

impl IoCommand {
    /// The 16 bytes of the io_uring command; there is one queue.
    pub(crate) fn encode(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[2..4].copy_from_slice(&self.tag.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.result.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.buffer.to_ne_bytes());
        bytes
    }
}

/// What a tag is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TagState {
    /// Nothing was asked of the driver yet.
    New,
    /// A fetch is with the driver.
    Fetching,
    /// A request is being served.
    Serving,
    /// The device is going away.
    Ended,
}

/// The tags of a queue: which of them wait for a request, and which are being served.
#[derive(Debug)]
pub(crate) struct Tags {
    states: Vec<TagState>,
}

/// What a completion of the driver means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// A request is in the shared memory.
    Request,
    /// The device is going away; nothing more comes under this tag.
    Ended,
    /// The driver refused the command with this errno.
    Refused(i32),
}

impl Tags {
    pub(crate) fn new(depth: u16) -> Tags {
        Tags { states: vec![TagState::New; usize::from(depth)] }
    }

    /// The first commands of all tags.
    pub(crate) fn fetch_all(&mut self, buffer_of: impl Fn(u16) -> u64) -> Vec<IoCommand> {
        let fetch = |(tag, state): (usize, &mut TagState)| {
            assert_eq!(*state, TagState::New, "each tag is fetched once");
            *state = TagState::Fetching;
            let tag = tag as u16;
            IoCommand { code: FETCH, tag, result: 0, buffer: buffer_of(tag) }
        };
        self.states.iter_mut().enumerate().map(fetch).collect()
    }

    /// Says that a command of a tag was completed with `result`.
    pub(crate) fn completed(&mut self, tag: u16, result: i32) -> Arrival {
        let Some(state) = self.states.get_mut(usize::from(tag)) else {
            return Arrival::Refused(libc::EINVAL);
        };
        match result {
            0 if *state == TagState::Fetching => {
                *state = TagState::Serving;
                Arrival::Request
            }
            result if result == -libc::ENODEV => {
                *state = TagState::Ended;
                Arrival::Ended
            }
            result => {
                *state = TagState::Ended;
                Arrival::Refused(if result < 0 { -result } else { libc::EPROTO })
            }
        }
    }

    /// The command that ends a request with `result` and fetches the next; `None` when the device has gone meanwhile.
    pub(crate) fn served(&mut self, tag: u16, result: i32, buffer: u64) -> Option<IoCommand> {
        let state = self.states.get_mut(usize::from(tag))?;
        if *state != TagState::Serving {
            return None;
        }
        *state = TagState::Fetching;
        Some(IoCommand { code: COMMIT_AND_FETCH, tag, result, buffer })
    }

    /// Whether nothing more can come.
    pub(crate) fn have_ended(&self) -> bool {
        self.states.iter().all(|state| *state == TagState::Ended)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Arrival, COMMIT_AND_FETCH, DESCRIPTOR_BYTES, FETCH, IoCommand, Kind, Tags, UblkRequest,
    };
    use proptest::prelude::{any, prop_assert_eq, proptest};
    use std::collections::BTreeMap;

    fn descriptor(flags: u32, sectors: u32, first: u64) -> [u8; DESCRIPTOR_BYTES] {
        let mut bytes = [0; DESCRIPTOR_BYTES];
        bytes[..4].copy_from_slice(&flags.to_ne_bytes());
        bytes[4..8].copy_from_slice(&sectors.to_ne_bytes());
        bytes[8..16].copy_from_slice(&first.to_ne_bytes());
        bytes
    }

    #[test]
    fn codes_are_those_of_the_interface() {
        assert_eq!((FETCH, COMMIT_AND_FETCH), (0xc010_7520, 0xc010_7521));
    }

    #[test]
    fn requests_are_understood() {
        let of = |flags| UblkRequest::decode(&descriptor(flags, 16, 8));
        let read = of(0);
        assert_eq!((read.kind, read.offset_bytes, read.length_bytes), (Kind::Read, 4096, 8192));
        assert!(!read.force_unit_access && of(1 | 1 << 13).force_unit_access);
        assert_eq!(of(2).kind, Kind::Flush);
        assert_eq!(of(3).kind, Kind::Discard);
        assert_eq!(
            (of(5).kind, of(5 | 1 << 15).kind),
            (Kind::WriteZeroes, Kind::WriteZeroesInPlace)
        );
        assert_eq!((of(4).kind, of(15).kind), (Kind::Unsupported, Kind::Unsupported));
        // Beyond the end of everything, not wrapped around to its beginning.
        assert_eq!(UblkRequest::decode(&descriptor(0, 1, u64::MAX)).offset_bytes, u64::MAX);
    }

    #[test]
    fn commands_are_laid_out_as_the_interface_says() {
        let command = IoCommand { code: FETCH, tag: 0x0102, result: -5, buffer: 0x1122_3344 };
        let bytes = command.encode();
        assert_eq!(bytes[..2], [0, 0]);
        assert_eq!(bytes[2..4], 0x0102u16.to_ne_bytes());
        assert_eq!(bytes[4..8], (-5i32).to_ne_bytes());
        assert_eq!(bytes[8..], 0x1122_3344u64.to_ne_bytes());
    }

    #[test]
    fn a_device_that_goes_ends_every_tag_once() {
        let mut tags = Tags::new(3);
        assert_eq!(tags.fetch_all(|tag| u64::from(tag) * 4096).len(), 3);
        assert_eq!(tags.completed(0, 0), Arrival::Request);
        assert_eq!(tags.completed(1, -libc::ENODEV), Arrival::Ended);
        assert_eq!(tags.completed(2, -libc::EINVAL), Arrival::Refused(libc::EINVAL));
        assert!(!tags.have_ended());
        // The request is answered after all; the driver then says that it was the last.
        assert!(tags.served(0, 4096, 0).is_some());
        assert!(tags.served(0, 4096, 0).is_none(), "answered once");
        assert_eq!(tags.completed(0, -libc::ENODEV), Arrival::Ended);
        assert!(tags.have_ended());
        assert_eq!(tags.completed(9, 0), Arrival::Refused(libc::EINVAL));
    }

    proptest! {
        /// Against a driver that hands out requests in any order: every request is answered exactly once, and no tag is with
        /// both sides at the same time.
        #[test]
        fn every_request_is_answered_once(choices in proptest::collection::vec(any::<u16>(), 1..400)) {
            const DEPTH: u16 = 5;
            let mut tags = Tags::new(DEPTH);
            // What the driver has: tags with a fetch, by the result that it will get for the request before.
            let mut fetched: Vec<u16> = Vec::new();
            for command in tags.fetch_all(u64::from) {
                prop_assert_eq!((command.code, command.buffer), (FETCH, u64::from(command.tag)));
                fetched.push(command.tag);
            }
            let mut serving: Vec<u16> = Vec::new();
            let mut answers: BTreeMap<u16, u32> = BTreeMap::new();
            let mut requests: BTreeMap<u16, u32> = BTreeMap::new();
            for choice in choices {
                if choice % 2 == 0 && !fetched.is_empty() {
                    let tag = fetched.swap_remove(usize::from(choice / 2) % fetched.len());
                    prop_assert_eq!(tags.completed(tag, 0), Arrival::Request);
                    *requests.entry(tag).or_default() += 1;
                    serving.push(tag);
                } else if !serving.is_empty() {
                    let tag = serving.swap_remove(usize::from(choice / 2) % serving.len());
                    let command = tags.served(tag, i32::from(choice), 7).expect("it is being served");
                    prop_assert_eq!((command.code, command.result), (COMMIT_AND_FETCH, i32::from(choice)));
                    *answers.entry(tag).or_default() += 1;
                    fetched.push(tag);
                }
                prop_assert_eq!(fetched.len() + serving.len(), usize::from(DEPTH));
            }
            for tag in serving {
                tags.served(tag, 0, 0).expect("it is being served");
                *answers.entry(tag).or_default() += 1;
            }
            prop_assert_eq!(answers, requests);
        }
    }
}
