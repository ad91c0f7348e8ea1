//! The NBD handshake, fixed newstyle: a client chooses an export.
//!
//! A state machine over bytes: [`Negotiation::step`] takes received data and returns how much of it was
//! consumed and what to send. Pure: no sockets, no clock.
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
                None => refuse(REPLY_INVALID, "the name or the list of requests is truncated"),
                Some((name, asked)) => match find(exports, name) {
                    None => refuse(REPLY_UNKNOWN, "there is no volume of that name"),
                    Some(export) => Ok(self.answer(used, option, export, &exports[export], &asked)),
                },
            },
            _ => refuse(REPLY_UNSUPPORTED, "this server does not support that option"),
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
            return reply(option, REPLY_INVALID, b"the name or the list of contexts is truncated");
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
mod tests;
