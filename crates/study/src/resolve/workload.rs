//! The workload: merging, scaling and checking.

use underlay_core::{Nanos, RootSeed};

use super::Resolver;
use super::chosen::{Chosen, Layer};
use crate::exact;
use crate::finding::Severity;
use crate::limits::STATEMENT_TIMEOUT;
use crate::plan::{Arrivals, Mode, Pacing, Profile, Scale, WorkloadPlan};
use crate::scale;

/// The decisions about the workload.
#[derive(Clone, Debug)]
pub(crate) struct WorkloadChoice {
    pub warehouses: Chosen<u64>,
    mode: Chosen<Mode>,
    profile: Chosen<Profile>,
    pacing: PacingChoice,
    entropy: Chosen<u64>,
    statement_timeout: Chosen<Nanos>,
}

#[derive(Clone, Debug)]
enum PacingChoice {
    Closed { key_think: Chosen<f64> },
    Open { rate_per_second: Chosen<f64>, arrivals: Chosen<Arrivals> },
}

impl WorkloadChoice {
    /// Number of warehouses.
    pub fn warehouses(&self) -> u32 {
        // The reader accepts a million at most.
        self.warehouses.value as u32
    }

    /// The workload as the plan holds it.
    pub fn plan(&self, seed: u64) -> WorkloadPlan {
        WorkloadPlan {
            warehouses: self.warehouses(),
            mode: self.mode.value,
            profile: self.profile.value,
            pacing: match &self.pacing {
                PacingChoice::Closed { key_think } => Pacing::Closed { key_think: key_think.value },
                PacingChoice::Open { rate_per_second, arrivals } => Pacing::Open {
                    rate_per_second: rate_per_second.value,
                    arrivals: arrivals.value,
                },
            },
            seed: RootSeed(seed),
            entropy: self.entropy.value as u8,
            statement_timeout: self.statement_timeout.value,
        }
    }
}

const PATH: &str = "workload.tpcc";

