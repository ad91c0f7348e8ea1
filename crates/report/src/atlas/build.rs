//! From the analysis of a record, and a simulation, to an entry of the atlas.

use std::collections::BTreeMap;

use crate::analysis::{Analysis, Comparison, EvidenceKind, Published, Scope, Validity};
use crate::metrics::{HEADLINE, LATENCY_AT_PEAK, RATE_AT_LIMIT};
use crate::validity::ignoring_ceiling;
use crate::wording::{count, factor, factor_interval, percent};

use super::curves::{kept_points, known_points, together};
use super::experiment::{
    Agreement, AtlasCurve, AtlasCurves, AtlasExperiment, AtlasFigure, AtlasLine, AtlasRatio,
    LineOrigin,
};

/// Up to this far from 1 a ratio is no difference.
const NO_DIFFERENCE: f64 = 1.05;
/// Shares below this have no ratio: they say that nothing is there, but not how little.
const LEAST_SHARE: f64 = 0.02;
/// Up to this error a ratio is close.
const CLOSE: f64 = 0.25;

/// What a simulation at the size of the publication says about a design at one published number of users (threads per
/// volume).
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedPoint {
    /// Name of the design.
    pub design: String,
    /// The published metric.
    pub metric: String,
    /// Users.
    pub users: u32,
    /// The value, in the unit of the metric.
    pub value: f64,
}

/// What is known of a study at the size of the publication.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FullSize {
    /// Titles of designs by their names: with `engine.cpus` varied, `24 CPUs` instead of the `0.375 CPUs` of a smaller scale.
    pub titles: BTreeMap<String, String>,
    /// What a simulation says.
    pub simulated: Vec<SimulatedPoint>,
}

/// What the record of a simulation says where something is published.
pub fn simulated_points(simulation: &Analysis) -> Vec<SimulatedPoint> {
    let mut points = Vec::new();
    for series in simulation.published.iter().filter(|series| series.database.is_empty()) {
        let Some(design) = simulation.designs.get(series.design) else { continue };
        for (users, value) in series.users.iter().zip(&series.ours) {
            let Some(value) = *value else { continue };
            let (design, metric) = (design.name.clone(), series.metric.clone());
            points.push(SimulatedPoint { design, metric, users: *users, value });
        }
    }
    points
}

/// The entry of a study that has no run.
pub fn missing(name: &str, title: &str, question: &str, problem: String) -> AtlasExperiment {
    AtlasExperiment {
        name: name.to_string(),
        title: title.to_string(),
        question: question.to_string(),
        evidence: None,
        workload: None,
        scale: String::new(),
        problem: Some(problem),
        record: String::new(),
        answer: String::new(),
        reasons: Vec::new(),
        deviations: Vec::new(),
        sources: Vec::new(),
        ratios: Vec::new(),
        figures: Vec::new(),
        curves: None,
        disagreements: Vec::new(),
    }
}

/// The entry of a study with its record.
pub fn entry(
    (name, record): (&str, &str),
    analysis: &Analysis,
    full_size: &FullSize,
    problem: Option<String>,
) -> AtlasExperiment {
    let study = &analysis.study;
    let series = Series { analysis, full_size };
    let ratios = series.ratios();
    AtlasExperiment {
        name: name.to_string(),
        title: study.title.clone(),
        question: study.question.clone(),
        evidence: Some(study.evidence),
        workload: Some(analysis.workload.clone()),
        scale: study.scale.clone(),
        problem,
        record: record.to_string(),
        answer: analysis.verdict.headline.clone(),
        reasons: analysis.verdict.support.clone(),
        deviations: study.deviations.clone(),
        sources: sources(&analysis.published),
        disagreements: ratios.iter().filter_map(disagreement).collect(),
        figures: series.figures(),
        curves: series.curves(),
        ratios,
    }
}

struct Series<'a> {
    analysis: &'a Analysis,
    full_size: &'a FullSize,
}

