//! The analysis in a terminal: the answer, what the designs are, one line per design and rung, warnings.

use crate::analysis::{
    Analysis, Answer, Basis, Bottleneck, CausalCheck, Comparison, Confidence, CurveReading,
    Database, Estimate, EvidenceKind, Finding, FindingSeverity, LatencyRow, Operation, Outcome,
    RateCurve, RateSearch, Reaction, Rung, Scope, Validity,
};
use crate::metrics::{RATE_AT_LIMIT, RESTORED};
use crate::text_table::{Align, TextColumn, render, wrap};
use crate::transaction_types::type_title;
use crate::verdict::causal;
use crate::wording::{amount, count, factor, factor_interval, list, minutes, percent, time_ns};
use crate::workload_view::ALL_REQUESTS;

/// Narrower terminals are treated as this wide.
const NARROWEST: usize = 40;
/// Findings that are only worth knowing are counted, not printed, beyond this many.
const MOST_INFORMATION: usize = 4;

/// Whether text carries the colours of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Plain text, for files, pipes and `NO_COLOR`.
    Never,
    /// ANSI escape sequences.
    Always,
}

/// How a piece of text is to look.
#[derive(Clone, Copy)]
enum Style {
    Bold,
    Faint,
    Good,
    Doubtful,
    Bad,
}

impl Colour {
    fn paint(self, style: Style, text: &str) -> String {
        let code = match style {
            Style::Bold => "1",
            Style::Faint => "2",
            Style::Good => "1;32",
            Style::Doubtful => "33",
            Style::Bad => "1;31",
        };
        match self {
            Colour::Never => text.to_string(),
            Colour::Always => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        }
    }
}

/// The summary of an analysis for a terminal of `width` columns. Ends with a line feed.
pub fn terminal_summary(analysis: &Analysis, width: usize, colour: Colour) -> String {
    let width = width.max(NARROWEST);
    let mut page = Page { lines: Vec::new(), width, colour };
    page.answer(analysis);
    page.designs(analysis);
    page.axes(analysis);
    page.ladder(analysis);
    page.databases(analysis);
    page.searches(analysis);
    page.operations(analysis);
    page.curves(analysis);
    page.ratios(analysis);
    page.bottlenecks(analysis);
    page.findings(&analysis.findings);
    page.small_print(analysis);
    page.text()
}

/// A rung, `backup` or `restore`, the metric of its seconds, and its cycles.
type OperationRow<'a> = (&'a Rung, &'static str, &'static str, u64);

/// Lines of text under construction.
pub(crate) struct Page {
    lines: Vec<String>,
    width: usize,
    colour: Colour,
}

impl Page {
    pub(crate) fn new(width: usize, colour: Colour) -> Page {
        Page { lines: Vec::new(), width: width.max(NARROWEST), colour }
    }

    pub(crate) fn text(self) -> String {
        self.lines.join("\n") + "\n"
    }

    pub(crate) fn blank(&mut self) {
        self.lines.push(String::new());
    }

    fn styled(&mut self, style: Style, lines: Vec<String>) {
        self.lines.extend(lines.iter().map(|line| self.colour.paint(style, line)));
    }

    pub(crate) fn headline(&mut self, text: &str) {
        self.styled(Style::Bold, wrap(text, self.width, "", ""));
    }

    pub(crate) fn paragraph(&mut self, text: &str) {
        self.lines.extend(wrap(text, self.width, "  ", "  "));
    }

    pub(crate) fn table(&mut self, columns: Vec<TextColumn>) {
        let mut lines = render(columns, self.width).into_iter();
        if let Some(header) = lines.next() {
            self.lines.push(self.colour.paint(Style::Faint, &header));
        }
        self.lines.extend(lines);
    }

    fn answer(&mut self, analysis: &Analysis) {
        let verdict = &analysis.verdict;
        let style = match verdict.answer {
            Answer::Winner | Answer::Equivalent => Style::Good,
            Answer::Invalid | Answer::NotComparable | Answer::HostLimited => Style::Bad,
            _ => Style::Bold,
        };
        self.styled(style, wrap(&verdict.headline, self.width, "", ""));
        for sentence in &verdict.support {
            self.paragraph(sentence);
        }
        if verdict.confidence != Confidence::None {
            let word = verdict.confidence.as_str();
            let reasons = verdict.confidence_reasons.join("; ");
            self.paragraph(&format!("Confidence: {word} ({reasons})."));
        }
    }

