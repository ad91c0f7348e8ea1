//! Samples of a dilated run in design time: moments, and values that are spans of the host's time.
//!
//! Time on a processor stays as it is: a second of a processor is one in both, and a second of design time has as many
//! more of them as it is longer. What the load generator and the datastore report is in design time already.

use underlay_core::Dilation;
use underlay_core::series::SeriesSpec;
use underlay_record::conventions::{OF_DATABASE, source};
use underlay_telemetry::{Item, SourceInfo};

/// Translates what a collector sends.
pub struct DesignTime {
    dilation: Dilation,
    /// Per source: which of its values are spans of the host's time.
    spans: Vec<Vec<bool>>,
}

impl DesignTime {
    /// Of a run with this dilation.
    pub fn new(dilation: Dilation) -> DesignTime {
        DesignTime { dilation, spans: Vec::new() }
    }

    /// The same sample in design time.
    pub fn translate(&mut self, mut item: Item) -> Item {
        if !self.dilation.is_dilated() {
            return item;
        }
        let design = |at| self.dilation.design(at);
        match &mut item {
            Item::Source(index, info) => {
                if self.spans.len() <= *index {
                    self.spans.resize(*index + 1, Vec::new());
                }
                self.spans[*index] =
                    info.series.iter().map(|series| is_span(info, series)).collect();
            }
            Item::Tick { source, begin, end, values } => {
                (*begin, *end) = (design(*begin), design(*end));
                let factor = f64::from(self.dilation.factor());
                for (value, is_span) in values.iter_mut().zip(&self.spans[*source]) {
                    if *is_span {
                        *value /= factor;
                    }
                }
            }
            Item::Waits { begin, end, .. } => (*begin, *end) = (design(*begin), design(*end)),
            Item::Note { at, .. } => *at = design(*at),
        }
        item
    }
}

/// Whether a series counts the host's time, other than time on a processor.
fn is_span(info: &SourceInfo, series: &SeriesSpec) -> bool {
    if !matches!(series.unit.as_str(), "ns" | "us" | "ms") {
        return false;
    }
    // Of one of several databases its name comes first.
    match info.name.rsplit(OF_DATABASE).next().unwrap_or_default() {
        source::WAITS | source::POSTGRES | source::MARIADB | source::PRESSURE | source::BLOCK => {
            !series.name.contains("cpu_time")
        }
        source::PROCESS => series.name.ends_with(".run_queue"),
        source::CGROUP => {
            series.name == "cpu.throttled.time" || series.name.starts_with("pressure.")
        }
        source::UNDERLAY => series.name == "limit.throttled.time",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{DesignTime, is_span};
    use underlay_core::{Dilation, Nanos};
    use underlay_telemetry::{CATALOGUE, Item, SourceInfo, Status};

    #[test]
    fn every_declared_time_is_either_a_span_or_time_on_a_processor() {
        let mut others = Vec::new();
        for doc in &CATALOGUE {
            let info = SourceInfo {
                name: doc.name.to_string(),
                layer: doc.layer,
                status: Status::Available,
                series: doc.series.iter().map(|series| series.spec()).collect(),
            };
            let times = info.series.iter().filter(|s| ["ns", "us", "ms"].contains(&&*s.unit));
            let real = times.filter(|series| !is_span(&info, series));
            others.extend(real.map(|series| format!("{} {}", doc.name, series.name)));
        }
        assert_eq!(
            others,
            [
                "process <process>.on_cpu",
                "cgroup cpu.usage",
                "cgroup cpu.user",
                "cgroup cpu.system",
                "host_cpu cpu.<state>",
                "host_cpu cpu<n>.<state>",
                // What sampling costs this host.
                "underlay tier.<tier>.sweep",
                "underlay tier.<tier>.cpu",
                "underlay collector.cpu",
                "underlay process.cpu",
            ]
        );
    }

    #[test]
    fn moments_and_spans_are_translated_and_nothing_else() {
        let doc = CATALOGUE.iter().find(|doc| doc.name == "process").unwrap();
        let series = doc.series.iter().map(|series| series.spec()).collect::<Vec<_>>();
        let queue = series.iter().position(|s| s.name.ends_with(".run_queue")).unwrap();
        let info = SourceInfo {
            name: doc.name.to_string(),
            layer: doc.layer,
            status: Status::Available,
            series,
        };
        let width = info.series.len();
        let mut design = DesignTime::new(Dilation::new(4).unwrap());
        design.translate(Item::Source(2, info));
        let (begin, end) = (Nanos(4_000), Nanos(8_000));
        let tick = Item::Tick { source: 2, begin, end, values: vec![8.0; width] };
        let Item::Tick { begin, end, values, .. } = design.translate(tick) else { panic!() };
        assert_eq!((begin, end), (Nanos(1_000), Nanos(2_000)));
        for (index, value) in values.into_iter().enumerate() {
            assert_eq!(value, if index == queue { 2.0 } else { 8.0 }, "{index}");
        }
    }
}
