//! What the program prints: data on standard output, progress, warnings and errors on standard error.
//!
//! `println!` ends the process by a panic when nobody reads any more (`underlay list | head -1`), and `eprintln!` would
//! end a study of hours because its terminal was closed. SIGPIPE, which the runtime ignores, cannot be set back
//! instead: a lost connection to a server or an NBD client would end the process by it. So what cannot be written is
//! noted, the command goes on, and [`ended`] says at its end what became of its output. A reader that left has what it
//! wanted; a full disk is an error.

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

/// Why standard output takes nothing any more.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Prints on standard output, for [`out!`] and [`outln!`].
pub(crate) fn data(text: Arguments<'_>) {
    if LOST.get().is_none()
        && let Err(error) = io::stdout().write_fmt(text)
    {
        // Another thread may have noted the same.
        let _ = LOST.set(error);
    }
}

/// Prints on standard error, for [`err!`] and [`errln!`]. When that fails there is nobody to tell.
pub(crate) fn message(text: Arguments<'_>) {
    let _ = io::stderr().write_fmt(text);
}

/// Whether standard output takes nothing any more, so that more of the same would be for nobody.
pub(crate) fn is_lost() -> bool {
    LOST.get().is_some()
}

/// To be asked when a command has printed all of its data: whether it was written, if somebody was there to read it.
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
