//! The NBD handshake, fixed newstyle: a client chooses an export.
//!
//! A state machine over bytes: [`Negotiation::step`] looks at what has arrived and says how much of it is used
//! up and what to send. Pure: no sockets, no clock.
//!
//! ```text
//! server: "NBDMAGIC" "IHAVEOPT" flags:u16          client: flags:u32
//! client: "IHAVEOPT" option:u32 length:u32 data    server: 3e889045565a9 option:u32 type:u32 length:u32 data
//! ```
//!
//! Known options: EXPORT_NAME, ABORT, LIST, INFO, GO, STRUCTURED_REPLY, LIST_META_CONTEXT and SET_META_CONTEXT with the context
//! `base:allocation`. All others are refused politely.

use super::protocol::{ALLOCATION_CONTEXT, MAX_PAYLOAD_BYTES, ProtocolError, ReplyForm, array};

const MAGIC: u64 = u64::from_be_bytes(*b"NBDMAGIC");
const OPTION_MAGIC: u64 = u64::from_be_bytes(*b"IHAVEOPT");
const REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;

const FLAG_FIXED_NEWSTYLE: u16 = 1 << 0;
const FLAG_NO_ZEROES: u16 = 1 << 1;

/// Longest data of an option that is read: a name of 4,096 bytes and a list of questions.
const MAX_OPTION_BYTES: u32 = 16 << 10;

const OPTION_EXPORT_NAME: u32 = 1;
const OPTION_ABORT: u32 = 2;
const OPTION_LIST: u32 = 3;
const OPTION_INFO: u32 = 6;
const OPTION_GO: u32 = 7;
const OPTION_STRUCTURED_REPLY: u32 = 8;
const OPTION_LIST_META_CONTEXT: u32 = 9;
const OPTION_SET_META_CONTEXT: u32 = 10;

const REPLY_ACK: u32 = 1;
const REPLY_SERVER: u32 = 2;
const REPLY_INFO: u32 = 3;
const REPLY_META_CONTEXT: u32 = 4;
const REPLY_UNSUPPORTED: u32 = (1 << 31) + 1;
const REPLY_INVALID: u32 = (1 << 31) + 3;
const REPLY_UNKNOWN: u32 = (1 << 31) + 6;

const INFO_EXPORT: u16 = 0;
const INFO_NAME: u16 = 1;
const INFO_BLOCK_SIZE: u16 = 3;

/// Has flags, and understands: flush, FUA, trim, write zeroes, several connections at once. The latter is true
/// because all connections share one volume: a flush on one covers what was answered on any.
const EXPORT_FLAGS: u16 = 1 << 0 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 6 | 1 << 8;
/// A read in one piece on demand; only with structured replies.
const EXPORT_FLAG_SEND_DF: u16 = 1 << 7;
/// Requests of any size are served; pages are what a device prefers.
const BLOCK_SIZES: [u32; 3] = [1, 4096, MAX_PAYLOAD_BYTES];

/// Where data is and where holes are: what the protocol itself defines.
const ALLOCATION: &[u8] = b"base:allocation";
/// All contexts that the protocol itself defines.
const ALL_OF_BASE: &[u8] = b"base:";

/// One export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Export {
    pub(crate) name: String,
    pub(crate) size_bytes: u64,
}

/// The handshake of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Negotiation {
    has_client_flags: bool,
    no_zeroes: bool,
    form: ReplyForm,
    /// The export for which the client has chosen `base:allocation`.
    allocation_of: Option<usize>,
}

/// What one step brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// So many bytes are needed before anything can be said.
    Incomplete(usize),
    /// So many bytes are used up; send these.
    Reply(usize, Vec<u8>),
    /// The client has chosen an export, named by its index, and sends requests from now on.
    Chosen { used: usize, reply: Vec<u8>, export: usize, form: ReplyForm, status: Status },
    /// Send these and close.
    Ended(Vec<u8>),
}

/// Whether a client may ask where data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Negotiated,
    Unknown,
}

/// What the server says first.
pub(crate) fn greeting() -> Vec<u8> {
    let mut greeting = MAGIC.to_be_bytes().to_vec();
    greeting.extend_from_slice(&OPTION_MAGIC.to_be_bytes());
    greeting.extend_from_slice(&(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES).to_be_bytes());
    greeting
}

impl Negotiation {
    pub(crate) fn new() -> Negotiation {
        Negotiation {
            has_client_flags: false,
            no_zeroes: false,
            form: ReplyForm::Simple,
            allocation_of: None,
        }
    }