    /// What each design is: sentences and tables use its title only.
    fn designs(&mut self, analysis: &Analysis) {
        // The variants of a design are one design.
        let is_first = |position: usize| {
            let of = &analysis.designs[position].of;
            analysis.designs[..position].iter().all(|other| other.of != *of)
        };
        let described = analysis
            .designs
            .iter()
            .enumerate()
            .filter(|(position, design)| is_first(*position) && !design.description.is_empty())
            .map(|(_, design)| design);
        for (position, design) in described.enumerate() {
            if position == 0 {
                self.blank();
                self.styled(Style::Faint, vec!["designs".to_string()]);
            }
            let text = format!("{}: {}", design.of_title, design.description);
            self.lines.extend(wrap(&text, self.width, "  ", "    "));
        }
    }

    fn ladder(&mut self, analysis: &Analysis) {
        if analysis.rungs.is_empty() {
            return;
        }
        self.blank();
        self.table(ladder_columns(analysis));
        let over_runs = |rung: &Rung| {
            rung.metrics.get("headline").is_some_and(|headline| headline.basis == Basis::Runs)
        };
        let interval = match analysis.workload.is_one_run() && !analysis.rungs.iter().any(over_runs)
        {
            true => "",
            false => ", with its 95 % interval over runs",
        };
        let mut note = format!("{}: {}{interval}", analysis.workload.unit, analysis.workload.rate);
        let kind = main_type(analysis);
        let rows = analysis.rungs.iter().flat_map(|rung| &rung.latencies);
        // What was only counted has no latencies in the table.
        if rows
            .filter(|row| Some(row.transaction.as_str()) == kind)
            .any(|row| row.p50.value.is_some())
        {
            let whose = match (kind, analysis.workload.types.len()) {
                (Some(kind), 2..) => type_title(kind),
                _ => analysis.workload.counted.clone(),
            };
            note.push_str(&format!("; latency: {whose}, from the intended start"));
        }
        self.note(&format!("{note}."));
        let within_run = |rung: &Rung| {
            rung.metrics.get("headline").is_some_and(|headline| headline.basis == Basis::WithinRun)
        };
        if analysis.rungs.iter().any(within_run) {
            self.note(
                "(w) interval within a single run; it does not cover variation between runs.",
            );
        }
    }

    /// What the study varied: each point at the highest number of users, against the first one.
    fn axes(&mut self, analysis: &Analysis) {
        for axis in 0..analysis.axes.len() {
            if let Some(columns) = axis_columns(analysis, axis) {
                self.blank();
                self.table(columns);
            }
        }
    }

    /// Each of several databases at the highest number of users of its design, and the total.
    fn databases(&mut self, analysis: &Analysis) {
        if analysis.databases.is_empty() {
            return;
        }
        self.blank();
        self.table(database_columns(analysis));
        self.note(&format!(
            "{}: {} of each database at the highest number of users; users are those of each database.",
            analysis.workload.unit, analysis.workload.rate
        ));
        self.jobs(analysis);
    }

    /// What the jobs of databases came to, beside the users of the others.
    fn jobs(&mut self, analysis: &Analysis) {
        let of_design = |design: usize| {
            let jobs = analysis.databases.iter().filter(|database| database.workload.is_job);
            jobs.filter_map(move |job| {
                let rung = job.rungs.iter().filter(|rung| rung.design == design);
                Some((job, rung.max_by_key(|rung| rung.users)?))
            })
        };
        let rows: Vec<(&Database, &Rung)> =
            (0..analysis.designs.len()).flat_map(of_design).collect();
        if rows.is_empty() {
            return;
        }
        let column = |header: &str, align, of: &dyn Fn(&Database, &Rung) -> String| TextColumn {
            header: header.to_string(),
            align,
            dispensable: 0,
            cells: rows.iter().map(|(job, rung)| of(job, rung)).collect(),
        };
        let value = |rung: &Rung, name: &str| {
            let value = rung.metrics.get(name).and_then(|metric| metric.value);
            value.map_or_else(|| "-".to_string(), amount)
        };
        let mut columns = vec![
            column("job", Align::Left, &|job, _| job.name.clone()),
            column("design", Align::Left, &|_, rung| title(analysis, rung.design)),
            column("result", Align::Right, &|_, rung| value(rung, "headline")),
            column("", Align::Left, &|job, _| job.workload.unit.clone()),
        ];
        for (header, metric) in [("backup s", "backup_s"), ("restore s", "restore_s")] {
            if rows.iter().any(|(_, rung)| rung.metrics.contains_key(metric)) {
                columns.push(column(header, Align::Right, &|_, rung| value(rung, metric)));
            }
        }
        self.blank();
        self.table(columns);
        self.note("jobs work beside the users, from the first of them on, and are in no total.");
    }

