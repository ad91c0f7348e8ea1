//! The terminal's width, and whether to use colours.

use std::io::IsTerminal;

/// Columns of output that is not drawn on a terminal.
const DEFAULT_WIDTH: usize = 100;

/// Columns to write in.
pub fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.or_else(window_width).unwrap_or(DEFAULT_WIDTH).clamp(60, 140)
}

fn window_width() -> Option<usize> {
    [std::io::stderr().is_terminal().then(std::io::stderr), None]
        .into_iter()
        .flatten()
        .find_map(|stream| rustix::termios::tcgetwinsize(stream).ok())
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0)
}

/// Whether standard output takes colours (`NO_COLOR` of no-color.org is honoured).
pub fn colours_on_stdout() -> bool {
    std::env::var_os("NO_COLOR").is_none() && std::io::stdout().is_terminal()
}

/// Whether standard error takes colours.
pub fn colours_on_stderr() -> bool {
    std::env::var_os("NO_COLOR").is_none() && std::io::stderr().is_terminal()
}