impl Resolver<'_> {
    /// Decides about the workload at full size.
    pub(super) fn workload(&mut self) -> Option<WorkloadChoice> {
        let section = &self.file.workload;
        if !section.tpcc.is_present() {
            if !section.refused {
                self.report.add(
                    Some(section.span.clone().unwrap_or(0..0)),
                    "missing-key",
                    "the study names no workload",
                    "what the users do is missing",
                    "add [workload.tpcc] with for example warehouses = 8",
                );
            }
            return None;
        }
        let file = &section.tpcc;
        let default = &self.defaults.workload.tpcc;
        let warehouses = self.pick(&at("warehouses"), &[(Layer::File, &file.warehouses)]);
        if warehouses.is_absent() && !file.refused {
            self.report.add(
                file.span.clone(),
                "missing-key",
                "`workload.tpcc` does not say how many warehouses",
                "`warehouses` is missing",
                "add for example warehouses = 8, about 105 MB each",
            );
        }
        let mode = self
            .pick(&at("mode"), &[(Layer::File, &file.mode), (Layer::Default, &default.mode)])
            .found();
        let profile = [(Layer::File, &file.profile), (Layer::Default, &default.profile)];
        let profile = self.pick(&at("profile"), &profile).found();
        if let (Some(profile), Some(mode)) = (&profile, &mode) {
            self.judge_profile(profile, mode);
        }
        let entropy = self
            .pick(
                &at("entropy"),
                &[(Layer::File, &file.entropy), (Layer::Default, &default.entropy)],
            )
            .found();
        let timeout =
            [(Layer::File, &file.statement_timeout), (Layer::Default, &default.statement_timeout)];
        let statement_timeout = self.pick(&at("statement-timeout"), &timeout).found();
        if let Some(timeout) = &statement_timeout {
            self.check_time(timeout, &STATEMENT_TIMEOUT);
        }
        let pacing = self.pacing();
        Some(WorkloadChoice {
            warehouses: warehouses.found()?,
            mode: mode?,
            profile: profile?,
            pacing: pacing?,
            entropy: entropy?,
            statement_timeout: statement_timeout?,
        })
    }

    /// The workload at the size of the plan, with its provenance recorded.
    pub(super) fn scale_workload(&mut self, full: &WorkloadChoice) -> WorkloadChoice {
        let mut scaled = full.clone();
        if self.scale != Scale::FULL {
            let warehouses = scale::count(full.warehouses(), self.scale);
            scaled.warehouses =
                full.warehouses.scaled(u64::from(warehouses), full.warehouses.value.to_string());
            if let PacingChoice::Open { rate_per_second, .. } = &mut scaled.pacing {
                let rate = rate_per_second.value / f64::from(self.scale.divisor);
                *rate_per_second = rate_per_second.scaled(rate, rate_per_second.value.to_string());
            }
        }
        let mut rows = vec![
            scaled.warehouses.setting(scaled.warehouses.value.to_string()),
            scaled.mode.setting(scaled.mode.value.as_str().to_string()),
            scaled.profile.setting(scaled.profile.value.as_str().to_string()),
        ];
        match &scaled.pacing {
            PacingChoice::Closed { key_think } => {
                rows.push(key_think.setting(key_think.value.to_string()));
            }
            PacingChoice::Open { rate_per_second, arrivals } => {
                rows.push(rate_per_second.setting(rate_per_second.value.to_string()));
                rows.push(arrivals.setting(arrivals.value.as_str().to_string()));
            }
        }
        rows.push(scaled.entropy.setting(scaled.entropy.value.to_string()));
        let timeout = &scaled.statement_timeout;
        rows.push(timeout.setting(exact::time(timeout.value)));
        self.provenance.extend(rows);
        scaled
    }

    /// What follows from a profile other than the specification.
    fn judge_profile(&mut self, profile: &Chosen<Profile>, mode: &Chosen<Mode>) {
        if profile.value == Profile::Specification {
            return;
        }
        if mode.value == Mode::Statements {
            profile.problem(
                &mut self.report,
                "conflict",
                format!("{} needs procedures", profile.called()),
                "the database draws the lines of an order itself".to_string(),
                "write mode = \"procedures\", or leave `mode` out".to_string(),
            );
        }
        let line = profile.line(self.text);
        self.finding(
            Severity::Warning,
            "hammerdb-like",
            "hammerdb-like: users follow HammerDB's declared deviations from TPC-C (customers and items drawn \
             uniformly, a random warehouse per user, independent types, its think times, whole payments, order \
             lines drawn by the database); the result is neither that of TPC-C nor of HammerDB",
            "leave `profile` out for the rules of the specification",
            line,
        );
    }

    fn pacing(&mut self) -> Option<PacingChoice> {
        let file = &self.file.workload.tpcc.pacing;
        let default = &self.defaults.workload.tpcc.pacing;
        if file.refused || file.closed.refused || file.open.refused {
            return None;
        }
        if let (Some(_), Some(open)) = (&file.closed.span, &file.open.span) {
            self.report.at(
                open,
                "conflict",
                "`workload.tpcc.pacing` names both `closed` and `open`",
                "users follow either the answers or a clock",
                "keep one of them",
            );
            return None;
        }
        if !file.open.is_present() {
            let key_think = [
                (Layer::File, &file.closed.key_think),
                (Layer::Default, &default.closed.key_think),
            ];
            let key_think = self.pick(&at("pacing.closed.key-think"), &key_think).found()?;
            return Some(PacingChoice::Closed { key_think });
        }
        let rate = self
            .pick(&at("pacing.open.rate-per-second"), &[(Layer::File, &file.open.rate_per_second)]);
        if rate.is_absent() {
            self.report.add(
                file.open.span.clone(),
                "missing-key",
                "the open loop has no rate",
                "`rate-per-second` is missing",
                "add for example rate-per-second = 100.0",
            );
        }
        let arrivals =
            [(Layer::File, &file.open.arrivals), (Layer::Default, &default.open.arrivals)];
        let arrivals = self.pick(&at("pacing.open.arrivals"), &arrivals).found();
        Some(PacingChoice::Open { rate_per_second: rate.found()?, arrivals: arrivals? })
    }
}

fn at(key: &str) -> String {
    format!("{PATH}.{key}")
}