    /// The searches, one line each.
    fn searches(&mut self, analysis: &Analysis) {
        let Some(first) = analysis.searches.first() else { return };
        let per_second = |rate: Option<f64>| rate.map_or("-".to_string(), amount);
        let column = |header: &str, align, of: &dyn Fn(&RateSearch) -> String| TextColumn {
            header: header.to_string(),
            align,
            dispensable: 0,
            cells: analysis.searches.iter().map(of).collect(),
        };
        self.blank();
        self.table(vec![
            column("highest rate", Align::Left, &|search| title(analysis, search.design)),
            column("repeat", Align::Right, &|search| search.repeat.to_string()),
            column("met /s", Align::Right, &|search| per_second(search.holds_per_second)),
            column("missed /s", Align::Right, &|search| per_second(search.fails_per_second)),
            column("rates tested", Align::Right, &|search| search.steps.len().to_string()),
            column("", Align::Left, &|search| match search.found.as_str() {
                "at-least" => "the load generator was saturated first".to_string(),
                "nothing" => "no rate meets the target".to_string(),
                _ => String::new(),
            }),
        ]);
        self.note(&format!(
            "highest transaction rate with {}, found by bisection and confirmed once; the report lists every step.",
            first.slo
        ));
    }

    /// Backups and restores of each design, over their cycles and runs.
    fn operations(&mut self, analysis: &Analysis) {
        let mut rows: Vec<OperationRow<'_>> = Vec::new();
        for rung in &analysis.rungs {
            for (kind, seconds) in [("backup", "backup_s"), ("restore", "restore_s")] {
                let of_kind = |operation: &&Operation| {
                    (operation.design, operation.kind.as_str()) == (rung.design, kind)
                };
                let cycles = analysis.operations.iter().filter(of_kind).count() as u64;
                if cycles > 0 {
                    rows.push((rung, kind, seconds, cycles));
                }
            }
        }
        if rows.is_empty() {
            return;
        }
        let column = |header: &str, align, of: &dyn Fn(&OperationRow<'_>) -> String| TextColumn {
            header: header.to_string(),
            align,
            dispensable: 0,
            cells: rows.iter().map(of).collect(),
        };
        let value = |rung: &Rung, name: &str| rung.metrics.get(name)?.value;
        let missing = || "-".to_string();
        self.blank();
        self.table(vec![
            column("operation", Align::Left, &|(_, kind, _, _)| kind.to_string()),
            column("design", Align::Left, &|(rung, ..)| title(analysis, rung.design)),
            column("cycles", Align::Right, &|(.., cycles)| cycles.to_string()),
            column("seconds", Align::Right, &|(rung, _, seconds, _)| {
                value(rung, seconds).map_or_else(missing, amount)
            }),
            column("95 %", Align::Left, &|(rung, _, seconds, _)| {
                rung.metrics.get(*seconds).and_then(interval).unwrap_or_else(missing)
            }),
            column("MB/s", Align::Right, &|(rung, kind, ..)| {
                let rate = match *kind {
                    "backup" => value(rung, "headline"),
                    _ => value(rung, RESTORED).map(|rate| rate / 1e6),
                };
                rate.map_or_else(missing, amount)
            }),
        ]);
        self.note(
            "seconds: mean of an operation, until what it wrote is durable; the report shows each cycle.",
        );
    }

