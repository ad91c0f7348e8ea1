//! Correction of a stored state after an unclean shutdown, by what the components are found to hold.
//!
//! What a component holds changes with every write and is not stored each time (see [`super::state`]). A row that holds data
//! but is believed to be empty would be zeroed by the next rebuild. So the driver surveys the components before it restores
//! the cluster with [`super::Restart::Unclean`].

use super::ids::ComponentId;
use super::state::{ClusterState, ComponentRecord};

/// What was found of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Its store, and the bytes in which it holds something: first byte, number of bytes. May include more.
    Holds(Vec<(u64, u64)>),
    /// Nothing: its store is gone, and with it whatever it held.
    Lost,
}

impl ClusterState {
    /// Corrects what is remembered of a component; without effect if there is none of that number.
    ///
    /// A component that was lost is stale as a whole: it is copied from the others, and blocks that no other
    /// member holds are answered with an error.
    pub fn correct(&mut self, component: ComponentId, found: &Found) {
        let Some((record, unit)) = self.record_of(component) else { return };
        match found {
            Found::Holds(ranges) => record.written = rows(ranges, unit, record.length / unit),
            Found::Lost => {
                record.written = Vec::new();
                record.stale = vec![(0, record.length / unit)];
                record.active = false;
            }
        }
    }

    /// Says in which bytes of a component blocks are known to be lost, although nothing is stored that tells: first byte, number of
    /// bytes, ascending. Where members may differ, another one is taken for the truth if it can be.
    pub fn distrust(&mut self, component: ComponentId, ranges: &[(u64, u64)]) {
        if let Some((record, unit)) = self.record_of(component) {
            record.unsure = rows(ranges, unit, record.length / unit);
        }
    }

    /// What is remembered of a component, and the length of a row.
    fn record_of(&mut self, component: ComponentId) -> Option<(&mut ComponentRecord, u64)> {
        let unit = self.volumes.first().map_or(0, |volume| u64::from(volume.present.unit_bytes));
        let records = &mut self.components;
        let record = records.iter_mut().find(|record| record.component == component.0)?;
        (unit > 0).then_some((record, unit))
    }
}

/// The rows that ranges of bytes touch, as runs; ranges ascend.
fn rows(ranges: &[(u64, u64)], unit: u64, limit: u64) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for (offset, length) in ranges.iter().filter(|(_, length)| *length > 0) {
        let (first, end) = (offset / unit, (offset + length).div_ceil(unit).min(limit));
        match runs.last_mut() {
            Some((start, count)) if *start + *count >= first => *count = (end - *start).max(*count),
            _ if end > first => runs.push((first, end - first)),
            _ => {}
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::rows;

    #[test]
    fn ranges_of_bytes_become_runs_of_rows() {
        let ranges = [(0, 1), (90, 20), (110, 5), (300, 100), (399, 1), (600, 500)];
        assert_eq!(rows(&ranges, 100, 7), [(0, 2), (3, 1), (6, 1)]);
        assert!(rows(&[(700, 100), (5, 0)], 100, 7).is_empty());
    }
}
