//! What the program prints: data on standard output, progress, warnings and errors on standard error.
//!
//! `println!` panics when the reader is gone (`underlay list | head -1`), and `eprintln!` would end a study of hours
//! because its terminal was closed. Restoring SIGPIPE, which the runtime ignores, is no alternative: a lost connection to
//! a server or an NBD client would then kill the process. So a failed write is remembered, the command continues, and
//! [`ended`] reports it. A closed pipe is no error (the reader has what it wanted); a full disk is.
//!
//! What is printed quotes studies, records, file names and messages of servers. Of their control characters none reaches
//! the terminal: only the colours that Underlay itself uses pass.

use crate::stop::Stop;
use std::borrow::Cow;
use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;
use underlay_core::printable::{is_unprintable, printable};

/// Like `print!`, without its panic.
macro_rules! out {
    ($($text:tt)*) => { $crate::output::data(::std::format_args!($($text)*)) };
}

/// Like `println!`, without its panic.
macro_rules! outln {
    () => { $crate::output::data(::std::format_args!("\n")) };
    ($($text:tt)*) => {
        $crate::output::data(::std::format_args!("{}\n", ::std::format_args!($($text)*)))
    };
}

/// Like `eprint!`, without its panic.
macro_rules! err {
    ($($text:tt)*) => { $crate::output::message(::std::format_args!($($text)*)) };
}

/// Like `eprintln!`, without its panic.
macro_rules! errln {
    ($($text:tt)*) => {
        $crate::output::message(::std::format_args!("{}\n", ::std::format_args!($($text)*)))
    };
}

/// The first error of writing to standard output.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Prints on standard output, for [`out!`] and [`outln!`].
pub(crate) fn data(text: Arguments<'_>) {
    if LOST.get().is_none()
        && let Err(error) = io::stdout().write_all(safe(&text.to_string()).as_bytes())
    {
        // Another thread may have stored its error first.
        let _ = LOST.set(error);
    }
}

/// Prints on standard error, for [`err!`] and [`errln!`]. A failure is ignored: there is no other place to report it.
pub(crate) fn message(text: Arguments<'_>) {
    let _ = io::stderr().write_all(safe(&text.to_string()).as_bytes());
}

/// Whether writing to standard output has failed, so that further output is pointless.
pub(crate) fn is_lost() -> bool {
    LOST.get().is_some()
}

/// To be called when a command has printed all of its data: an error if it could not be written, except to a closed pipe.
pub(crate) fn ended() -> Result<(), Stop> {
    if let Err(error) = io::stdout().flush() {
        let _ = LOST.set(error);
    }
    match LOST.get() {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Stop::host(format!("could not write to standard output: {error}")))
        }
        Some(_) | None => Ok(()),
    }
}

impl Stop {
    /// Prints the message on standard error, unless everything was already said.
    pub fn print(&self) {
        let message = self.to_string();
        if !message.is_empty() {
            errln!("underlay: {message}");
        }
    }
}

/// The text without what a terminal would act on, except colours.
pub(crate) fn safe(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unprintable) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\x1b') {
        safe.push_str(&printable(&rest[..at]));
        let length = colour_bytes(&rest[at..]);
        match length {
            0 => safe.push_str(&printable(&rest[at..at + 1])),
            _ => safe.push_str(&rest[at..at + length]),
        }
        rest = &rest[at + length.max(1)..];
    }
    safe.push_str(&printable(rest));
    Cow::Owned(safe)
}

/// The length of the sequence at the beginning that selects a colour (ECMA-48 SGR); 0 if there is none.
fn colour_bytes(text: &str) -> usize {
    let Some(parameters) = text.strip_prefix("\x1b[") else { return 0 };
    let length =
        parameters.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b';').count();
    if parameters[length..].starts_with('m') { length + 3 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::safe;

    #[test]
    fn colours_pass_and_nothing_else_does() {
        let coloured = "\x1b[1;31merror\x1b[0m: bad\n";
        assert_eq!(safe(coloured), coloured);
        assert_eq!(safe("a\x1b]0;title\x07b\x1b[2Jc\x1b[31"), "a␛]0;title␇b␛[2Jc␛[31");
        assert_eq!(safe("\x1b"), "␛");
        assert_eq!(safe("\u{9b}31mé"), "\u{fffd}31mé");
    }
}