impl Series<'_> {
    /// What is published of all databases together.
    fn of_all(&self) -> impl Iterator<Item = &Published> {
        self.analysis.published.iter().filter(|series| series.database.is_empty())
    }

    /// The published metrics, in the order of the study.
    fn metrics(&self) -> Vec<&str> {
        let mut metrics: Vec<&str> = Vec::new();
        for series in self.of_all() {
            if !metrics.contains(&series.metric.as_str()) {
                metrics.push(&series.metric);
            }
        }
        metrics
    }

    /// The designs that are compared, each pair once.
    fn pairs(&self) -> Vec<(usize, usize)> {
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        for comparison in &self.analysis.comparisons {
            if !pairs.contains(&(comparison.a, comparison.b)) {
                pairs.push((comparison.a, comparison.b));
            }
        }
        pairs
    }

    /// Every published ratio of two designs that ours, or a simulation, has as well.
    fn ratios(&self) -> Vec<AtlasRatio> {
        let metrics = self.metrics();
        // What the study sets is no result, where there is another.
        let is_result = |metric: &&&str| self.has_result(metric);
        let main = metrics.iter().find(|metric| **metric == HEADLINE).filter(is_result);
        let main = main.or(metrics.iter().find(is_result)).or(metrics.first()).copied();
        let mut all = Vec::new();
        for metric in metrics {
            for (a, b) in self.pairs() {
                let mut of_pair = self.ratios_of(metric, a, b);
                // Users ascend: the last one is the largest load.
                if let Some(last) = of_pair.last_mut() {
                    last.is_headline = Some(metric) == main;
                }
                all.append(&mut of_pair);
            }
        }
        all
    }

    /// What is published of two designs by a metric.
    fn of_pair(&self, metric: &str, a: usize, b: usize) -> Option<(&Published, &Published)> {
        let find = |design: usize| {
            self.of_all().find(|series| series.design == design && series.metric == metric)
        };
        find(a).zip(find(b))
    }

    /// Whether a ratio of two designs by a metric is not given.
    fn has_result(&self, metric: &str) -> bool {
        let pairs = self.pairs().into_iter();
        let mut published = pairs.filter_map(|(a, b)| self.of_pair(metric, a, b));
        published.any(|(a, b)| !a.given && !b.given)
    }

    fn ratios_of(&self, metric: &str, a: usize, b: usize) -> Vec<AtlasRatio> {
        let Some((of_a, of_b)) = self.of_pair(metric, a, b) else { return Vec::new() };
        let mut places: Vec<(usize, usize)> = Vec::new();
        for (at_a, users) in of_a.users.iter().enumerate() {
            if let Some(at_b) = of_b.users.iter().position(|other| other == users) {
                places.push((at_a, at_b));
            }
        }
        places.sort_by_key(|(at_a, _)| of_a.users[*at_a]);
        let ratio = |(at_a, at_b): (usize, usize)| {
            self.ratio((of_a, at_a), (of_b, at_b))
                .filter(|ratio| ratio.ours.is_some() || ratio.simulated.is_some())
        };
        places.into_iter().filter_map(ratio).collect()
    }

    fn ratio(&self, a: (&Published, usize), b: (&Published, usize)) -> Option<AtlasRatio> {
        let value = |(series, at): (&Published, usize)| series.values.get(at).copied();
        // So that the published ratio is 1 or more.
        let is_turned = value(b)? < value(a)?;
        let (top, bottom) = if is_turned { (a, b) } else { (b, a) };
        let is_share = self.metric(&a.0.metric).1 == "share";
        let divided = |of: &dyn Fn((&Published, usize)) -> Option<f64>| {
            quotient(of(top)?, of(bottom)?, is_share)
        };
        let published = divided(&value)?;
        let ours = divided(&|(series, at)| self.our_value(series, at));
        let simulated = divided(&|(series, at)| self.simulated_value(series, at));
        let own = if self.is_simulated() { simulated } else { ours };
        // A ratio that is not shown has no interval.
        let interval = own.and_then(|_| self.interval(a, b)).map(|(low, high)| match is_turned {
            true => (1.0 / high, 1.0 / low),
            false => (low, high),
        });
        let error = |ratio: Option<f64>| ratio.map(|ratio| ratio / published - 1.0);
        let title = |series: &Published| self.title(series.design);
        let at_work = self.at_work(a.0.users.get(a.1).copied()?);
        Some(AtlasRatio {
            is_headline: false,
            is_given: a.0.given || b.0.given,
            is_host_limited: self.is_host_limited(a, b),
            text: format!("{} over {}{at_work}", title(top.0), title(bottom.0)),
            metric: self.metric(&a.0.metric).0,
            published,
            ours,
            low: interval.map(|(low, _)| low),
            high: interval.map(|(_, high)| high),
            simulated,
            error: error(ours),
            simulated_error: error(simulated),
            agreement: agreement(published, own, interval),
        })
    }

    /// The interval of the second design over the first one, with the host's share where that is known.
    fn interval(&self, a: (&Published, usize), b: (&Published, usize)) -> Option<(f64, f64)> {
        let users = a.0.rungs.get(a.1).copied().flatten()?;
        let is_wanted = |one: &&Comparison| {
            (one.a, one.b, one.scope) == (a.0.design, b.0.design, Scope::Rung)
                && one.users == Some(users)
                && one.metric == a.0.metric
        };
        let comparison = self.analysis.comparisons.iter().find(is_wanted)?;
        let (low, high) = (comparison.low?, comparison.high?);
        Some((comparison.host_low.unwrap_or(low), comparison.host_high.unwrap_or(high)))
    }

    /// Whether a run measured this host instead of one of two designs, at the rungs that stand for these published values. Along
    /// an axis one of the two may reach the host's ceiling, as in the answer: that storage limits no more is what it shows.
    fn is_host_limited(&self, a: (&Published, usize), b: (&Published, usize)) -> bool {
        if self.is_simulated() {
            return false;
        }
        let row = |(series, at): (&Published, usize)| {
            let users = series.rungs.get(at).copied().flatten()?;
            let at_rung = (series.design, users);
            self.analysis.validity.iter().find(|row| (row.design, row.users) == at_rung)
        };
        let rows: Vec<_> = [a, b].into_iter().filter_map(row).collect();
        let is_limited = |it: Validity| it == Validity::HostLimited;
        let limited = rows.iter().filter(|row| is_limited(row.outcome)).count();
        let below_ceiling = rows.iter().any(|row| is_limited(ignoring_ceiling(row)));
        let design = |series: &Published| {
            self.analysis.designs.get(series.design).map(|design| design.of.as_str())
        };
        let is_along_axis = design(a.0) == design(b.0);
        if is_along_axis { below_ceiling || limited == 2 } else { limited > 0 }
    }

    /// Whether the record is that of a run in virtual time.
    fn is_simulated(&self) -> bool {
        self.analysis.study.evidence == EvidenceKind::Simulated
    }

    fn our_value(&self, series: &Published, at: usize) -> Option<f64> {
        series.ours.get(at).copied().flatten().filter(|_| !self.is_simulated())
    }

    fn simulated_value(&self, series: &Published, at: usize) -> Option<f64> {
        if self.is_simulated() {
            return series.ours.get(at).copied().flatten();
        }
        // Points are of all databases together.
        if !series.database.is_empty() {
            return None;
        }
        let (design, users) =
            (&self.analysis.designs.get(series.design)?.name, series.users.get(at)?);
        let is_it = |it: &&SimulatedPoint| {
            it.design == *design && it.metric == series.metric && it.users == *users
        };
        self.full_size.simulated.iter().find(is_it).map(|point| point.value)
    }

    /// Title of a design, as the publication has it.
    fn title(&self, design: usize) -> &str {
        let Some(design) = self.analysis.designs.get(design) else { return "?" };
        self.full_size.titles.get(&design.name).unwrap_or(&design.title)
    }

    /// Title of what a series is about: a design, or a database on it.
    fn title_of(&self, series: &Published) -> String {
        let title = self.title(series.design);
        match series.database.as_str() {
            "" => title.to_string(),
            database => format!("{database}: {title}"),
        }
    }

    /// ` at 89 users`; nothing of a job.
    fn at_work(&self, users: u32) -> String {
        let workload = &self.analysis.workload;
        match (workload.is_job, workload.is_block_load()) {
            (true, _) => String::new(),
            (false, true) => format!(" at {}", count(u64::from(users), "thread")),
            (false, false) => format!(" at {}", count(u64::from(users), "user")),
        }
    }

    /// Title and unit of a metric.
    fn metric(&self, name: &str) -> (String, String) {
        let (volume, inner) = match name.strip_prefix("volumes.").and_then(|it| it.split_once('.'))
        {
            Some((volume, inner)) => (Some(volume), inner),
            None => (None, name),
        };
        let known = self.analysis.method.metrics.iter().find(|metric| metric.name == inner);
        let (title, unit) = match (inner, known) {
            (_, Some(metric)) => (metric.title.clone(), metric.unit.clone()),
            ("p50" | "p95" | "p99", None) => (format!("{inner} response time"), "ns".to_string()),
            ("mean", None) => ("Mean response time".to_string(), "ns".to_string()),
            ("read_mean" | "write_mean", None) => {
                let requests = if inner == "read_mean" { "reads" } else { "writes" };
                (format!("Mean response time of {requests}"), "ns".to_string())
            }
            (other, None) if other.ends_with("_ns") => {
                let words = other.trim_end_matches("_ns").replace('_', " ");
                (crate::wording::sentence_case(&words), "ns".to_string())
            }
            (other, None) => {
                (crate::wording::sentence_case(&other.replace('_', " ")), String::new())
            }
        };
        match volume {
            Some(volume) => (format!("{title}, {volume} volume"), unit),
            None => (title, unit),
        }
    }

    fn figures(&self) -> Vec<AtlasFigure> {
        let of_all = self.metrics().into_iter().map(|metric| {
            let list: Vec<&Published> =
                self.of_all().filter(|series| series.metric == metric).collect();
            let mut users: Vec<u32> =
                list.iter().flat_map(|series| &series.users).copied().collect();
            users.sort_unstable();
            users.dedup();
            self.figure(&list, users)
        });
        of_all.chain(self.figures_of_databases()).collect()
    }

    /// Mean latency against the delivered rate, where points of such a curve are published.
    fn curves(&self) -> Option<AtlasCurves> {
        let own = if self.is_simulated() { LineOrigin::Simulated } else { LineOrigin::Ours };
        let mut lines = Vec::new();
        for design in 0..self.analysis.designs.len() {
            let curve = self.analysis.curves.iter().find(|curve| curve.design == design);
            for origin in [LineOrigin::Published, LineOrigin::Ours, LineOrigin::Simulated] {
                let value = |metric: &str| self.at_most_users(design, metric, origin);
                let measured = curve.filter(|_| origin == own);
                let mut points = measured.map(kept_points).unwrap_or_default();
                // What lies between two points of ours is no point.
                let at_limit = value(RATE_AT_LIMIT).filter(|_| origin == LineOrigin::Published);
                points.extend(known_points(at_limit, value(HEADLINE).zip(value(LATENCY_AT_PEAK))));
                if !points.is_empty() {
                    let title = self.title(design).to_string();
                    lines.push(AtlasCurve { design, title, origin, points });
                }
            }
        }
        together(lines)
    }

    /// A value of a design at its highest published number of users; of a result in a unit of its own, none.
    fn at_most_users(&self, design: usize, metric: &str, origin: LineOrigin) -> Option<f64> {
        let is_wanted = |series: &&Published| {
            series.design == design && series.metric == metric && series.unit.is_empty()
        };
        let series = self.of_all().find(is_wanted)?;
        let at = (0..series.users.len()).max_by_key(|at| series.users[*at])?;
        match origin {
            LineOrigin::Published => series.values.get(at).copied(),
            LineOrigin::Ours => self.our_value(series, at),
            LineOrigin::Simulated => self.simulated_value(series, at),
        }
    }

    /// A figure per metric with a value of each database that has any: at its highest number of users.
    fn figures_of_databases(&self) -> Vec<AtlasFigure> {
        let mut figures: Vec<(&str, Vec<&Published>)> = Vec::new();
        for series in self.analysis.published.iter().filter(|series| !series.database.is_empty()) {
            match figures.iter_mut().find(|(metric, _)| *metric == series.metric) {
                Some((_, list)) => list.push(series),
                None => figures.push((&series.metric, vec![series])),
            }
        }
        let figure = |(_, list): (&str, Vec<&Published>)| {
            let most = list.iter().flat_map(|series| &series.users).max().copied();
            let figure = self.figure(&list, most.into_iter().collect());
            AtlasFigure { title: format!("{}, by database", figure.title), ..figure }
        };
        figures.into_iter().map(figure).collect()
    }

    /// A metric of some series at these numbers of users.
    fn figure(&self, list: &[&Published], users: Vec<u32>) -> AtlasFigure {
        let values = |series: &Published, origin: LineOrigin| -> Vec<Option<f64>> {
            let at = |wanted: &u32| {
                let at = series.users.iter().position(|users| users == wanted)?;
                match origin {
                    LineOrigin::Published => series.values.get(at).copied(),
                    LineOrigin::Ours => self.our_value(series, at),
                    LineOrigin::Simulated => self.simulated_value(series, at),
                }
            };
            users.iter().map(at).collect()
        };
        let origins = [LineOrigin::Published, LineOrigin::Ours, LineOrigin::Simulated];
        // The largest load that the first design has of everyone who has any of it.
        let reference = list.first().and_then(|first| {
            let lines: Vec<Vec<Option<f64>>> = origins
                .iter()
                .map(|origin| values(first, *origin))
                .filter(|line| line.iter().any(Option::is_some))
                .collect();
            let is_shared =
                |at: &usize| lines.iter().all(|line| line[*at].is_some_and(|it| it > 0.0));
            (0..users.len()).rev().find(is_shared).map(|at| (*first, at))
        });
        // A value alone, as a multiple of itself, would be 1 whatever it is.
        let reference = reference.filter(|_| list.len() * users.len() > 1);
        let mut lines = Vec::new();
        for (position, series) in list.iter().enumerate() {
            for origin in origins {
                let values_here = values(series, origin);
                if values_here.iter().all(Option::is_none) {
                    continue;
                }
                let one = reference.and_then(|(first, at)| values(first, origin)[at]);
                let shape = |value: &Option<f64>| Some((*value)? / one.filter(|one| *one > 0.0)?);
                lines.push(AtlasLine {
                    design: position,
                    title: self.title_of(series),
                    origin,
                    shape: values_here.iter().map(shape).collect(),
                    values: values_here,
                });
            }
        }
        let metric = list.first().map_or("", |series| &series.metric);
        let (title, unit) = self.metric(metric);
        let reference = reference.map_or_else(String::new, |(first, at)| {
            format!("{}{}", self.title_of(first), self.at_work(users[at]))
        });
        let published_unit = list.first().map_or_else(String::new, |series| series.unit.clone());
        AtlasFigure { title, unit, users, reference, published_unit, lines }
    }
}

