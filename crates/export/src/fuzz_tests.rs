//! What others send, damaged: NBD conversations and requests of the kernel. Nothing of it may panic, and nothing may be used up
//! that was not there.

use underlay_fuzz::fuzz;

use super::fuse::protocol as fuse_protocol;
use super::nbd::negotiation::{Export, Negotiation, Step};
use super::nbd::protocol::{self, Parsed};

fn be(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn option(option: u32, data: &[u8]) -> Vec<u8> {
    be(&[b"IHAVEOPT", &option.to_be_bytes(), &(data.len() as u32).to_be_bytes(), data])
}

fn request(kind: u16, flags: u16, offset: u64, length: u32, data: &[u8]) -> Vec<u8> {
    be(&[
        &0x2560_9513u32.to_be_bytes(),
        &flags.to_be_bytes(),
        &kind.to_be_bytes(),
        &77u64.to_be_bytes(),
        &offset.to_be_bytes(),
        &length.to_be_bytes(),
        data,
    ])
}

/// What a client says from its first byte: flags, options, requests.
fn conversations() -> Vec<Vec<u8>> {
    let flags = 3u32.to_be_bytes();
    let go = |kind| option(kind, &be(&[&4u32.to_be_bytes(), b"data", &[0, 1, 0, 3]]));
    let requests = [
        request(0, 0, 4096, 8192, &[]),
        request(1, 1, 0, 512, &[9; 512]),
        request(3, 0, 0, 0, &[]),
        request(4, 0, 65_536, 4096, &[]),
        request(6, 2, 0, 4096, &[]),
        request(2, 0, 0, 0, &[]),
    ]
    .concat();
    let contexts = |queries: &[&[u8]]| {
        let named = |text: &[u8]| be(&[&(text.len() as u32).to_be_bytes(), text]);
        let count = (queries.len() as u32).to_be_bytes();
        be(&[&named(b"data"), &count, &queries.iter().copied().flat_map(named).collect::<Vec<_>>()])
    };
    let lists = [option(9, &contexts(&[])), option(9, &contexts(&[b"base:"]))].concat();
    let sets = option(10, &contexts(&[b"base:allocation", b"other:context"]));
    let statuses = [request(7, 0, 0, 1 << 20, &[]), request(7, 8, 4096, 4096, &[])].concat();
    vec![
        be(&[&flags, &option(8, &[]), &lists, &sets, &go(7), &statuses, &requests]),
        be(&[&flags, &sets, &option(8, &[]), &sets, &option(1, b"data"), &statuses]),
        be(&[&flags, &option(8, &[]), &option(3, &[]), &go(6), &go(7), &requests]),
        be(&[&flags, &option(1, b"data"), &requests]),
        be(&[&flags, &option(7, &be(&[&0u32.to_be_bytes(), &[0, 0]])), &requests]),
        be(&[&flags, &option(2, &[])]),
    ]
}

/// Reads a conversation as the server does, in pieces of `piece` bytes.
fn converse(bytes: &[u8], piece: usize) {
    let exports = [Export { name: "data".to_string(), size_bytes: 1 << 20 }];
    let mut negotiation = Negotiation::new();
    let (mut there, mut at) = (0, 0);
    let more = |there: &mut usize| {
        let had = *there;
        *there = (*there + piece).min(bytes.len());
        *there > had
    };
    loop {
        match negotiation.step(&bytes[at..there], &exports) {
            Err(_) | Ok(Step::Ended(_)) => return,
            Ok(Step::Incomplete(needed)) => {
                assert!(needed > there - at, "asks for what it has");
                if !more(&mut there) {
                    return;
                }
            }
            Ok(Step::Reply(used, _)) => {
                assert!(used > 0 && used <= there - at, "used up {used} of {}", there - at);
                at += used;
            }
            Ok(Step::Chosen { used, export, .. }) => {
                assert!(used <= there - at && export < exports.len());
                at += used;
                break;
            }
        }
    }
    loop {
        match protocol::parse(&bytes[at..there]) {
            Err(_) => return,
            Ok(Parsed::Incomplete(needed)) => {
                assert!(needed > there - at, "asks for what it has");
                if !more(&mut there) {
                    return;
                }
            }
            Ok(Parsed::Request(request, used)) => {
                assert!(used >= protocol::REQUEST_BYTES && used <= there - at);
                assert!(request.data.len() <= request.length as usize);
                at += used;
            }
        }
    }
}

#[test]
fn nbd_conversations() {
    fuzz(&conversations(), |bytes| {
        for piece in [1, 7, usize::MAX >> 1] {
            converse(bytes, piece);
        }
    });
}

#[test]
fn requests_of_the_kernel() {
    let header = |opcode: u32, body: &[u8]| {
        let length = (40 + body.len()) as u32;
        be(&[
            &length.to_ne_bytes(),
            &opcode.to_ne_bytes(),
            &[5; 8],
            &[1, 0, 0, 0, 0, 0, 0, 0],
            &[0; 16],
            body,
        ])
    };
    let write = be(&[&[1; 8], &4096u64.to_ne_bytes(), &512u32.to_ne_bytes(), &[0; 20], &[7; 512]]);
    let read = be(&[&[1; 8], &4096u64.to_ne_bytes(), &8192u32.to_ne_bytes(), &[0; 20]]);
    let init = [7u32, 45, 131_072, 0xffff_ffff].map(u32::to_ne_bytes).concat();
    let corpus = vec![
        header(1, b"data\0"),
        header(15, &read),
        header(16, &write),
        header(26, &init),
        header(28, &read),
        header(43, &[0; 32]),
        header(3, &[0; 16]),
    ];
    fuzz(&corpus, |bytes| {
        if let Ok(request) = fuse_protocol::parse(bytes)
            && let fuse_protocol::Body::Write { data, .. } = request.body
        {
            assert!(data.len() < bytes.len());
        }
    });
}
