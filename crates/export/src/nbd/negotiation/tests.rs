//! Tests of the NBD handshake: what clients say in any order and in any pieces, and what they hear.

use super::{Export, Negotiation, Status, Step};
use crate::nbd::protocol::{ProtocolError, ReplyForm};
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

fn exports() -> Vec<Export> {
    ["data", "wal"]
        .into_iter()
        .map(|name| Export { name: name.to_string(), size_bytes: 1 << 20 })
        .collect()
}

fn option(option: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend_from_slice(&option.to_be_bytes());
    bytes.extend_from_slice(&(data.len() as u32).to_be_bytes());
    bytes.extend_from_slice(data);
    bytes
}

fn go(name: &str, asked: &[u16]) -> Vec<u8> {
    let mut data = (name.len() as u32).to_be_bytes().to_vec();
    data.extend_from_slice(name.as_bytes());
    data.extend_from_slice(&(asked.len() as u16).to_be_bytes());
    asked.iter().for_each(|item| data.extend_from_slice(&item.to_be_bytes()));
    data
}

/// What a whole conversation brings: all that is sent, and how it ended.
fn converse(bytes: &[u8], pieces: &[usize]) -> (Vec<u8>, String) {
    let mut negotiation = Negotiation::new();
    let (mut sent, mut pending, mut rest) = (Vec::new(), Vec::new(), bytes);
    let mut pieces = pieces.iter().copied().chain(std::iter::repeat(usize::MAX));
    loop {
        match negotiation.step(&pending, &exports()) {
            Err(error) => return (sent, error.to_string()),
            Ok(Step::Ended(reply)) => {
                sent.extend(reply);
                return (sent, "ended".to_string());
            }
            Ok(Step::Chosen { reply, export, form, .. }) => {
                sent.extend(reply);
                return (sent, format!("{export} {form:?}"));
            }
            Ok(Step::Reply(used, reply)) => {
                assert!(used > 0 && used <= pending.len());
                sent.extend(reply);
                pending.drain(..used);
            }
            Ok(Step::Incomplete(needed)) => {
                assert!(needed > pending.len());
                if rest.is_empty() {
                    return (sent, "waiting".to_string());
                }
                let piece = pieces.next().unwrap_or(1).clamp(1, rest.len());
                pending.extend_from_slice(&rest[..piece]);
                rest = &rest[piece..];
            }
        }
    }
}

fn with_flags(options: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = 3u32.to_be_bytes().to_vec();
    options.iter().for_each(|option| bytes.extend(option));
    bytes
}

#[test]
fn an_export_is_chosen_in_both_ways() {
    let (sent, end) = converse(&with_flags(&[option(8, &[]), option(7, &go("wal", &[3]))]), &[]);
    assert_eq!(end, "1 Structured");
    // ACK; export info 12 bytes; block sizes 14 bytes; ACK.
    assert_eq!(sent.len(), 20 + 20 + 12 + 20 + 14 + 20);
    let (sent, end) = converse(&with_flags(&[option(1, b"data")]), &[]);
    assert_eq!((sent.len(), end.as_str()), (10, "0 Simple"));
    assert_eq!(sent[..8], (1u64 << 20).to_be_bytes());
    let mut with_zeroes = with_flags(&[option(1, b"data")]);
    with_zeroes[3] = 1;
    assert_eq!(converse(&with_zeroes, &[]).0.len(), 134);
}

/// Name and queries of a question for contexts.
fn contexts(name: &str, queries: &[&str]) -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat();
    let mut data = text(name);
    data.extend_from_slice(&(queries.len() as u32).to_be_bytes());
    queries.iter().for_each(|query| data.extend(text(query)));
    data
}

#[test]
fn the_allocation_is_told_to_who_has_chosen_it_for_that_export() {
    let chosen = |options: &[Vec<u8>]| {
        let mut negotiation = Negotiation { has_client_flags: true, ..Negotiation::new() };
        options
            .iter()
            .find_map(|option| match negotiation.step(option, &exports()).unwrap() {
                Step::Chosen { status, .. } => Some(status),
                _ => None,
            })
            .unwrap()
    };
    let (structured, go) = (option(8, &[]), option(7, &go("wal", &[])));
    let set = |name, queries: &[&str]| option(10, &contexts(name, queries));
    let allocation = ["x:y", "base:allocation"];
    let told = [structured.clone(), set("wal", &allocation), go.clone()];
    assert_eq!(chosen(&told), Status::Negotiated);
    for other in [set("data", &allocation), set("wal", &["base:"]), option(10, &[1])] {
        assert_eq!(chosen(&[structured.clone(), other, go.clone()]), Status::Unknown);
    }
    // Not without structured replies, and the last word counts.
    assert_eq!(chosen(&[set("wal", &allocation), go.clone()]), Status::Unknown);
    let taken_back = [structured, set("wal", &allocation), set("wal", &[]), go];
    assert_eq!(chosen(&taken_back), Status::Unknown);
}

