//! What passes between the kernel's FUSE and a server through an io_uring. Pure.
//!
//! Written from the kernel's public header `include/uapi/linux/fuse.h` and `Documentation/filesystems/fuse-io-uring.rst`.
//!
//! ```text
//! header of a place (288 bytes):   0 of the request, or of its answer   128 fixed part of the request
//!                                256 flags:u64   264 commit:u64   272 payload-bytes:u32   276 padding, reserved
//! command (first 24 of 80 bytes):  0 flags:u64     8 commit:u64    16 queue:u16           18 padding
//! ```
//!
//! A place is registered once with its queue; its first command completes when a request is in it. Each answer asks for the
//! next request in the same command. What has no fixed length (data, names) is in the place's payload, in both directions.

use crate::server::fuse_protocol::{
    ANSWER_HEADER_BYTES, FuseRequest, ProtocolError, REQUEST_HEADER_BYTES, parse_parts,
};

/// Bytes of a place's header.
pub(crate) const HEADER_BYTES: usize = 288;
/// Where the fixed part of a request begins, and how much room it has.
const FIXED: usize = 128;
const FIXED_BYTES: usize = 128;
const COMMIT: usize = 264;
const PAYLOAD_BYTES: usize = 272;

/// `FUSE_IO_URING_CMD_REGISTER`.
pub(crate) const REGISTER: u32 = 1;
/// `FUSE_IO_URING_CMD_COMMIT_AND_FETCH`.
pub(crate) const COMMIT_AND_FETCH: u32 = 2;

/// What names a place's request when it is answered, whether or not it can be understood.
pub(crate) fn commit_of(header: &[u8; HEADER_BYTES]) -> u64 {
    u64::from_ne_bytes(field(header, COMMIT))
}

/// Understands the request in a place.
pub(crate) fn parse<'a>(
    header: &'a [u8; HEADER_BYTES],
    payload: &'a [u8],
) -> Result<FuseRequest<'a>, ProtocolError> {
    let length = u32::from_ne_bytes(field(header, PAYLOAD_BYTES)) as usize;
    let payload = payload.get(..length).ok_or(ProtocolError::Truncated(payload.len()))?;
    parse_parts(&header[..REQUEST_HEADER_BYTES], &header[FIXED..FIXED + FIXED_BYTES], payload)
}

/// Writes the header of an answer with so many bytes of payload into a place's.
pub(crate) fn answer(
    header: &mut [u8; HEADER_BYTES],
    answer: &[u8; ANSWER_HEADER_BYTES],
    payload_bytes: usize,
) {
    header[..ANSWER_HEADER_BYTES].copy_from_slice(answer);
    let length = payload_bytes as u32;
    header[PAYLOAD_BYTES..PAYLOAD_BYTES + 4].copy_from_slice(&length.to_ne_bytes());
}

/// The bytes of a command.
pub(crate) fn command(queue: u16, commit: u64) -> [u8; 80] {
    let mut bytes = [0; 80];
    bytes[8..16].copy_from_slice(&commit.to_ne_bytes());
    bytes[16..18].copy_from_slice(&queue.to_ne_bytes());
    bytes
}

fn field<const N: usize>(header: &[u8; HEADER_BYTES], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&header[at..at + N]);
    bytes
}

/// How many places each queue gets: every CPU that the host could have must have a queue. Enough for all requests that the loop
/// devices of a datastore have under way (128 each) while the host is small; what finds no place waits in the kernel, where
/// no model sees it.
pub(crate) fn places_per_queue(cpus: usize) -> usize {
    const TOTAL: usize = 4096;
    (TOTAL / cpus.max(1)).clamp(16, 256)
}

/// How many CPUs there could be, by the kernel's list of them (`0-3,8`).
pub(crate) fn cpus_of(list: &str) -> Option<usize> {
    let run = |run: &str| {
        let (first, last) = run.split_once('-').unwrap_or((run, run));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last).then_some(last - first + 1)
    };
    list.trim().split(',').map(run).sum()
}

