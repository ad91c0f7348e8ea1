//! Published series: their references and their shape.

use super::Resolver;
use crate::entry::Entry;
use crate::file::Published;
use crate::plan::PublishedSeries;
use crate::suggest::{listed, nearest};

const METRICS: [&str; 4] = ["nopm", "tpm", "tpm-per-user", "cpu-idle"];

impl Resolver<'_> {
    /// All series that are in order.
    pub(super) fn published(&mut self) -> Vec<PublishedSeries> {
        let Entry::Given { value: sections, .. } = &self.file.published else { return Vec::new() };
        let names: Vec<String> = self.design_names().into_iter().flatten().collect();
        let series = |section: &crate::entry::Section<Published>| {
            if section.refused { None } else { self.series(section, &names) }
        };
        sections.iter().filter_map(series).collect()
    }

    fn series(
        &mut self,
        section: &crate::entry::Section<Published>,
        names: &[String],
    ) -> Option<PublishedSeries> {
        let design = self.of_series(section, "design", &section.design);
        let metric = self.of_series(section, "metric", &section.metric);
        let users = self.of_series(section, "users", &section.users);
        let values = self.of_series(section, "values", &section.values);
        let source = self.of_series(section, "source", &section.source);
        self.check_word(&section.design, names.iter().map(String::as_str), "design of this study");
        self.check_word(&section.metric, METRICS, "metric");
        let (users, values) = (users?, values?);
        if users.len() != values.len() {
            self.report.add(
                section.values.span(),
                "conflict",
                "`published.values` does not fit `published.users`",
                format!("{} values for {} numbers of users", values.len(), users.len()),
                "write one value per number of users",
            );
        }
        Some(PublishedSeries {
            design: design?,
            metric: metric?,
            users,
            values,
            source: source?,
            note: section.note.get().cloned().unwrap_or_default(),
        })
    }

    fn of_series<T: Clone>(
        &mut self,
        section: &crate::entry::Section<Published>,
        key: &str,
        entry: &Entry<T>,
    ) -> Option<T> {
        if matches!(entry, Entry::Absent) {
            self.report.add(
                section.span.clone(),
                "missing-key",
                format!("the published series does not say its `{key}`"),
                format!("`{key}` is missing"),
                format!("add `{key}`, or remove the series"),
            );
        }
        entry.get().cloned()
    }

    /// Reports a text that is not among the known words.
    fn check_word<'w>(
        &mut self,
        entry: &Entry<String>,
        words: impl IntoIterator<Item = &'w str> + Clone,
        what: &str,
    ) {
        let Some(text) = entry.get() else { return };
        if words.clone().into_iter().any(|word| word == text) {
            return;
        }
        let label = match nearest(text, words.clone()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("not a {what}"),
        };
        self.report.add(
            entry.span(),
            "unknown-name",
            format!("`{text}` is not a {what}"),
            label,
            format!("use one of {}", listed(words)),
        );
    }
}