    /// What the curves of the designs come to, one line each.
    fn curves(&mut self, analysis: &Analysis) {
        let Some(first) = analysis.curves.first() else { return };
        let column = |header: String, align, of: &dyn Fn(&RateCurve) -> String| TextColumn {
            header,
            align,
            dispensable: 0,
            cells: analysis.curves.iter().map(of).collect(),
        };
        let limit = time_ns(first.limit_ns as f64);
        let kept = |curve: &RateCurve| {
            let points = curve.points.iter().filter(|point| !point.saturated);
            points.filter_map(|point| point.done_per_second.value).max_by(f64::total_cmp)
        };
        self.blank();
        self.table(vec![
            column("rate curve".to_string(), Align::Left, &|curve| title(analysis, curve.design)),
            column(format!("/s below {limit}"), Align::Right, &|curve| {
                let value = curve.rate_at_limit.value.map_or("-".to_string(), amount);
                if curve.found == CurveReading::AtLeast { format!(">{value}") } else { value }
            }),
            column("95 %".to_string(), Align::Left, &|curve| {
                interval(&curve.rate_at_limit).unwrap_or_else(|| "none".to_string())
            }),
            column("highest kept /s".to_string(), Align::Right, &|curve| {
                kept(curve).map_or("-".to_string(), amount)
            }),
            column(String::new(), Align::Left, &|curve| match curve.found {
                CurveReading::Interpolated => String::new(),
                CurveReading::AtLeast => format!("no point reached {limit}"),
                CurveReading::Never => format!("above {limit} at every rate"),
            }),
        ]);
        self.note(&format!(
            "I/Os per second at which the mean response time from the intended start reaches {limit}, interpolated between \
             the points of each curve; kept: at least 98 % of the offered rate completed."
        ));
    }

    fn ratios(&mut self, analysis: &Analysis) {
        let of = |metric: &'static str| -> Vec<&Comparison> {
            let is_shown = |comparison: &&Comparison| {
                comparison.metric == metric && comparison.ratio.is_some()
            };
            analysis.comparisons.iter().filter(is_shown).collect()
        };
        let (headline, restores, curves) = (of("headline"), of(RESTORED), of(RATE_AT_LIMIT));
        let unit = match analysis.operations.is_empty() {
            true => analysis.workload.unit.clone(),
            false => format!("{}, backup", analysis.workload.unit),
        };
        let tables =
            [(&headline, unit.as_str()), (&restores, "MB/s, restore"), (&curves, "/s below 1 ms")];
        for (shown, what) in tables {
            if !shown.is_empty() {
                self.blank();
                self.table(ratio_columns(analysis, shown, what));
            }
        }
        let mut shown = headline.into_iter().chain(restores).chain(curves);
        if shown.any(|comparison| comparison.outcome == Outcome::Suggested) {
            self.note(
                "(*) the interval excludes 1, but not after Holm's correction for the number of rungs.",
            );
        }
    }

    fn note(&mut self, text: &str) {
        self.styled(Style::Faint, wrap(text, self.width, "", ""));
    }

    fn bottlenecks(&mut self, analysis: &Analysis) {
        let shown: Vec<&Bottleneck> = analysis.bottlenecks.iter().collect();
        if shown.is_empty() {
            return;
        }
        self.blank();
        self.styled(Style::Faint, vec!["bottlenecks".to_string()]);
        for bottleneck in shown {
            let place = format!(
                "{}, {}: ",
                title(analysis, bottleneck.design),
                count(u64::from(bottleneck.users), at_work(analysis))
            );
            let confidence = match bottleneck.confidence {
                Confidence::None => String::new(),
                level => format!(" [{} confidence]", level.as_str()),
            };
            let text = format!("{place}{}{confidence}", bottleneck.sentence);
            self.lines.extend(wrap(&text, self.width, "  ", "    "));
            let at = (bottleneck.design, bottleneck.users);
            for check in analysis.causal_checks.iter().filter(|it| (it.design, it.users) == at) {
                self.lines.extend(wrap(&check.sentence, self.width, "    ", "      "));
                self.what_if(check);
            }
        }
    }

    /// What faster resources would do, where it was asked for.
    fn what_if(&mut self, check: &CausalCheck) {
        for sensitivity in &check.resources {
            let Some(what_if) = &sensitivity.what_if else { continue };
            let words = |it: &Reaction| {
                let percent = |ratio: f64| format!("{:+.1}", (ratio - 1.0) * 100.0);
                let (value, low, high) = (percent(it.value), percent(it.low), percent(it.high));
                format!("{value} % [{low}, {high}]")
            };
            let measured = match &what_if.measured {
                Some(measured) => format!("measured {}", words(measured)),
                None => "cannot be made faster here".to_string(),
            };
            let text = format!(
                "if {} were 20 % faster: {} predicted, {measured}",
                causal::title(&sensitivity.resource),
                words(&what_if.predicted)
            );
            self.lines.extend(wrap(&text, self.width, "    ", "      "));
        }
    }

    pub(crate) fn findings(&mut self, findings: &[Finding]) {
        if findings.is_empty() {
            return;
        }
        self.blank();
        let mut information = 0;
        for finding in findings {
            let (style, word) = match finding.severity {
                FindingSeverity::Invalid => (Style::Bad, "invalid: "),
                FindingSeverity::Warning => (Style::Doubtful, "warning: "),
                FindingSeverity::Information => {
                    information += 1;
                    (Style::Faint, "note: ")
                }
            };
            if information <= MOST_INFORMATION {
                self.styled(style, wrap(&finding.text, self.width, word, "  "));
            }
        }
        if information > MOST_INFORMATION {
            let more = format!(
                "and {} in the report",
                count((information - MOST_INFORMATION) as u64, "more note")
            );
            self.styled(Style::Faint, vec![more]);
        }
    }

    fn small_print(&mut self, analysis: &Analysis) {
        self.blank();
        let counted = analysis.runs.iter().filter(|run| run.counted).count();
        let checks = analysis.checks.len();
        let held = analysis.checks.iter().filter(|check| check.outcome == "ok").count();
        let blocks = analysis.workload.is_block_load();
        // A block load is verified only if asked to, and what is simulated has no data; the identity of a block load is its
        // whole description.
        let has_data = !blocks && analysis.study.evidence != EvidenceKind::Simulated;
        let checked = match (has_data, checks) {
            (false, 0) => String::new(),
            (_, 1) => format!(" {held} of 1 consistency check passed;"),
            _ => format!(" {held} of {} passed;", count(checks as u64, "consistency check")),
        };
        let identity =
            if blocks { analysis.study.name.as_str() } else { analysis.study.identity.as_str() };
        let text = format!(
            "{} of {} counted;{checked} evidence: {}{}; workload {identity}.",
            counted,
            count(analysis.runs.len() as u64, "run"),
            kinds_of_evidence(analysis),
            match analysis.study.time_dilation {
                1 => String::new(),
                factor => format!(", time dilation {factor}"),
            },
        );
        self.styled(Style::Faint, wrap(&text, self.width, "", ""));
        self.styled(Style::Faint, wrap(&analysis.method.disclaimer, self.width, "", ""));
    }
}

