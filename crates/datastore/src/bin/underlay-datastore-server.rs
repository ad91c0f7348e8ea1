//! The datastore server as a program of its own, for the tests of this crate.
//!
//! Users get the same server as a hidden subcommand of `underlay`.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [command, option, config] = arguments.as_slice() else {
        eprintln!("usage: underlay-datastore-server datastore-server --config FILE");
        return ExitCode::from(2);
    };
    if command != "datastore-server" || option != "--config" {
        eprintln!("unknown arguments `{command} {option}`");
        return ExitCode::from(2);
    }
    match underlay_datastore::serve(Path::new(config)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
