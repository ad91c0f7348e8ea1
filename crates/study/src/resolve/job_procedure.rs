//! The procedure of a job: it has no users, is not warmed up, and is measured from its begin to its end.

use std::ops::Range;

use underlay_core::Nanos;

use super::Resolver;
use super::chosen::{Chosen, Layer};
use super::procedure::ProcedureChoice;
use crate::exact;
use crate::limits::{MEASURE, UNMEASURED};
use crate::plan::{Origin, ProcedurePlan};

/// A job that does not say how long it may take may take as long as anything.
const LONGEST: Nanos = *MEASURE.end();

/// What sets how much goes on at once, where a study tries it with what users have.
const CONCURRENCY: &str =
    "remove it; `sessions` or `streams` of the workload say how much goes on at once";

impl Resolver<'_> {
    /// Decides about the procedure of a job of so many sessions.
    pub(super) fn job_procedure(&mut self, sessions: u32) -> Option<ProcedureChoice> {
        self.refuse_what_users_have();
        let (file, default) = (&self.file.procedure, &self.defaults.procedure);
        let settle = self.time("settle", &file.settle, &default.settle, None);
        if let Some(settle) = &settle {
            self.check_time(settle, &UNMEASURED);
        }
        let measure = match self.options.measure {
            Some(time) => Some(Chosen::command_line(time, "procedure.measure", "--measure")),
            None => self.pick("procedure.measure", &[(Layer::File, &file.measure)]).found(),
        };
        if let Some(measure) = &measure {
            self.check_time(measure, &MEASURE);
        }
        let repeats = self.repeats()?;
        let order = [(Layer::File, &file.order), (Layer::Default, &default.order)];
        let order = self.pick("procedure.order", &order).found()?;
        let settle = settle?;
        self.provenance.push(settle.setting(exact::time(settle.value)));
        self.provenance.extend(measure.iter().map(|c| c.setting(exact::time(c.value))));
        self.provenance.push(repeats.setting(repeats.value.to_string()));
        self.provenance.push(order.setting(order.value.as_str().to_string()));
        Some(ProcedureChoice {
            plan: ProcedurePlan {
                users: vec![sessions],
                settle: settle.value,
                warm_up: Nanos::ZERO,
                ramp_up: Nanos::ZERO,
                measure: measure.map_or(LONGEST, |measure| measure.value),
                search: None,
                repeats: repeats.value,
                order: order.value,
            },
            full_users: vec![sessions],
            users_max: Chosen {
                value: sessions,
                path: "workload".to_string(),
                origin: Origin::Default,
                span: None,
            },
        })
    }

    /// All keys and options that have no meaning for a job.
    fn refuse_what_users_have(&mut self) {
        let file = &self.file.procedure;
        let first = |sections: &crate::entry::Entry<Vec<crate::entry::Section<_>>>| {
            sections.get().and_then(|list| list.first()).and_then(|one| one.span.clone())
        };
        let written: [(&str, Option<Range<usize>>); 5] = [
            ("procedure.users", file.users.span()),
            ("procedure.warm-up", file.warm_up.span()),
            ("procedure.ramp-up", file.ramp_up.span()),
            ("procedure.search", file.search.span.clone()),
            ("weights", first(&self.file.weights)),
        ];
        for (key, span) in written {
            if span.is_some() {
                let remedy = match key {
                    "weights" => "remove it",
                    _ => CONCURRENCY,
                };
                self.refuse_for_job(&format!("`{key}`"), span, remedy);
            }
        }
        let options = [
            (self.options.users.is_some(), "`--users`"),
            (self.options.warm_up.is_some(), "`--warm-up`"),
            (self.options.ramp_up.is_some(), "`--ramp-up`"),
        ];
        for (_, option) in options.into_iter().filter(|(is_given, _)| *is_given) {
            self.refuse_for_job(option, None, CONCURRENCY);
        }
    }

    fn refuse_for_job(&mut self, what: &str, span: Option<Range<usize>>, remedy: &str) {
        self.report.add(
            span,
            "conflict",
            format!("{what} has no meaning for a job"),
            "a job has no users: it runs until it is done",
            remedy,
        );
    }
}
