//! The report as one HTML file that opens offline.
//!
//! ```text
//! head    strict content security policy; style and script of the page (web/), allowed by their hashes
//! body    the answer in plain HTML, for readers and browsers without script
//!         the analysis (or the atlas) as JSON, gzip, base64, in a script element that is data and never executed
//! ```
//!
//! The file makes no request of any kind and works from `file://`. Text of the record reaches the
//! markup escaped, and the data only as base64, so that nothing in a record can become code.
//!
//! What it deliberately does not do: draw (the script in `web/` does, from the data), or compute: every sentence
//! of the plain answer is taken from the [`Analysis`].

use std::fmt::Write as _;
use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use sha2::{Digest, Sha256};

use crate::analysis::{Analysis, Estimate, EvidenceKind, Finding, FindingSeverity, Rung};
use crate::atlas::{Atlas, atlas_summary};
use crate::wording::{amount, count, sentence_case};

/// Script of the page, built from `web/src` by the build script of this crate.
const SCRIPT: &str = include_str!(concat!(env!("OUT_DIR"), "/report.js"));
/// Style of the page.
const STYLE: &str = include_str!(concat!(env!("OUT_DIR"), "/report.css"));

/// Significant digits of the numbers in the page. Six times more precise than anything that was
/// measured, and half the size of the exact form, which stays in the record.
const DIGITS: usize = 7;

/// Why the page could not be written.
#[derive(Debug, thiserror::Error)]
#[error("could not write the data of the report as JSON")]
pub struct HtmlError(#[from] serde_json::Error);

/// The report on `analysis`: one self-contained HTML file.
///
/// # Errors
/// When the analysis cannot be written as JSON, which no analysis made by this crate causes.
pub fn html(analysis: &Analysis) -> Result<String, HtmlError> {
    let mut answer = String::with_capacity(16_384);
    put_answer(&mut answer, analysis);
    let head = (analysis.study.title.as_str(), analysis.verdict.headline.as_str());
    document(head, &answer, ("analysis", analysis))
}

/// The atlas as one self-contained HTML file.
///
/// # Errors
/// When it cannot be written as JSON, which no atlas made by this crate causes.
pub fn atlas_html(atlas: &Atlas) -> Result<String, HtmlError> {
    const TITLE: &str = "Published experiments and ours";
    let mut answer = String::with_capacity(16_384);
    put(
        &mut answer,
        format_args!(
            "<div id=\"fallback\"><main>\n<section>\n<h1>{TITLE}</h1>\n\
             <noscript><p class=\"muted\">The charts of this page need JavaScript.</p></noscript>\n\
             <pre>{}</pre>\n</section>\n</main></div>\n",
            escape(&atlas_summary(atlas, 100)),
        ),
    );
    let experiments = count(atlas.experiments.len() as u64, "published experiment");
    let description =
        format!("{experiments}, with the ratios of this host next to the published ones");
    document((TITLE, &description), &answer, ("atlas", atlas))
}

/// A page: `answer` is what it says without script, `data` what the script draws, by the id of its element.
fn document(
    (title, description): (&str, &str),
    answer: &str,
    (id, data): (&str, &impl Serialize),
) -> Result<String, HtmlError> {
    let data = packed(data)?;
    let mut page =
        String::with_capacity(data.len() + SCRIPT.len() + STYLE.len() + answer.len() + 4096);
    page.push_str("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.push_str(
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n",
    );
    put(
        &mut page,
        format_args!(
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src '{}'; \
         style-src '{}'; base-uri 'none'; form-action 'none'\">\n",
            hash_source(SCRIPT),
            hash_source(STYLE),
        ),
    );
    put(&mut page, format_args!("<title>{}</title>\n", escape(title)));
    put(
        &mut page,
        format_args!("<meta name=\"description\" content=\"{}\">\n", escape(description)),
    );
    put(
        &mut page,
        format_args!("<style>{STYLE}</style>\n<script>{SCRIPT}</script>\n</head>\n<body>\n"),
    );
    page.push_str(answer);
    put(
        &mut page,
        format_args!(
            "<script id=\"{id}\" type=\"application/octet-stream\">{data}</script>\n</body>\n</html>\n"
        ),
    );
    Ok(page)
}

/// Appends formatted text; writing to a string cannot fail.
fn put(page: &mut String, text: std::fmt::Arguments<'_>) {
    page.write_fmt(text).expect("a string takes any text");
}

/// The source expression of a content security policy that allows exactly this text.
fn hash_source(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// Data as JSON, gzip, base64.
fn packed(data: &impl Serialize) -> Result<String, serde_json::Error> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    let mut serializer = Serializer::with_formatter(&mut packer, Rounded);
    data.serialize(&mut serializer)?;
    let bytes = packer.finish().map_err(serde_json::Error::io)?;
    Ok(STANDARD.encode(bytes))
}

/// JSON without white space and with [`DIGITS`] significant digits. Integers stay exact.
struct Rounded;

impl Formatter for Rounded {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        let rounded: f64 = format!("{value:.*e}", DIGITS - 1).parse().unwrap_or(value);
        write!(writer, "{rounded}")
    }
}

