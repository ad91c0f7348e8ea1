//! The report as a file: self-contained, escaped, with an answer for readers without script.

use std::io::Read;

use crate::example::Size;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde_json::Value;
use sha2::{Digest, Sha256};
use underlay_report::analysis::{Analysis, EvidenceKind, FindingSeverity};
use underlay_report::html;

const SMALL: Size = Size { series: 9, buckets: 30, runs: 10 };

/// What stands between `begin` and the next `end`.
fn between<'a>(page: &'a str, begin: &str, end: &str) -> &'a str {
    let start = page.find(begin).unwrap_or_else(|| panic!("no {begin}")) + begin.len();
    let length = page[start..].find(end).unwrap_or_else(|| panic!("no {end}"));
    &page[start..start + length]
}

/// The data as a browser unpacks it.
fn unpacked(page: &str) -> Value {
    let text = between(page, "type=\"application/octet-stream\">", "</script>");
    let bytes = STANDARD.decode(text).expect("the data is base64");
    let mut json = String::new();
    GzDecoder::new(bytes.as_slice()).read_to_string(&mut json).expect("the data is gzip");
    serde_json::from_str(&json).expect("the data is JSON")
}

/// Everything of the page but the packed data and the bundle, which other tests look at.
fn markup(page: &str) -> String {
    let style = between(page, "<style>", "</style>");
    let script = between(page, "<script>", "</script>");
    page.replace(style, "").replace(script, "")
}

#[test]
fn the_page_refers_to_nothing_outside_itself() {
    let page = html(&crate::example::analysis(SMALL)).unwrap();
    let allowed = ["http://www.w3.org/2000/svg"];
    for (at, _) in page.match_indices("://") {
        let begin = page[..at].rfind(|c: char| !c.is_ascii_alphanumeric()).map_or(0, |i| i + 1);
        if !matches!(&page[begin..at], "http" | "https" | "ws" | "wss" | "ftp" | "file") {
            continue;
        }
        let address = &page[begin..(at + 60).min(page.len())];
        let comment =
            page[..begin].rfind("/*").is_some_and(|open| !page[open..begin].contains("*/"));
        assert!(
            comment || allowed.iter().any(|known| address.starts_with(known)),
            "refers to {address}"
        );
    }
    let plain = markup(&page);
    for reference in [
        " src=",
        " href=",
        "<link",
        "<iframe",
        "<img",
        "<object",
        "<base",
        "url(",
        "@import",
        "@font-face",
    ] {
        assert!(!plain.contains(reference), "the markup contains {reference}");
    }
    let style = between(&page, "<style>", "</style>");
    for reference in ["url(", "@import", "@font-face"] {
        assert!(!style.contains(reference), "the style contains {reference}");
    }
}

#[test]
fn the_policy_allows_only_the_two_inline_elements() {
    let page = html(&crate::example::analysis(SMALL)).unwrap();
    let policy = between(&page, "Content-Security-Policy\" content=\"", "\"");
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    let script = hash(between(&page, "<script>", "</script>"));
    let style = hash(between(&page, "<style>", "</style>"));
    let expected = [
        "default-src 'none'".to_string(),
        format!("script-src {script}"),
        format!("style-src {style}"),
        "base-uri 'none'".to_string(),
        "form-action 'none'".to_string(),
    ];
    assert_eq!(policy.split("; ").collect::<Vec<_>>(), expected);
}

#[test]
fn the_data_is_the_analysis() {
    let analysis = crate::example::analysis(SMALL);
    let found = unpacked(&html(&analysis).unwrap());
    assert_close(&found, &serde_json::to_value(&analysis).unwrap(), "analysis");
}

/// Equal, but for the digits of numbers beyond the seventh.
fn assert_close(found: &Value, expected: &Value, path: &str) {
    match (found, expected) {
        (Value::Object(a), Value::Object(b)) => {
            assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>(), "{path}");
            a.iter()
                .for_each(|(key, value)| assert_close(value, &b[key], &format!("{path}.{key}")));
        }
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len(), "{path}");
            a.iter()
                .zip(b)
                .enumerate()
                .for_each(|(i, (x, y))| assert_close(x, y, &format!("{path}[{i}]")));
        }
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            assert!((a - b).abs() <= b.abs() * 1e-6, "{path}: {a} instead of {b}");
        }
        _ => assert_eq!(found, expected, "{path}"),
    }
}

#[test]
fn integers_stay_exact() {
    let analysis = crate::example::analysis(SMALL);
    let found = unpacked(&html(&analysis).unwrap());
    assert_eq!(found["study"]["started_wall_ns"].as_u64(), Some(analysis.study.started_wall_ns));
}