/// The ratio of two numbers; `None` of shares of which one is hardly there, as idle time where processors are the limit.
fn quotient(top: f64, bottom: f64, is_share: bool) -> Option<f64> {
    let least = if is_share { LEAST_SHARE } else { 0.0 };
    (bottom > 0.0 && top.min(bottom) >= least).then_some(top / bottom)
}

fn agreement(published: f64, ours: Option<f64>, interval: Option<(f64, f64)>) -> Agreement {
    let Some(ours) = ours else { return Agreement::Unknown };
    if interval.is_some_and(|(low, high)| (low..=high).contains(&published)) {
        return Agreement::Within;
    }
    if (ours / published - 1.0).abs() <= CLOSE {
        return Agreement::Close;
    }
    // The published ratio is 1 or more.
    match (published > NO_DIFFERENCE, ours > NO_DIFFERENCE, ours < 1.0 / NO_DIFFERENCE) {
        (true, true, _) => Agreement::SameDirection,
        (true, _, true) => Agreement::Opposite,
        _ => Agreement::NoDifference,
    }
}

/// A headline that is far off, and every ratio of another direction, in words.
fn disagreement(ratio: &AtlasRatio) -> Option<String> {
    let of_run = ratio.ours.zip(ratio.error).map(|of_run| ("ours", of_run));
    let of_simulation = ratio.simulated.zip(ratio.simulated_error).map(|of| ("simulated", of));
    let (whose, (value, error)) = of_run.or(of_simulation)?;
    let own = match ratio.low.zip(ratio.high) {
        Some((low, high)) => format!("{} {}", factor(value), factor_interval(low, high)),
        None => factor(value),
    };
    let (metric, published) = (&ratio.metric, factor(ratio.published));
    let both = format!("{}: {metric}: published {published}, {whose} {own}", ratio.text);
    match ratio.agreement {
        Agreement::Opposite => Some(format!("{both}; another design is ahead")),
        Agreement::NoDifference => Some(format!("{both}; one of the two shows no difference")),
        Agreement::SameDirection if ratio.is_headline => {
            let word = if error > 0.0 { "more" } else { "less" };
            Some(format!("{both}; {} {word}", percent(error.abs())))
        }
        _ => None,
    }
}