/// Text escaped for use between tags and in quoted attributes.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// The answer in plain HTML. The script replaces it by the full report.
fn put_answer(page: &mut String, analysis: &Analysis) {
    let study = &analysis.study;
    let badges: Vec<String> = evidence_kinds(analysis).into_iter().map(badge).collect();
    put(
        page,
        format_args!(
            "<div id=\"fallback\"><main>\n<section class=\"verdict\">\n\
         <p class=\"question\">{}</p>\n<h1 class=\"headline\">{}</h1>\n\
         <p class=\"badges\">{}</p>\n",
            escape(&study.question),
            escape(&analysis.verdict.headline),
            badges.join(" "),
        ),
    );
    for sentence in &analysis.verdict.support {
        put(page, format_args!("<p class=\"support\">{}</p>\n", escape(sentence)));
    }
    for design in analysis.designs.iter().filter(|design| !design.description.is_empty()) {
        let (title, description) = (escape(&design.title), escape(&design.description));
        put(page, format_args!("<p class=\"muted\"><b>{title}</b>: {description}</p>\n"));
    }
    page.push_str("<noscript><p class=\"muted\">The charts of this report need JavaScript.</p></noscript>\n</section>\n");
    put_warnings(page, &analysis.findings);
    put_rungs(page, analysis);
    if !analysis.method.disclaimer.is_empty() {
        put(page, format_args!("<footer>{}</footer>\n", escape(&analysis.method.disclaimer)));
    }
    page.push_str("</main></div>\n");
}

fn put_warnings(page: &mut String, findings: &[Finding]) {
    let grave: Vec<&Finding> = findings
        .iter()
        .filter(|finding| finding.severity != FindingSeverity::Information)
        .collect();
    if grave.is_empty() {
        return;
    }
    page.push_str("<section><h2>Warnings</h2><ul class=\"findings\">\n");
    for finding in grave {
        let (class, word) = match finding.severity {
            FindingSeverity::Invalid => ("bad", "Invalid"),
            _ => ("warn", "Warning"),
        };
        put(
            page,
            format_args!(
                "<li><span class=\"badge {class}\">{word}</span><p>{}</p></li>\n",
                escape(&sentence_case(&finding.text))
            ),
        );
    }
    page.push_str("</ul></section>\n");
}

/// The kinds of evidence of the designs, in the order in which these first have them.
fn evidence_kinds(analysis: &Analysis) -> Vec<EvidenceKind> {
    let mut kinds = Vec::new();
    for design in &analysis.designs {
        if !kinds.contains(&design.evidence) {
            kinds.push(design.evidence);
        }
    }
    if kinds.is_empty() { vec![analysis.study.evidence] } else { kinds }
}

fn badge(evidence: EvidenceKind) -> String {
    let word = evidence.as_str();
    format!("<span class=\"badge {word}\">{word}</span>")
}