#[cfg(test)]
mod tests {
    use super::{
        COMMIT, FIXED, HEADER_BYTES, PAYLOAD_BYTES, answer, command, commit_of, cpus_of, parse,
        places_per_queue,
    };
    use crate::server::fuse_protocol::{Body, ProtocolError, answer_header};
    use proptest::prelude::{any, proptest};

    /// A request as the kernel places it.
    fn placed(opcode: u32, fixed: &[u8], payload_bytes: u32) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[4..8].copy_from_slice(&opcode.to_ne_bytes());
        header[8..16].copy_from_slice(&6u64.to_ne_bytes());
        header[16..24].copy_from_slice(&2u64.to_ne_bytes());
        header[FIXED..FIXED + fixed.len()].copy_from_slice(fixed);
        header[COMMIT..COMMIT + 8].copy_from_slice(&6u64.to_ne_bytes());
        header[PAYLOAD_BYTES..PAYLOAD_BYTES + 4].copy_from_slice(&payload_bytes.to_ne_bytes());
        header
    }

    fn transfer(offset: u64, size: u32) -> Vec<u8> {
        let mut fixed = vec![0; 8];
        fixed.extend_from_slice(&offset.to_ne_bytes());
        fixed.extend_from_slice(&size.to_ne_bytes());
        fixed.resize(40, 0);
        fixed
    }

    #[test]
    fn requests_are_understood() {
        let read = placed(15, &transfer(4096, 512), 0);
        let request = parse(&read, &[0; 4096]).unwrap();
        assert_eq!((request.unique, request.inode, commit_of(&read)), (6, 2, 6));
        assert_eq!(request.body, Body::Read { offset: 4096, size: 512 });
        let write = placed(16, &transfer(8192, 3), 3);
        let request = parse(&write, b"abc, and what was there before").unwrap();
        assert_eq!(request.body, Body::Write { offset: 8192, data: b"abc" });
        // A name has no fixed part before it.
        let lookup = placed(1, &[], 5);
        assert_eq!(parse(&lookup, b"data\0").unwrap().body, Body::Lookup { name: b"data" });
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        let longer_than_its_place = placed(16, &transfer(0, 3), 4097);
        assert!(matches!(
            parse(&longer_than_its_place, &[0; 4096]),
            Err(ProtocolError::Truncated(4096))
        ));
        let longer_than_its_payload = placed(16, &transfer(0, 8), 4);
        assert!(parse(&longer_than_its_payload, &[0; 4096]).is_err());
    }

    #[test]
    fn answers_and_commands_have_the_layout_of_the_header_file() {
        let mut header = placed(15, &transfer(0, 512), 0);
        answer(&mut header, &answer_header(6, libc::EIO, 0), 0);
        assert_eq!(header[4..8], (-libc::EIO).to_ne_bytes());
        assert_eq!(header[8..16], 6u64.to_ne_bytes());
        answer(&mut header, &answer_header(6, 0, 512), 512);
        assert_eq!(header[272..276], 512u32.to_ne_bytes());
        let command = command(3, 77);
        assert_eq!(command[8..16], 77u64.to_ne_bytes());
        assert_eq!(command[16..18], 3u16.to_ne_bytes());
    }

    #[test]
    fn every_cpu_that_could_be_counts() {
        assert_eq!(cpus_of("0-1\n"), Some(2));
        assert_eq!(cpus_of("0"), Some(1));
        assert_eq!(cpus_of("0-3,8-11,16"), Some(9));
        assert_eq!(cpus_of("a-b"), None);
        assert_eq!(cpus_of(""), None);
        assert_eq!([1, 2, 64, 8192].map(places_per_queue), [256, 256, 64, 16]);
    }

    proptest! {
        #[test]
        fn nothing_makes_the_parser_panic(
            header in proptest::collection::vec(any::<u8>(), HEADER_BYTES),
            opcode in 0..60u32,
            payload_bytes in 0..300u32,
            payload in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut header: [u8; HEADER_BYTES] = header.try_into().unwrap();
            header[4..8].copy_from_slice(&opcode.to_ne_bytes());
            header[PAYLOAD_BYTES..PAYLOAD_BYTES + 4].copy_from_slice(&payload_bytes.to_ne_bytes());
            let _ = parse(&header, &payload);
        }
    }
}