/// `emulated`, or `measured and emulated`: all kinds that the designs are.
fn kinds_of_evidence(analysis: &Analysis) -> String {
    let mut kinds: Vec<String> = Vec::new();
    for design in &analysis.designs {
        let kind = design.evidence.as_str().to_string();
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    if kinds.is_empty() {
        kinds.push(analysis.study.evidence.as_str().to_string());
    }
    list(&kinds)
}

/// The transaction type that represents the headline.
fn main_type(analysis: &Analysis) -> Option<&str> {
    let rows = || analysis.rungs.iter().flat_map(|rung| &rung.latencies);
    if analysis.workload.is_block_load() && rows().any(|row| row.transaction == ALL_REQUESTS) {
        return Some(ALL_REQUESTS);
    }
    let mut rows = rows();
    let counted = &analysis.workload.types;
    rows.find(|row| counted.contains(&row.transaction)).map(|row| row.transaction.as_str())
}

fn ladder_columns(analysis: &Analysis) -> Vec<TextColumn> {
    let rungs = &analysis.rungs;
    let text = |header: &str, dispensable, of: &dyn Fn(&Rung) -> Option<String>| TextColumn {
        header: header.to_string(),
        align: Align::Right,
        dispensable,
        cells: rungs.iter().map(|rung| of(rung).unwrap_or_else(|| "-".to_string())).collect(),
    };
    let left = |column: TextColumn| TextColumn { align: Align::Left, ..column };
    let metric = |name: &'static str, words: fn(f64) -> String| {
        move |rung: &Rung| rung.metrics.get(name)?.value.map(words)
    };
    let kind = main_type(analysis);
    let latency = |of: fn(&LatencyRow) -> &Estimate| {
        move |rung: &Rung| {
            let row = rung.latencies.iter().find(|row| Some(row.transaction.as_str()) == kind)?;
            of(row).value.map(time_ns)
        }
    };
    let mut columns = vec![
        left(text("design", 0, &|rung| Some(title(analysis, rung.design)))),
        text(&at_work_column(analysis), 0, &|rung| Some(rung.users.to_string())),
        text(&analysis.workload.unit, 0, &metric("headline", amount)),
        left(text("95 %", 0, &|rung| interval(rung.metrics.get("headline")?))),
        text("duration", 1, &metric("job_s", minutes)),
        text("MB/s", 4, &metric("bytes_per_second", |bytes| amount(bytes / 1e6))),
        text("TPM", 4, &metric("tpm", amount)),
        text("TPM/user", 6, &metric("tpm_per_user", amount)),
        text("p50", 5, &latency(|row| &row.p50)),
        text("p95", 1, &latency(|row| &row.p95)),
        text("p99", 3, &latency(|row| &row.p99)),
        text("CPU idle", 2, &|rung| {
            let of = |name: &str| rung.metrics.get(name)?.value;
            of("server_cpu_idle").or(of("cpu_idle")).map(percent)
        }),
    ];
    if !analysis.validity.is_empty() {
        // After the interval: it says how to read both.
        let words = |rung: &Rung| Some(validity(analysis, rung)?.as_str().to_string());
        columns.insert(4, left(text("validity", 2, &words)));
    }
    // Idle of what the server may use; the host's beside it where that is more.
    if rungs.iter().any(|rung| rung.metrics.contains_key("server_cpu_idle")) {
        columns.push(text("host idle", 7, &metric("cpu_idle", percent)));
    }
    if rungs.iter().any(|rung| rung.working_set.is_some()) {
        let touched = |rung: &Rung| rung.working_set.as_ref().map(|set| set.text.clone());
        columns.push(left(text("working set", 8, &touched)));
    }
    if rungs.len() > analysis.peaks.len() {
        let is_peak = |rung: &Rung| {
            analysis.peaks.iter().any(|p| (p.design, p.users) == (rung.design, rung.users))
        };
        let mark = |rung: &Rung| Some(if is_peak(rung) { "* peak" } else { "" }.to_string());
        columns.push(left(text("", 0, &mark)));
    }
    columns
}

