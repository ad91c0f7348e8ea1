//! The procedure of a job: it has no users, is not warmed up, and is measured from its begin to its end.

use std::ops::Range;

use underlay_core::Nanos;

use super::Resolver;
use super::chosen::{Chosen, Layer, Pick};
use super::procedure::{Ladder, Phases, ProcedureChoice, plan};
use super::repeats::RepeatsChoice;
use crate::exact;
use crate::limits::{MEASURE, UNMEASURED};
use crate::plan::Origin;

/// A job that does not say how long it may take may take as long as anything.
const LONGEST: Nanos = *MEASURE.end();

/// What sets how much goes on at once, where a study tries it with what users have.
const CONCURRENCY: &str =
    "remove it; `sessions` or `streams` of the workload say how much goes on at once";

/// Sessions of a job are not driven: nobody could slow them down.
const UNDILATED: &str = "remove it; only the sessions of virtual users can be slowed down";

impl Resolver<'_> {
    /// Decides about the procedure of a job of so many sessions.
    pub(super) fn job_procedure(&mut self, sessions: u32) -> ProcedureChoice {
        self.refuse_what_users_have();
        let (file, default) = (&self.file.procedure, &self.defaults.procedure);
        let settle = self.time("settle", &file.settle, &default.settle, None);
        if let Some(settle) = &settle {
            self.check_time(settle, &UNMEASURED);
        }
        let measure = match self.options.measure {
            Some(time) => Pick::Found(Chosen::command_line(time, "procedure.measure", "--measure")),
            None => self.pick("procedure.measure", &[(Layer::File, &file.measure)]),
        };
        if let Pick::Found(measure) = &measure {
            self.check_time(measure, &MEASURE);
        }
        let repeats = self.repeats();
        let order = [(Layer::File, &file.order), (Layer::Default, &default.order)];
        let order = self.pick("procedure.order", &order).found();
        self.provenance.extend(settle.iter().map(|c| c.setting(exact::time(c.value))));
        if let Pick::Found(measure) = &measure {
            self.provenance.push(measure.setting(exact::time(measure.value)));
        }
        self.provenance.extend(repeats.iter().flat_map(RepeatsChoice::settings));
        self.provenance.extend(order.iter().map(|c| c.setting(c.value.as_str().to_string())));
        let phases = Phases {
            settle: settle.map(|time| time.value),
            warm_up: Some(Nanos::ZERO),
            ramp_up: Some(Nanos::ZERO),
            measure: match measure {
                Pick::Found(measure) => Some(measure.value),
                Pick::Absent => Some(LONGEST),
                Pick::Refused => None,
            },
        };
        let top = Chosen {
            value: sessions,
            path: "workload".to_string(),
            origin: Origin::Default,
            span: None,
        };
        let ladder = Ladder { users: vec![sessions], full: vec![sessions], top };
        let order = order.map(|c| c.value);
        let searched = (Some(None), Some(None), Some(None));
        let plan = plan(Some(&ladder), &phases, searched, (repeats.as_ref(), order, Some(false)));
        ProcedureChoice {
            plan,
            phases,
            ladder: Some(ladder),
            repeats,
            time_dilation: None,
            warm_up_users: None,
        }
    }

    /// All keys and options that have no meaning for a job.
    fn refuse_what_users_have(&mut self) {
        let file = &self.file.procedure;
        let first = |sections: &crate::entry::Entry<Vec<crate::entry::Section<_>>>| {
            sections.get().and_then(|list| list.first()).and_then(|one| one.span.clone())
        };
        let written: [(&str, Option<Range<usize>>); 11] = [
            ("procedure.users", file.users.span()),
            ("procedure.warm-up", file.warm_up.span()),
            ("procedure.warm-up-users", file.warm_up_users.span()),
            ("procedure.ramp-up", file.ramp_up.span()),
            ("procedure.search", file.search.span.clone()),
            ("procedure.time-dilation", file.time_dilation.span()),
            ("procedure.null-twin", file.null_twin.span()),
            ("procedure.causal-check", file.causal_check.span()),
            ("procedure.what-if", file.what_if.span()),
            ("procedure.cool-down", file.cool_down.span()),
            ("weights", first(&self.file.weights)),
        ];
        for (key, span) in written {
            if span.is_some() {
                let remedy = match key {
                    "weights"
                    | "procedure.null-twin"
                    | "procedure.causal-check"
                    | "procedure.cool-down"
                    | "procedure.what-if" => "remove it",
                    "procedure.time-dilation" => UNDILATED,
                    _ => self.concurrency(),
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
            self.refuse_for_job(option, None, self.concurrency());
        }
        if self.options.time_dilation.is_some_and(|dilation| !dilation.is_none()) {
            self.refuse_for_job("`--time-dilation`", None, UNDILATED);
        }
    }

    fn concurrency(&self) -> &'static str {
        // One program at a time takes a backup.
        if self.file.workload.backup.is_present() { "remove it" } else { CONCURRENCY }
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