fn sources(published: &[Published]) -> Vec<String> {
    let mut sources: Vec<String> = Vec::new();
    for series in published {
        let of = match series.experiment.as_str() {
            "" => series.source.clone(),
            id => format!("{id}, {}", series.source),
        };
        let text = match series.note.as_str() {
            "" => of,
            note => format!("{of}: {note}"),
        };
        if !sources.contains(&text) {
            sources.push(text);
        }
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::{Agreement, agreement, quotient};

    #[test]
    fn shares_that_are_hardly_there_have_no_ratio() {
        assert_eq!(quotient(0.44, 0.22, true), Some(2.0));
        assert_eq!(quotient(0.44, 0.001, true), None);
        assert_eq!(quotient(0.001, 0.44, true), None);
        assert_eq!(quotient(0.44, 0.001, false), Some(440.0));
        assert_eq!(quotient(5.0, 0.0, false), None);
    }

    #[test]
    fn agreement_is_about_intervals_then_size_then_direction() {
        assert_eq!(agreement(2.3, Some(4.0), Some((2.0, 8.0))), Agreement::Within);
        assert_eq!(agreement(2.3, Some(2.0), Some((1.9, 2.1))), Agreement::Close);
        assert_eq!(agreement(2.3, Some(7.4), None), Agreement::SameDirection);
        assert_eq!(agreement(2.3, Some(1.0), None), Agreement::NoDifference);
        assert_eq!(agreement(1.0, Some(1.5), None), Agreement::NoDifference);
        assert_eq!(agreement(2.3, Some(0.5), None), Agreement::Opposite);
        assert_eq!(agreement(2.3, None, None), Agreement::Unknown);
    }
}
