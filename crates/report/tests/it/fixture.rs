//! The example analysis that the page is developed and tested with is what this program writes.

use std::path::Path;

use tempfile::tempdir;

use crate::synthetic::{nvme, record, sata, scenario};

#[test]
fn the_example_of_the_page_is_current() {
    let dir = tempdir().unwrap();
    let mut example = scenario(vec![sata(), nvme()]);
    example.repeats = 2;
    example.measure_s = 30;
    example.users = vec![1, 4, 16];
    let record = record(&example, &dir.path().join("record"));
    let mut analysis = underlay_report::analyse(&record).unwrap();
    // The only value that comes from the clock of the test.
    analysis.study.finished_wall_ns = Some(analysis.study.started_wall_ns + 1_500_000_000_000);
    let text = serde_json::to_string(&analysis).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("web/fixtures/analysis.json");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == text,
        "{} is out of date: run the tests of this crate with UPDATE=1",
        path.display()
    );
}