    /// Understands what is at the beginning of `bytes`.
    pub(crate) fn step(&mut self, bytes: &[u8], exports: &[Export]) -> Result<Step, ProtocolError> {
        if !self.has_client_flags {
            return self.client_flags(bytes);
        }
        let Some(magic) = array(bytes, 0).map(u64::from_be_bytes) else {
            return Ok(Step::Incomplete(16));
        };
        if magic != OPTION_MAGIC {
            return Err(ProtocolError::BadMagic(magic));
        }
        let (Some(option), Some(length)) = (array(bytes, 8), array(bytes, 12)) else {
            return Ok(Step::Incomplete(16));
        };
        let (option, length) = (u32::from_be_bytes(option), u32::from_be_bytes(length));
        if length > MAX_OPTION_BYTES {
            return Err(ProtocolError::OptionTooLong(length));
        }
        let used = 16 + length as usize;
        let Some(data) = bytes.get(16..used) else { return Ok(Step::Incomplete(used)) };
        self.option(used, option, data, exports)
    }

    fn client_flags(&mut self, bytes: &[u8]) -> Result<Step, ProtocolError> {
        let Some(flags) = array(bytes, 0).map(u32::from_be_bytes) else {
            return Ok(Step::Incomplete(4));
        };
        if flags & !u32::from(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES) != 0 {
            return Err(ProtocolError::BadClientFlags(flags));
        }
        self.has_client_flags = true;
        self.no_zeroes = flags & u32::from(FLAG_NO_ZEROES) != 0;
        Ok(Step::Reply(4, Vec::new()))
    }

    fn option(
        &mut self,
        used: usize,
        option: u32,
        data: &[u8],
        exports: &[Export],
    ) -> Result<Step, ProtocolError> {
        let refuse = |kind, text: &str| Ok(Step::Reply(used, reply(option, kind, text.as_bytes())));
        match option {
            OPTION_EXPORT_NAME => {
                let export = find(exports, data).ok_or(ProtocolError::UnknownExport)?;
                Ok(self.chosen_by_name(used, export, exports[export].size_bytes))
            }
            OPTION_ABORT => Ok(Step::Ended(reply(option, REPLY_ACK, &[]))),
            OPTION_LIST if !data.is_empty() => refuse(REPLY_INVALID, "a list takes no data"),
            OPTION_LIST => Ok(Step::Reply(used, listing(exports))),
            OPTION_STRUCTURED_REPLY if !data.is_empty() => {
                refuse(REPLY_INVALID, "this option takes no data")
            }
            OPTION_STRUCTURED_REPLY => {
                self.form = ReplyForm::Structured;
                refuse(REPLY_ACK, "")
            }
            OPTION_LIST_META_CONTEXT | OPTION_SET_META_CONTEXT => {
                Ok(Step::Reply(used, self.contexts(option, data, exports)))
            }
            OPTION_INFO | OPTION_GO => match question(data) {
                None => refuse(REPLY_INVALID, "the name or the list of questions is cut off"),
                Some((name, asked)) => match find(exports, name) {
                    None => refuse(REPLY_UNKNOWN, "there is no volume of that name"),
                    Some(export) => Ok(self.answer(used, option, export, &exports[export], &asked)),
                },
            },
            _ => refuse(REPLY_UNSUPPORTED, "this server does not know that option"),
        }
    }

    /// Which contexts there are, or which of them the client wants from now on.
    fn contexts(&mut self, option: u32, data: &[u8], exports: &[Export]) -> Vec<u8> {
        let sets = option == OPTION_SET_META_CONTEXT;
        if sets {
            self.allocation_of = None;
        }
        if self.form != ReplyForm::Structured {
            return reply(option, REPLY_INVALID, b"block status needs structured replies");
        }
        let Some((name, queries)) = context_question(data) else {
            return reply(option, REPLY_INVALID, b"the name or the list of contexts is cut off");
        };
        let Some(export) = find(exports, name) else {
            return reply(option, REPLY_UNKNOWN, b"there is no volume of that name");
        };
        let lists_it = queries.is_empty() || queries.contains(&ALL_OF_BASE);
        let asked = queries.contains(&ALLOCATION) || (!sets && lists_it);
        let mut answer = Vec::new();
        if asked {
            // A number means something only once the context is chosen.
            let number = if sets { ALLOCATION_CONTEXT } else { 0 };
            let context = [&number.to_be_bytes()[..], ALLOCATION].concat();
            answer = reply(option, REPLY_META_CONTEXT, &context);
        }
        if sets && asked {
            self.allocation_of = Some(export);
        }
        answer.extend(reply(option, REPLY_ACK, &[]));
        answer
    }

    fn status_of(&self, export: usize) -> Status {
        if self.allocation_of == Some(export) { Status::Negotiated } else { Status::Unknown }
    }

    fn export_flags(&self) -> u16 {
        match self.form {
            ReplyForm::Simple => EXPORT_FLAGS,
            ReplyForm::Structured => EXPORT_FLAGS | EXPORT_FLAG_SEND_DF,
        }
    }

