//! Repeats: a number, or the precision that ends them and their limit.

use super::chosen::{Chosen, Layer};
use super::resolver::Resolver;
use crate::finding::Severity;
use crate::limits::{PRECISION_PERMILLE, REPEATS};
use crate::plan::{FEWEST_REPEATS_UNTIL, Origin, Precision, Repeats, Setting};

/// How often everything is repeated.
#[derive(Clone, Debug)]
pub(crate) struct RepeatsChoice {
    repeats: Chosen<Repeats>,
    /// The limit; none where the number is fixed.
    at_most: Option<Chosen<u32>>,
}

impl RepeatsChoice {
    /// Runs per design, at most.
    pub fn most(&self) -> u32 {
        match (self.repeats.value, &self.at_most) {
            (Repeats::Exactly(repeats), _) => repeats,
            (Repeats::Until(_), Some(at_most)) => at_most.value,
            (Repeats::Until(_), None) => unreachable!("a precision is decided with its limit"),
        }
    }

    /// The precision that ends the repeats.
    pub fn until(&self) -> Option<Precision> {
        match self.repeats.value {
            Repeats::Until(precision) => Some(precision),
            Repeats::Exactly(_) => None,
        }
    }

    /// The lines of the provenance table.
    pub fn settings(&self) -> Vec<Setting> {
        let at_most = self.at_most.iter().map(|limit| limit.setting(limit.value.to_string()));
        [self.repeats.setting(self.repeats.value.to_string())].into_iter().chain(at_most).collect()
    }
}

/// Decides about the repeats.
pub(super) fn resolve(resolver: &mut Resolver<'_>) -> Option<RepeatsChoice> {
    let (file, default) = (&resolver.file.procedure, &resolver.defaults.procedure);
    let repeats = match resolver.options.repeats {
        Some(repeats) => Chosen::command_line(repeats, "procedure.repeats", "--repeats"),
        None => {
            let layers = [(Layer::File, &file.repeats), (Layer::Default, &default.repeats)];
            resolver.pick("procedure.repeats", &layers).found()?
        }
    };
    let layers = [(Layer::File, &file.repeats_at_most), (Layer::Default, &default.repeats_at_most)];
    let at_most = resolver.pick("procedure.repeats-at-most", &layers).found()?;
    match repeats.value {
        Repeats::Exactly(number) => {
            check_number(resolver, &repeats, number)?;
            // An option that replaces the precision leaves its limit in the file.
            let is_option = matches!(repeats.origin, Origin::CommandLine { .. });
            if at_most.span.is_some() && !is_option {
                at_most.problem(
                    &mut resolver.report,
                    "conflict",
                    "`procedure.repeats-at-most` limits nothing",
                    format!("the number of repeats is fixed: {number}"),
                    "remove it, or write repeats = \"until 5 %\"",
                );
            }
            Some(RepeatsChoice { repeats, at_most: None })
        }
        Repeats::Until(precision) => {
            let is_decided =
                [check_precision(resolver, &repeats, precision), check_limit(resolver, &at_most)];
            is_decided
                .iter()
                .all(Option::is_some)
                .then_some(RepeatsChoice { repeats, at_most: Some(at_most) })
        }
    }
}

/// Reports a precision that no ratio has.
pub(super) fn check_repeats_of(
    resolver: &mut Resolver<'_>,
    choice: &RepeatsChoice,
    designs: usize,
) {
    if choice.until().is_some() && designs < 2 {
        choice.repeats.problem(
            &mut resolver.report,
            "conflict",
            format!("{} needs two designs", choice.repeats.called()),
            "it is about the ratio of two designs, and there is one",
            "write a number of repeats, or add a design",
        );
    }
}

fn check_number(resolver: &mut Resolver<'_>, repeats: &Chosen<Repeats>, number: u32) -> Option<()> {
    if !REPEATS.contains(&number) {
        repeats.problem(
            &mut resolver.report,
            "out-of-range",
            format!("{} is out of range", repeats.called()),
            format!("{number} repeats"),
            format!(
                "write {} to {}; three or more give an interval",
                REPEATS.start(),
                REPEATS.end()
            ),
        );
        return None;
    }
    let line = repeats.line(resolver.text);
    match number {
        1 => resolver.finding(
            Severity::Warning,
            "no-interval",
            "one repeat cannot separate differences between designs from those between runs",
            "set repeats = 3 or more",
            line,
        ),
        2 => resolver.finding(
            Severity::Note,
            "wide-interval",
            "two repeats: confidence intervals will be very wide",
            "set repeats = 3 or more",
            line,
        ),
        _ => {}
    }
    Some(())
}

fn check_precision(
    resolver: &mut Resolver<'_>,
    repeats: &Chosen<Repeats>,
    precision: Precision,
) -> Option<()> {
    if PRECISION_PERMILLE.contains(&precision.permille) {
        return Some(());
    }
    let [low, high] = [PRECISION_PERMILLE.start(), PRECISION_PERMILLE.end()]
        .map(|permille| Precision { permille: *permille });
    repeats.problem(
        &mut resolver.report,
        "out-of-range",
        format!("{} is out of range", repeats.called()),
        format!("{precision} of the ratio"),
        format!("write \"until {low}\" to \"until {high}\""),
    );
    None
}

fn check_limit(resolver: &mut Resolver<'_>, at_most: &Chosen<u32>) -> Option<()> {
    let range = FEWEST_REPEATS_UNTIL..=*REPEATS.end();
    if range.contains(&at_most.value) {
        return Some(());
    }
    at_most.problem(
        &mut resolver.report,
        "out-of-range",
        format!("{} is out of range", at_most.called()),
        format!("{} repeats", at_most.value),
        format!(
            "write {} to {}; the first look at the interval is after {} repeats",
            range.start(),
            range.end(),
            range.start()
        ),
    );
    None
}