/// The databases, design by design, at the highest number of users that the design was measured at.
fn database_columns(analysis: &Analysis) -> Vec<TextColumn> {
    let highest = |rungs: &[Rung], design: usize| {
        rungs.iter().filter(|rung| rung.design == design).max_by_key(|rung| rung.users).cloned()
    };
    let mut rows: Vec<(&str, Rung)> = Vec::new();
    for design in 0..analysis.designs.len() {
        for database in analysis.databases.iter().filter(|database| !database.workload.is_job) {
            rows.extend(highest(&database.rungs, design).map(|rung| (&*database.name, rung)));
        }
        rows.extend(highest(&analysis.rungs, design).map(|rung| ("total", rung)));
    }
    let column = |header: &str, align, dispensable, of: &dyn Fn(&str, &Rung) -> Option<String>| {
        let cell = |(name, rung): &(&str, Rung)| of(name, rung).unwrap_or_else(|| "-".to_string());
        let cells = rows.iter().map(cell).collect();
        TextColumn { header: header.to_string(), align, dispensable, cells }
    };
    let kind = main_type(analysis);
    let latency = |of: fn(&LatencyRow) -> &Estimate| {
        move |_: &str, rung: &Rung| {
            let row = rung.latencies.iter().find(|row| Some(row.transaction.as_str()) == kind)?;
            of(row).value.map(time_ns)
        }
    };
    let published = |name: &str, rung: &Rung| {
        let mut all = analysis.published.iter().filter(|it| it.metric == "headline");
        let database = if name == "total" { "" } else { name };
        let series = all.find(|it| it.design == rung.design && it.database == database)?;
        let at = series.rungs.iter().position(|users| *users == Some(rung.users))?;
        series.values.get(at).copied().map(amount)
    };
    let mut columns = vec![
        column("database", Align::Left, 0, &|name, _| Some(name.to_string())),
        column("design", Align::Left, 1, &|_, rung| Some(title(analysis, rung.design))),
        column(&at_work_column(analysis), Align::Right, 2, &|_, rung| Some(rung.users.to_string())),
        column(&analysis.workload.unit, Align::Right, 0, &|_, rung| {
            rung.metrics.get("headline")?.value.map(amount)
        }),
        column("95 %", Align::Left, 0, &|_, rung| interval(rung.metrics.get("headline")?)),
        column("p50", Align::Right, 5, &latency(|row| &row.p50)),
        column("p95", Align::Right, 1, &latency(|row| &row.p95)),
        column("p99", Align::Right, 3, &latency(|row| &row.p99)),
    ];
    if rows.iter().any(|(name, rung)| published(name, rung).is_some()) {
        columns.push(column("published", Align::Right, 0, &published));
    }
    columns
}

