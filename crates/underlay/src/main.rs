//! The `underlay` program: hands the command line to the library and turns the outcome into an exit
//! code. The only place that exits.

use std::process::ExitCode;

fn main() -> ExitCode {
    match underlay::cli::main() {
        Ok(()) => ExitCode::SUCCESS,
        Err(stop) => {
            stop.print();
            ExitCode::from(stop.code())
        }
    }
}