    /// The oldest way: no reply header, and padding unless the client can do without.
    fn chosen_by_name(&self, used: usize, export: usize, size_bytes: u64) -> Step {
        let mut reply = size_bytes.to_be_bytes().to_vec();
        reply.extend_from_slice(&self.export_flags().to_be_bytes());
        if !self.no_zeroes {
            reply.extend_from_slice(&[0; 124]);
        }
        Step::Chosen { used, reply, export, form: self.form, status: self.status_of(export) }
    }

    fn answer(
        &self,
        used: usize,
        option: u32,
        index: usize,
        export: &Export,
        asked: &[u16],
    ) -> Step {
        let mut info = INFO_EXPORT.to_be_bytes().to_vec();
        info.extend_from_slice(&export.size_bytes.to_be_bytes());
        info.extend_from_slice(&self.export_flags().to_be_bytes());
        let mut answer = reply(option, REPLY_INFO, &info);
        if asked.contains(&INFO_NAME) {
            let info = [&INFO_NAME.to_be_bytes()[..], export.name.as_bytes()].concat();
            answer.extend(reply(option, REPLY_INFO, &info));
        }
        if asked.contains(&INFO_BLOCK_SIZE) {
            let mut info = INFO_BLOCK_SIZE.to_be_bytes().to_vec();
            BLOCK_SIZES.iter().for_each(|size| info.extend_from_slice(&size.to_be_bytes()));
            answer.extend(reply(option, REPLY_INFO, &info));
        }
        answer.extend(reply(option, REPLY_ACK, &[]));
        if option == OPTION_GO {
            let status = self.status_of(index);
            Step::Chosen { used, reply: answer, export: index, form: self.form, status }
        } else {
            Step::Reply(used, answer)
        }
    }
}

/// The export of that name. The empty name means the only one there is.
fn find(exports: &[Export], name: &[u8]) -> Option<usize> {
    if name.is_empty() {
        return (exports.len() == 1).then_some(0);
    }
    exports.iter().position(|export| export.name.as_bytes() == name)
}

/// Name and questions of INFO and GO.
fn question(data: &[u8]) -> Option<(&[u8], Vec<u16>)> {
    let length = u32::from_be_bytes(array(data, 0)?) as usize;
    let rest = data.get(4..)?;
    let (name, rest) = (rest.get(..length)?, rest.get(length..)?);
    let count = usize::from(u16::from_be_bytes(array(rest, 0)?));
    let asked = rest.get(2..)?;
    if asked.len() != 2 * count {
        return None;
    }
    let asked = asked.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    Some((name, asked.collect()))
}

/// Name and queries of LIST_META_CONTEXT and SET_META_CONTEXT.
fn context_question(data: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let text =
        |data: &'_ [u8]| -> Option<usize> { Some(u32::from_be_bytes(array(data, 0)?) as usize) };
    let length = text(data)?;
    let rest = data.get(4..)?;
    let (name, rest) = (rest.get(..length)?, rest.get(length..)?);
    let count = u32::from_be_bytes(array(rest, 0)?);
    let mut rest = rest.get(4..)?;
    let mut queries = Vec::new();
    for _ in 0..count {
        let length = text(rest)?;
        let from = rest.get(4..)?;
        queries.push(from.get(..length)?);
        rest = from.get(length..)?;
    }
    rest.is_empty().then_some((name, queries))
}

fn listing(exports: &[Export]) -> Vec<u8> {
    let mut listing = Vec::new();
    for export in exports {
        let length = (export.name.len() as u32).to_be_bytes();
        let data = [&length[..], export.name.as_bytes()].concat();
        listing.extend(reply(OPTION_LIST, REPLY_SERVER, &data));
    }
    listing.extend(reply(OPTION_LIST, REPLY_ACK, &[]));
    listing
}

fn reply(option: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    let mut reply = REPLY_MAGIC.to_be_bytes().to_vec();
    reply.extend_from_slice(&option.to_be_bytes());
    reply.extend_from_slice(&kind.to_be_bytes());
    reply.extend_from_slice(&(data.len() as u32).to_be_bytes());
    reply.extend_from_slice(data);
    reply
}

#[cfg(test)]
mod tests {
    use super::{Export, Negotiation, Status, Step};
    use crate::server::nbd::protocol::{ProtocolError, ReplyForm};
    use proptest::prelude::{
        Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest,
    };

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
        let (sent, end) =
            converse(&with_flags(&[option(8, &[]), option(7, &go("wal", &[3]))]), &[]);
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
        assert!(converse(&bad, &[]).1.contains("none of the protocol's"));
        let mut long = with_flags(&[option(7, &[])]);
        long[16..20].copy_from_slice(&u32::MAX.to_be_bytes());
        assert!(converse(&long, &[]).1.contains("longer than any"));
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
}
