//! The series that occur in any run, and all lines in the order of their layers.

use underlay_core::series::Layer;

use crate::analysis::{TimelineLine, TimelineSeries, Timelines};

/// The series that occur in any run, each with its position.
#[derive(Debug, Default)]
pub(crate) struct SeriesCatalogue {
    series: Vec<TimelineSeries>,
}

impl SeriesCatalogue {
    /// Where a series is; a new one comes last.
    pub(super) fn position(&mut self, wanted: TimelineSeries) -> usize {
        match self.series.iter().position(|known| known.name == wanted.name) {
            Some(position) => position,
            None => {
                self.series.push(wanted);
                self.series.len() - 1
            }
        }
    }
}

/// All lines, with their series in the order of the layers from the user down.
pub(crate) fn assemble(catalogue: SeriesCatalogue, mut lines: Vec<TimelineLine>) -> Timelines {
    let depth = |series: &TimelineSeries| {
        Layer::ALL.iter().position(|layer| layer.as_str() == series.layer)
    };
    let mut order: Vec<usize> = (0..catalogue.series.len()).collect();
    order.sort_by_key(|position| (depth(&catalogue.series[*position]), *position));
    let mut new_position = vec![0; order.len()];
    for (new, old) in order.iter().enumerate() {
        new_position[*old] = new;
    }
    lines.iter_mut().for_each(|line| line.series = new_position[line.series]);
    let series = order.iter().map(|old| catalogue.series[*old].clone()).collect();
    Timelines { series, lines }
}
