//! Where time dilation has a meaning: what must be emulated, and what cannot be slowed down.

use underlay_core::{Dilation, Evidence};

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

/// Says which timers the server's own limits keep from being dilated. What `auto` will choose is
/// not known yet: its largest factor counts.
fn doubt_timers(
    resolver: &mut Resolver<'_>,
    dilation: &Chosen<TimeDilation>,
    designs: &[DesignPlan],
) {
    let (factor, condition, remedy) = match dilation.value {
        TimeDilation::Factor(factor) => {
            (factor, String::new(), "lower the time dilation, or change the setting")
        }
        TimeDilation::Auto => {
            let most = TimeDilation::AUTO_MAX;
            (
                Dilation::new(most).expect("it is in the range of factors"),
                format!("`auto` may choose a time dilation of up to {most}. At {most} "),
                "write a smaller time dilation instead of `auto`, or change the setting",
            )
        }
    };
    for design in designs {
        let dilated = dilated_settings(design.engine.kind, &design.engine.settings, factor);
        for setting in dilated.iter().filter(|setting| setting.is_limited) {
            resolver.finding(
                Severity::Note,
                "timer-not-dilated",
                format!(
                    "{condition}the server limits {} to {}: in design time it is not the {} of \
                     the study",
                    setting.name, setting.server, setting.design
                ),
                remedy,
                dilation.line(resolver.text),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{HostView, PlanOptions, Source, check};

    /// Doubts about timers where `bgwriter_delay` is 2 s; the server accepts at most 10 s.
    fn doubts(time_dilation: &str) -> Vec<String> {
        let text = format!(
            r#"
name = "dilated"
question = "Which timers are dilated?"
[engine]
memory-limit = "512MiB"
[engine.settings]
shared_buffers = "128MB"
bgwriter_delay = "2s"
[volumes]
data = {{ capacity = "4GiB" }}
wal = {{ capacity = "2GiB" }}
backup = {{ capacity = "2GiB" }}
[[design]]
use = "kingston-nvme"
[workload.tpcc]
warehouses = 8
[procedure]
users = [4]
time-dilation = {time_dilation}
"#
        );
        let source = Source { name: "dilated.toml".to_string(), text };
        let (_, plan) = check(&source, &PlanOptions::default(), &HostView::unlimited())
            .expect("the study is sound");
        let of_timers = plan.findings.iter().filter(|finding| finding.code == "timer-not-dilated");
        of_timers.map(|finding| finding.text.clone()).collect()
    }

    #[test]
    fn timers_beyond_the_servers_limits_are_named() {
        let limited = "the server limits bgwriter_delay to 10000: in design time it is not the \
                       2s of the study";
        assert_eq!(doubts("4"), Vec::<String>::new());
        assert_eq!(doubts("8"), [limited]);
        let conditional = format!("`auto` may choose a time dilation of up to 16. At 16 {limited}");
        assert_eq!(doubts("\"auto\""), [conditional]);
    }
}