/// The points of an axis at the highest number of users that all variants have; `None` while there is none.
fn axis_columns(analysis: &Analysis, axis: usize) -> Option<Vec<TextColumn>> {
    let rung = |variant: usize, users: u32| {
        analysis.rungs.iter().find(|rung| (rung.design, rung.users) == (variant, users))
    };
    let measured: Vec<usize> = (0..analysis.designs.len())
        .filter(|variant| analysis.rungs.iter().any(|rung| rung.design == *variant))
        .collect();
    let users = analysis.rungs.iter().map(|rung| rung.users);
    let is_common = |users: &u32| measured.iter().all(|variant| rung(*variant, *users).is_some());
    let users = users.filter(is_common).max()?;
    let others = |variant: usize| {
        let design = &analysis.designs[variant];
        let mut others = design.coordinates.clone();
        others.remove(axis);
        (&design.of, others)
    };
    // One line after another, each from its first point on.
    let mut rows: Vec<usize> = Vec::new();
    for variant in &measured {
        if !rows.contains(variant) {
            let same = |other: &&usize| others(**other) == others(*variant);
            rows.extend(measured.iter().filter(same));
        }
    }
    let first = |variant: usize| {
        let is_first = |other: &&usize| analysis.designs[**other].coordinates[axis] == 0;
        rows.iter().filter(is_first).copied().find(|other| others(*other) == others(variant))
    };
    let against = |variant: usize| {
        let first = first(variant)?;
        analysis.comparisons.iter().find(|one| {
            (one.a, one.b, one.users) == (first, variant, Some(users))
                && one.metric == "headline"
                && one.scope == Scope::Rung
        })
    };
    let column =
        |header: &str, align, dispensable, of: &dyn Fn(usize) -> Option<String>| TextColumn {
            header: header.to_string(),
            align,
            dispensable,
            cells: rows.iter().map(|row| of(*row).unwrap_or_else(|| "-".to_string())).collect(),
        };
    let label = |variant: usize, axis: usize| {
        let point = analysis.designs[variant].coordinates[axis];
        Some(analysis.axes[axis].points.get(point)?.label.clone())
    };
    let mut columns =
        vec![column(&analysis.axes[axis].name, Align::Left, 0, &|row| label(row, axis))];
    for other in (0..analysis.axes.len()).filter(|other| *other != axis) {
        let name = &analysis.axes[other].name;
        columns.push(column(name, Align::Left, 0, &|row| label(row, other)));
    }
    if analysis.designs.windows(2).any(|two| two[0].of != two[1].of) {
        let title = |row: usize| Some(analysis.designs[row].of_title.clone());
        columns.push(column("design", Align::Left, 0, &title));
    }
    let headline = |row: usize| rung(row, users)?.metrics.get("headline");
    let kind = main_type(analysis);
    let p95 = |row: usize| {
        let rows = &rung(row, users)?.latencies;
        rows.iter().find(|row| Some(row.transaction.as_str()) == kind)?.p95.value.map(time_ns)
    };
    columns.extend([
        column(&at_work_column(analysis), Align::Right, 2, &|_| Some(users.to_string())),
        column(&analysis.workload.unit, Align::Right, 0, &|row| headline(row)?.value.map(amount)),
        column("95 %", Align::Left, 1, &|row| interval(headline(row)?)),
        column("duration", Align::Right, 1, &|row| {
            rung(row, users)?.metrics.get("job_s")?.value.map(minutes)
        }),
        column("p95", Align::Right, 1, &p95),
        column("of the first", Align::Right, 0, &|row| match first(row) {
            Some(first) if first == row => Some(factor(1.0)),
            _ => against(row)?.ratio.map(factor),
        }),
        column("95 %", Align::Left, 0, &|row| Some(ratio_interval(against(row)?))),
        column("published", Align::Right, 0, &|row| against(row)?.published.map(factor)),
    ]);
    Some(columns)
}

