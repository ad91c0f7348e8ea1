//! The actual time of I/O next to the modelled time, per class: how much of a database's waiting was caused by the host,
//! not by the device.
//!
//! The server knows the modelled time of each request, and the time that its client saw, with a calibrated mean for the
//! path. The kernel's block layer knows only the mean of the times that clients saw, but it includes requests that waited
//! for a CPU before they reached the server. If both have counted the same requests, the block layer's mean is used.
//! Otherwise the server's is: for requests that are split or not modelled, and for flushes, which the block layer also
//! counts as part of writes.
//!
//! Pure: readings are arguments. Reports decide what the sums mean for a result.

use underlay_core::IoClass;
use underlay_model::Operation;
use underlay_model::io_class::class_of;

use crate::control::{ModelledIo, VolumeStat};
use underlay_export::path_cost::{ByDirection, Counted};

/// The two counts of requests may differ by one in this many, because of requests in flight at a
/// reading.
const SAME_COUNT: u64 = 20;

/// The sums since the datastore was opened; the difference of two readings is the host's share of the time between.
#[derive(Clone, Debug, Default)]
pub(crate) struct IoTimes {
    classes: [ModelledIo; IoClass::ALL.len()],
    last: Vec<Reading>,
}

/// What both sides had counted of a volume.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    server: [ModelledIo; 4],
    block: ByDirection,
}

impl IoTimes {
    /// Takes over a reading of all volumes, in the same order every time: the server's, and the block layer's of each.
    ///
    /// # Panics
    /// If there are not as many of the one as of the other.
    pub(crate) fn observe(&mut self, server: &[VolumeStat], block: &[ByDirection]) {
        assert_eq!(server.len(), block.len(), "one block device per volume");
        let names: Vec<&str> = server.iter().map(|volume| volume.name.as_str()).collect();
        self.last.resize(server.len(), Reading::default());
        for ((volume, block), last) in server.iter().zip(block).zip(&mut self.last) {
            for operation in Operation::ALL {
                let index = operation.index();
                let now = volume.operations[index].modelled;
                let since = difference(now, last.server[index]);
                let seen = match operation {
                    Operation::Read => block.reads.since(last.block.reads),
                    Operation::Write => block.writes.since(last.block.writes),
                    Operation::Flush | Operation::Discard => Counted::default(),
                };
                last.server[index] = now;
                let class = class_of(&volume.name, operation, &names);
                let sum = &mut self.classes[class as usize];
                sum.ios += since.ios;
                sum.modelled_ns += since.modelled_ns;
                sum.actual_ns += actual_ns(since, seen);
            }
            last.block = *block;
        }
    }

    /// The sums of a class.
    pub(crate) fn of(&self, class: IoClass) -> ModelledIo {
        self.classes[class as usize]
    }
}

/// What the clients of `server.ios` requests got.
fn actual_ns(server: ModelledIo, block: Counted) -> u64 {
    let same = block.ios > 0 && block.ios.abs_diff(server.ios) * SAME_COUNT <= server.ios;
    if !same {
        return server.actual_ns;
    }
    (block.ns as f64 * server.ios as f64 / block.ios as f64) as u64
}

fn difference(now: ModelledIo, before: ModelledIo) -> ModelledIo {
    ModelledIo {
        ios: now.ios.saturating_sub(before.ios),
        modelled_ns: now.modelled_ns.saturating_sub(before.modelled_ns),
        actual_ns: now.actual_ns.saturating_sub(before.actual_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::IoTimes;
    use crate::control::{ModelledIo, VolumeStat};
    use underlay_core::IoClass;
    use underlay_export::path_cost::{ByDirection, Counted};

    fn io(ios: u64, modelled_us: u64, actual_us: u64) -> ModelledIo {
        let (modelled_ns, actual_ns) = (ios * modelled_us * 1_000, ios * actual_us * 1_000);
        ModelledIo { ios, modelled_ns, actual_ns }
    }

    /// Reads, writes and flushes of a volume.
    fn volume(name: &str, modelled: [ModelledIo; 3]) -> VolumeStat {
        let mut volume = VolumeStat { name: name.to_string(), ..VolumeStat::default() };
        for (operation, modelled) in volume.operations.iter_mut().zip(modelled) {
            operation.modelled = modelled;
        }
        volume
    }

    fn counted(ios: u64, mean_us: u64) -> Counted {
        Counted { ios, ns: ios * mean_us * 1_000 }
    }

    #[test]
    fn the_block_layer_sees_what_the_server_cannot() {
        let mut times = IoTimes::default();
        let volumes = [
            volume("data", [io(100, 80, 90), io(10, 30, 30), io(0, 0, 0)]),
            volume("wal", [io(0, 0, 0), io(50, 20, 22), io(50, 40, 45)]),
        ];
        let block = [
            ByDirection { reads: counted(101, 120), writes: counted(10, 50) },
            ByDirection { reads: counted(0, 0), writes: counted(50, 30) },
        ];
        times.observe(&volumes, &block);
        assert_eq!(times.of(IoClass::Read), io(100, 80, 120));
        assert_eq!(times.of(IoClass::DataWrite), io(10, 30, 50));
        // Flushes as the server saw them: 50 x 30 us and 50 x 45 us.
        let (modelled_ns, actual_ns) = (3_000_000, 3_750_000);
        assert_eq!(times.of(IoClass::Log), ModelledIo { ios: 100, modelled_ns, actual_ns });
        // Nothing new: nothing is added.
        times.observe(&volumes, &block);
        assert_eq!(times.of(IoClass::Read).ios, 100);
    }

    #[test]
    fn counts_that_do_not_belong_together_are_not_compared() {
        let mut times = IoTimes::default();
        let volumes = [volume("data", [io(100, 80, 90), io(80, 30, 35), io(0, 0, 0)])];
        // Timing was off for some reads; each write was split in two.
        times.observe(
            &volumes,
            &[ByDirection { reads: counted(150, 300), writes: counted(40, 70) }],
        );
        assert_eq!(times.of(IoClass::Read), io(100, 80, 90));
        assert_eq!(times.of(IoClass::Log), io(80, 30, 35), "the log lies among the data");
        // Another block device after a power cycle, whose counters begin at 0.
        let volumes = [volume("data", [io(200, 80, 90), io(80, 30, 35), io(0, 0, 0)])];
        times.observe(&volumes, &[ByDirection { reads: counted(90, 5), writes: counted(0, 0) }]);
        assert_eq!(times.of(IoClass::Read), io(200, 80, 90));
    }
}