/// The key table: throughput of each design at each rung. A column that has nothing to say is left out.
fn put_rungs(page: &mut String, analysis: &Analysis) {
    let mut rungs: Vec<&Rung> = analysis.rungs.iter().collect();
    if rungs.is_empty() {
        return;
    }
    rungs.sort_by_key(|rung| (rung.users, rung.design));
    let workload = &analysis.workload;
    let at_work = match (workload.is_job, workload.is_block_load()) {
        (true, _) => None,
        (false, true) => Some("Requests in flight"),
        (false, false) => Some("Users"),
    };
    let caption = match workload.is_one_run() {
        true => "One run: the 95 % interval covers variation within it",
        false => "Mean and 95 % confidence interval over the repeats",
    };
    let has_tpm = rungs.iter().any(|rung| rung.metrics.contains_key("tpm"));
    let is_mixed = evidence_kinds(analysis).len() > 1;
    put(
        page,
        format_args!(
            "<section><h2>Throughput</h2><div class=\"table-box\"><table><caption>{caption}</caption><thead><tr>"
        ),
    );
    let number = |page: &mut String, title: &str| {
        put(page, format_args!("<th scope=\"col\" class=\"number\">{}</th>", escape(title)));
    };
    at_work.iter().for_each(|title| number(page, title));
    page.push_str("<th scope=\"col\">Design</th>");
    number(page, &sentence_case(&workload.rate));
    if has_tpm {
        number(page, "Transactions per minute");
    }
    page.push_str("</tr></thead><tbody>\n");
    for rung in rungs {
        let design = analysis.designs.get(rung.design);
        let kind = design.filter(|_| is_mixed).map(|design| badge(design.evidence));
        page.push_str("<tr>");
        if at_work.is_some() {
            put(page, format_args!("<th scope=\"row\" class=\"number\">{}</th>", rung.users));
        }
        let title = escape(design.map_or("?", |design| design.title.as_str()));
        let kind = kind.map_or(String::new(), |kind| format!(" {kind}"));
        put(page, format_args!("<td>{title}{kind}</td>"));
        let metrics = if has_tpm { &["headline", "tpm"][..] } else { &["headline"] };
        for metric in metrics {
            let text = estimate_text(rung.metrics.get(*metric));
            put(page, format_args!("<td class=\"number\">{text}</td>"));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div></section>\n");
}

/// `1,234 (1,200 to 1,270)`, or an en dash where nothing is known.
fn estimate_text(estimate: Option<&Estimate>) -> String {
    let Some(Estimate { value: Some(value), low, high, .. }) = estimate else {
        return "\u{2013}".to_string();
    };
    match (low, high) {
        (Some(low), Some(high)) => {
            format!("{} ({} to {})", amount(*value), amount(*low), amount(*high))
        }
        _ => amount(*value),
    }
}

#[cfg(test)]
mod tests {
    use super::{Rounded, SCRIPT, STYLE, escape};
    use serde::Serialize;
    use serde_json::ser::Serializer;

    fn rounded(value: f64) -> String {
        let mut bytes = Vec::new();
        value.serialize(&mut Serializer::with_formatter(&mut bytes, Rounded)).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn numbers_keep_seven_digits() {
        assert_eq!(rounded(0.1 + 0.2), "0.3");
        assert_eq!(rounded(123_456_789.123), "123456800");
        assert_eq!(rounded(-1.0 / 3.0), "-0.3333333");
        assert_eq!(rounded(0.0), "0");
        for value in [1e-300, 1e300, f64::MIN_POSITIVE, -2.5e-7] {
            let back: f64 = serde_json::from_str(&rounded(value)).unwrap();
            assert!((back - value).abs() <= value.abs() * 1e-6, "{value} became {back}");
        }
    }

    #[test]
    fn escaped_text_closes_nothing() {
        assert_eq!(
            escape("<a href='x'>&\"</a>"),
            "&lt;a href=&#39;x&#39;&gt;&amp;&quot;&lt;/a&gt;"
        );
    }

    /// The hashes of the policy are taken of the text as the browser reads it.
    #[test]
    fn the_bundle_can_stand_inside_its_elements() {
        for (text, end) in [(SCRIPT, "</script"), (STYLE, "</style")] {
            assert!(text.len() > 1000, "the bundle is nearly empty");
            assert!(!text.to_lowercase().contains(end), "the bundle contains {end}");
            assert!(!text.contains("<!--"), "the bundle contains the begin of a comment");
            assert!(!text.contains('\r'), "a browser changes line ends, and the hash with them");
        }
    }

    #[test]
    fn the_licence_of_what_is_bundled_is_in_the_page() {
        assert!(SCRIPT.contains("uPlot") && SCRIPT.contains("MIT License"));
        assert!(SCRIPT.contains("Permission is hereby granted"));
    }
}
