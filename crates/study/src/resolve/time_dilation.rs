//! Where time dilation has a meaning: what must be emulated, and what cannot be slowed down.

use underlay_core::Evidence;

use super::chosen::Chosen;
use super::resolver::Resolver;
use crate::background_plan::BackgroundPlan;
use crate::finding::Severity;
use crate::plan::{DesignPlan, EngineKind, TimeDilation};
use crate::timers::dilated_settings;

/// Refuses a dilation of what keeps its own time.
pub(super) fn check(
    resolver: &mut Resolver<'_>,
    dilation: Option<&Chosen<TimeDilation>>,
    designs: &[DesignPlan],
    background: &[BackgroundPlan],
) {
    let Some(dilation) = dilation.filter(|dilation| !dilation.value.is_none()) else { return };
    let mut refuse = |label: String, help: &str| {
        let message = format!("{} cannot be {}", dilation.called(), dilation.value);
        dilation.problem(&mut resolver.report, "conflict", message, label, help);
    };
    let real = designs.iter().find(|design| design.evidence != Evidence::Emulated);
    if let Some(design) = real {
        refuse(
            format!("the storage of design `{}` is real and keeps its own time", design.name),
            "remove it, or give every design an emulated datastore",
        );
    }
    if let Some(work) = background.first() {
        refuse(
            format!("the background work `{}` keeps its own time", work.name),
            "remove it, or study the background work in real time",
        );
    }
    if resolver.kind == EngineKind::Mysql {
        refuse(
            "MySQL does not say which thread works for a session".to_string(),
            "remove it, or use PostgreSQL or MariaDB",
        );
    }
    doubt_timers(resolver, dilation, designs);
}

/// Says which timers the server's own limits keep from being dilated.
fn doubt_timers(
    resolver: &mut Resolver<'_>,
    dilation: &Chosen<TimeDilation>,
    designs: &[DesignPlan],
) {
    let Some(factor) = dilation.value.factor() else { return };
    for design in designs {
        let dilated = dilated_settings(design.engine.kind, &design.engine.settings, factor);
        for setting in dilated.iter().filter(|setting| setting.is_limited) {
            resolver.finding(
                Severity::Note,
                "timer-not-dilated",
                format!(
                    "the server accepts {} only up to {}: in design time it is not the {} of the study",
                    setting.name, setting.server, setting.design
                ),
                "lower the time dilation, or change the setting",
                dilation.line(resolver.text),
            );
        }
    }
}