#[test]
fn contexts_are_listed() {
    for queries in [&[][..], &["base:"], &["base:allocation"], &["x:", "base:allocation"]] {
        let list = option(9, &contexts("data", queries));
        let (sent, _) = converse(&with_flags(&[option(8, &[]), list]), &[]);
        // The structured replies' ACK; the context with its number; ACK.
        assert_eq!(sent.len(), 20 + 20 + 4 + 15 + 20, "{queries:?}");
        assert!(sent.ends_with(&[0; 4]) && sent[44..].starts_with(b"base:allocation"));
    }
    let list = option(9, &contexts("data", &["x:"]));
    assert_eq!(converse(&with_flags(&[option(8, &[]), list]), &[]).0.len(), 20 + 20);
}

#[test]
fn exports_are_listed_and_unknown_ones_refused() {
    let (sent, end) = converse(&with_flags(&[option(3, &[]), option(2, &[])]), &[]);
    assert_eq!(end, "ended");
    assert_eq!(sent.len(), (20 + 4 + 4) + (20 + 4 + 3) + 20 + 20);
    let (sent, end) = converse(&with_flags(&[option(6, &go("none", &[]))]), &[]);
    assert_eq!(sent[12..16], ((1u32 << 31) + 6).to_be_bytes());
    assert_eq!(end, "waiting");
    let (_, end) = converse(&with_flags(&[option(1, b"none")]), &[]);
    assert_eq!(end, ProtocolError::UnknownExport.to_string());
    // Two volumes: there is no default one. STARTTLS and extended headers are not known.
    let (_, end) = converse(&with_flags(&[option(1, b"")]), &[]);
    assert_eq!(end, ProtocolError::UnknownExport.to_string());
    for unknown in [5, 11] {
        let (sent, _) = converse(&with_flags(&[option(unknown, &[])]), &[]);
        assert_eq!(sent[12..16], ((1u32 << 31) + 1).to_be_bytes());
    }
}

#[test]
fn nonsense_ends_the_conversation() {
    assert!(converse(&[0xff; 20], &[]).1.contains("handshake flags"));
    let mut bad = with_flags(&[option(7, &[])]);
    bad[4] = b'X';
    assert!(converse(&bad, &[]).1.contains("unknown number"));
    let mut long = with_flags(&[option(7, &[])]);
    long[16..20].copy_from_slice(&u32::MAX.to_be_bytes());
    assert!(converse(&long, &[]).1.contains("longer than the protocol"));
    assert_eq!(ReplyForm::Simple, Negotiation::new().form);
}

fn any_option() -> impl Strategy<Value = Vec<u8>> {
    let name = prop_oneof![Just("data"), Just("wal"), Just(""), Just("none")];
    let asked = proptest::collection::vec(0..5u16, 0..4);
    prop_oneof![
        (name.clone(), asked).prop_map(|(name, asked)| option(6, &go(name, &asked))),
        name.prop_map(|name| option(7, &go(name, &[0, 1, 3]))),
        (0..12u32, proptest::collection::vec(any::<u8>(), 0..40))
            .prop_map(|(kind, data)| option(kind, &data)),
    ]
}

proptest! {
    /// However the bytes are cut into pieces, the same is said and done; and nothing panics when some
    /// of them are changed.
    #[test]
    fn pieces_do_not_matter(
        options in proptest::collection::vec(any_option(), 0..8),
        pieces in proptest::collection::vec(1..20usize, 0..200),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let mut bytes = with_flags(&options);
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let (whole, in_pieces) = (converse(&bytes, &[]), converse(&bytes, &pieces));
        prop_assert_eq!(&whole, &in_pieces);
        prop_assert!(whole.0.len() <= 20_000);
    }
}
