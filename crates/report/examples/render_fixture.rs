//! Writes the report of the invented analysis of the tests, or with a file `atlas.html` its atlas, for looking at and for the browser tests.
//!
//! ```text
//! cargo run -p underlay-report --example render_fixture -- FILE [SERIES BUCKETS RUNS]
//! ```

#[path = "../tests/it/example/mod.rs"]
mod example;

use std::env;
use std::error::Error;
use std::fs;

use example::Size;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (file, size) = match arguments.as_slice() {
        [file] => (file, Size { series: 13, buckets: 400, runs: 10 }),
        [file, series, buckets, runs] => {
            (file, Size { series: series.parse()?, buckets: buckets.parse()?, runs: runs.parse()? })
        }
        _ => return Err("usage: render_fixture FILE [SERIES BUCKETS RUNS]".into()),
    };
    let page = match file.ends_with("atlas.html") {
        true => underlay_report::atlas_html(&example::atlas(size))?,
        false => underlay_report::html(&example::analysis(size))?,
    };
    fs::write(file, page)?;
    Ok(())
}
