//! The reference page is what the declarations say.

use std::env;
use std::fs;
use std::path::Path;

#[test]
fn the_reference_page_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/telemetry.md");
    let expected = underlay_telemetry::reference_page();
    if env::var_os("UPDATE").is_some() {
        fs::write(&path, &expected).expect("the page can be written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "docs/telemetry.md is not what the declarations say: run \
         `UPDATE=1 cargo test -p underlay-telemetry --test it reference`"
    );
}