/// Whether a design or this host was measured.
fn validity(analysis: &Analysis, rung: &Rung) -> Option<Validity> {
    let rows = &analysis.validity;
    let row = rows.iter().find(|row| (row.design, row.users) == (rung.design, rung.users))?;
    Some(row.outcome)
}

fn ratio_columns(analysis: &Analysis, shown: &[&Comparison], what: &str) -> Vec<TextColumn> {
    let column =
        |header: &str, align, dispensable, of: &dyn Fn(&Comparison) -> String| TextColumn {
            header: header.to_string(),
            align,
            dispensable,
            cells: shown.iter().map(|comparison| of(comparison)).collect(),
        };
    let mut columns = vec![
        column(&format!("ratio of {what}"), Align::Left, 0, &|c| {
            format!("{} over {}", title(analysis, c.b), title(analysis, c.a))
        }),
        column("at", Align::Right, 0, &|c| place(analysis, c)),
        column("factor", Align::Right, 0, &|c| c.ratio.map_or("-".to_string(), factor)),
        column("95 %", Align::Left, 0, &ratio_interval),
        column("pairs", Align::Right, 2, &|c| c.pairs.to_string()),
        column("p", Align::Right, 1, &|c| c.p_adjusted.map_or("-".to_string(), probability)),
        column("published", Align::Right, 1, &|c| c.published.map_or("-".to_string(), factor)),
        column("conclusion", Align::Left, 0, &|c| outcome_words(c.outcome).to_string()),
    ];
    if !analysis.validity.is_empty() {
        columns.insert(4, column("with the host's share", Align::Left, 3, &host_interval));
    }
    columns
}

/// The interval of a ratio, or `none`.
pub(crate) fn ratio_interval(comparison: &Comparison) -> String {
    match (comparison.low, comparison.high) {
        (Some(low), Some(high)) => factor_interval(low, high),
        _ => "none".to_string(),
    }
}

/// The interval with the host's share of emulated designs.
pub(crate) fn host_interval(comparison: &Comparison) -> String {
    match (comparison.host_low, comparison.host_high) {
        (Some(low), Some(high)) => factor_interval(low, high),
        _ => "unknown".to_string(),
    }
}

fn title(analysis: &Analysis, design: usize) -> String {
    analysis.designs.get(design).map_or_else(|| "?".to_string(), |design| design.title.clone())
}

fn interval(estimate: &Estimate) -> Option<String> {
    let (low, high) = (estimate.low?, estimate.high?);
    let mark = if estimate.basis == Basis::WithinRun { " (w)" } else { "" };
    Some(format!("[{}, {}]{mark}", amount(low), amount(high)))
}

/// The heading of the numbers of those at work.
fn at_work_column(analysis: &Analysis) -> String {
    if analysis.workload.is_block_load() {
        return "in flight".to_string();
    }
    format!("{}s", at_work(analysis))
}

/// Who loads the database: a job has no users, and a block load asks for blocks.
fn at_work(analysis: &Analysis) -> &'static str {
    if analysis.workload.is_block_load() {
        return "request";
    }
    if analysis.workload.is_job { "session" } else { "user" }
}

fn place(analysis: &Analysis, comparison: &Comparison) -> String {
    match (comparison.scope, comparison.users) {
        (Scope::Rung, Some(users)) => count(u64::from(users), at_work(analysis)),
        _ => "peaks".to_string(),
    }
}

pub(crate) fn probability(p: f64) -> String {
    if p < 0.001 { "<0.001".to_string() } else { format!("{p:.3}") }
}

pub(crate) fn outcome_words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Better => "better",
        Outcome::Worse => "worse",
        Outcome::Equivalent => "same within 5 %",
        Outcome::Undecided => "no difference shown",
        Outcome::Suggested => "not confirmed (*)",
        Outcome::Single => "one pair: no interval",
        Outcome::Missing => "not comparable",
    }
}
