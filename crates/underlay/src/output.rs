//! What the program prints: data on standard output, progress, warnings and errors on standard error.
//!
//! `println!` panics when the reader is gone (`underlay list | head -1`), and `eprintln!` would end a study of hours
//! because its terminal was closed. Restoring SIGPIPE, which the runtime ignores, is no alternative: a lost connection to
//! a server or an NBD client would then kill the process. So a failed write is remembered, the command continues, and
//! [`ended`] reports it. A closed pipe is no error (the reader has what it wanted); a full disk is.

use crate::stop::Stop;
use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

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
        && let Err(error) = io::stdout().write_fmt(text)
    {
        // Another thread may have stored its error first.
        let _ = LOST.set(error);
    }
}

/// Prints on standard error, for [`err!`] and [`errln!`]. A failure is ignored: there is no other place to report it.
pub(crate) fn message(text: Arguments<'_>) {
    let _ = io::stderr().write_fmt(text);
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