#[test]
fn the_answer_can_be_read_without_script() {
    let analysis = crate::example::analysis(SMALL);
    let page = html(&analysis).unwrap();
    let plain = between(&page, "<body>", "<script id=\"analysis\"");
    let expected = [
        "<h1 class=\"headline\">NVMe makes 2.6 times as many new orders",
        "emulated</span>",
        "Condition C5 does not hold after the run.",
        "<td>NVMe drive</td>",
        "<noscript>",
        "derived from TPC-C",
    ];
    for text in expected {
        assert!(plain.contains(text), "no {text:?} in:\n{plain}");
    }
    // One line of the table per design and number of users.
    assert_eq!(plain.matches("<tr><th scope=\"row\"").count(), analysis.rungs.len());
}

#[test]
fn without_script_each_kind_of_evidence_has_its_badge_and_jobs_have_no_users() {
    let mut analysis = crate::example::analysis(SMALL);
    let plain = |analysis: &Analysis| {
        let page = html(analysis).unwrap();
        between(&page, "<body>", "<script id=\"analysis\"").to_string()
    };
    let badges = |plain: &str| {
        let line = between(plain, "<p class=\"badges\">", "</p>").to_string();
        line.matches("class=\"badge ").count()
    };
    let same = plain(&analysis);
    assert_eq!(badges(&same), 1);
    assert!(same.contains(">Users</th>") && same.contains(">Transactions per minute</th>"));

    analysis.designs[0].evidence = EvidenceKind::Measured;
    analysis.study.evidence = EvidenceKind::Mixed;
    let mixed = plain(&analysis);
    assert_eq!(badges(&mixed), 2);
    assert!(mixed.contains("<span class=\"badge measured\">measured</span></td>"));
    assert!(!mixed.contains("badge mixed"));

    analysis.workload.is_job = true;
    analysis.rungs.iter_mut().for_each(|rung| {
        rung.metrics.remove("tpm");
    });
    let job = plain(&analysis);
    assert!(!job.contains("Users") && !job.contains("Transactions per minute"));
    assert_eq!(job.matches("<tr><td>").count(), analysis.rungs.len());

    analysis.workload.is_job = false;
    analysis.workload.name = "io".to_string();
    assert!(plain(&analysis).contains(">Requests in flight</th>"));
}

#[test]
fn warnings_are_sentences_without_script_too() {
    let mut analysis = crate::example::analysis(SMALL);
    analysis.findings[0].severity = FindingSeverity::Warning;
    analysis.findings[0].text = "the host was busy".to_string();
    assert!(html(&analysis).unwrap().contains("<p>The host was busy</p>"));
}

/// Puts text that closes every kind of element into every text of the analysis that reaches the markup.
fn hostile() -> (Analysis, &'static str) {
    const ATTACK: &str = "</script></style></title>\"'><script>alert(1)</script><!--";
    let mut analysis = crate::example::analysis(SMALL);
    for text in [
        &mut analysis.study.title,
        &mut analysis.study.question,
        &mut analysis.verdict.headline,
        &mut analysis.verdict.support[0],
        &mut analysis.designs[0].title,
        &mut analysis.findings[0].text,
        &mut analysis.method.disclaimer,
    ] {
        *text = ATTACK.to_string();
    }
    (analysis, ATTACK)
}

#[test]
fn text_of_the_record_never_becomes_markup() {
    let (analysis, attack) = hostile();
    let page = html(&analysis).unwrap();
    assert!(!page.contains(attack));
    assert!(!page.contains("alert(1)</script>"));
    assert_eq!(page.matches("<script").count(), 2, "one for the page, one for its data");
    assert_eq!(page.matches("</script>").count(), 2);
    assert_eq!(unpacked(&page)["study"]["title"], attack);
}

#[test]
fn an_empty_record_has_a_page() {
    let mut analysis = crate::example::analysis(Size { series: 0, buckets: 0, runs: 0 });
    analysis.rungs.clear();
    analysis.designs.clear();
    analysis.findings.clear();
    analysis.comparisons.clear();
    let page = html(&analysis).unwrap();
    assert!(page.contains("<h1 class=\"headline\">"));
    assert!(!page.contains("<h2>Warnings"));
    analysis.method.disclaimer.clear();
    assert!(!html(&analysis).unwrap().contains("<footer>"));
}

/// Two runs of 60 series with 1,800 buckets are what an hour on two designs leaves.
#[test]
fn a_long_run_stays_within_megabytes() {
    let page =
        html(&crate::example::analysis(Size { series: 60, buckets: 1800, runs: 2 })).unwrap();
    let megabytes = page.len() as f64 / 1e6;
    assert!(megabytes < 4.0, "the page has {megabytes:.1} MB");
}
