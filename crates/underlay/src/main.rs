//! The `underlay` program: hands the command line to the library and turns the outcome into an exit
//! code. The only place that exits.

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    match underlay::cli::main() {
        Ok(()) => ExitCode::SUCCESS,
        Err(stop) => {
            let message = stop.to_string();
            if !message.is_empty() {
                // The terminal may be gone; the exit code still tells.
                let _ = writeln!(std::io::stderr(), "underlay: {message}");
            }
            ExitCode::from(stop.code())
        }
    }
}
