//! Announces each change of a source once: its status, its series, a failure, a recovery.

use crate::common::{Common, SinkClosed, send};
use crate::item::Item;
use crate::source::{SampleError, SourceInfo, Status};

/// The last announcement about one source.
#[derive(Debug)]
pub(crate) struct Announcer {
    number: usize,
    announced: Option<(Status, usize)>,
    failing: bool,
}

/// Whether an announcement named other series than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Series {
    Same,
    Changed,
}

impl Announcer {
    /// Nothing was announced yet about source `number`.
    pub(crate) fn new(number: usize) -> Announcer {
        Announcer { number, announced: None, failing: false }
    }

    /// Number of the source.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Announces the source if its status or its number of series changed.
    pub(crate) fn source(
        &mut self,
        common: &Common,
        info: impl FnOnce() -> SourceInfo,
        status: &Status,
        width: usize,
    ) -> Result<Series, SinkClosed> {
        let announced_width = self.announced.as_ref().map(|(_, width)| *width);
        if self.announced.as_ref().is_some_and(|(announced, _)| announced == status)
            && announced_width == Some(width)
        {
            return Ok(Series::Same);
        }
        self.announced = Some((status.clone(), width));
        send(common, Item::Source(self.number, info()))?;
        Ok(if announced_width == Some(width) { Series::Same } else { Series::Changed })
    }

    /// Notes the first failure of a row of failures, and the recovery. While the source is absent its
    /// status is enough.
    pub(crate) fn outcome(
        &mut self,
        common: &Common,
        status: &Status,
        outcome: &Result<(), SampleError>,
    ) -> Result<(), SinkClosed> {
        let fails = outcome.is_err() && !matches!(status, Status::Absent(_));
        let was_failing = std::mem::replace(&mut self.failing, fails);
        match outcome {
            Err(error) if fails && !was_failing => self.note(common, error.to_string()),
            Ok(()) if was_failing => self.note(common, "works again".to_string()),
            _ => Ok(()),
        }
    }

    /// A note about the source.
    pub(crate) fn note(&self, common: &Common, text: String) -> Result<(), SinkClosed> {
        send(common, Item::Note { at: common.now(), source: Some(self.number), text })
    }
}

#[cfg(test)]
mod tests {
    use super::{Announcer, Series};
    use crate::common::Common;
    use crate::item::Item;
    use crate::source::{SampleError, SourceInfo, Status};
    use crate::stop::StopSignal;
    use std::sync::{Arc, mpsc};
    use std::time::{Duration, Instant};
    use underlay_core::series::Layer;

    #[test]
    fn each_change_is_announced_once() {
        let (sink, items) = mpsc::channel();
        let common = Common {
            origin: Instant::now(),
            interval: Duration::from_secs(1),
            stop: Arc::new(StopSignal::default()),
            sink,
        };
        let info = |status: &Status| SourceInfo {
            name: "x".to_string(),
            layer: Layer::Host,
            status: status.clone(),
            series: Vec::new(),
        };
        let mut announcer = Announcer::new(3);
        let absent = Status::Absent("why".to_string());
        let fails = || Err(SampleError::Database("gone".to_string()));
        for _ in 0..2 {
            announcer.source(&common, || info(&absent), &absent, 0).expect("a listener");
            announcer.outcome(&common, &absent, &fails()).expect("a listener");
        }
        let works = Status::Available;
        let change = announcer.source(&common, || info(&works), &works, 2).expect("a listener");
        assert_eq!(change, Series::Changed);
        for outcome in [Ok(()), fails(), fails(), Ok(()), Ok(())] {
            let same = announcer.source(&common, || info(&works), &works, 2).expect("a listener");
            assert_eq!(same, Series::Same);
            announcer.outcome(&common, &works, &outcome).expect("a listener");
        }
        let told: Vec<String> = items
            .try_iter()
            .map(|item| match item {
                Item::Source(3, info) => info.status.as_str().to_string(),
                Item::Note { source: Some(3), text, .. } => text,
                other => panic!("unexpected {other:?}"),
            })
            .collect();
        assert_eq!(told, ["absent", "available", "database does not answer: gone", "works again"]);
    }
}
