//! The counters of an emulated datastore as declared series, and their values in the same order.

use underlay_core::IoClass;
use underlay_core::series::SeriesSpec;
use underlay_model::Operation;

use super::io_times::IoTimes;
use crate::control::{Condition, CopyStat, Stat};

/// A device, as far as it decides what is declared.
pub(crate) struct DeviceSeries {
    pub(crate) name: String,
    pub(crate) is_mirrored: bool,
}

/// What is declared for these volumes and devices, and for the link before them.
pub(crate) fn declare(
    volumes: &[&str],
    devices: &[DeviceSeries],
    has_link: bool,
) -> Vec<SeriesSpec> {
    let mut series = Vec::new();
    for volume in volumes {
        for operation in Operation::ALL {
            let name = |what: &str| format!("volume.{volume}.{}.{what}", operation.as_str());
            series.push(SeriesSpec::counter(name("ios"), "ios"));
            series.push(SeriesSpec::counter(name("bytes"), "bytes"));
            series.push(SeriesSpec::counter(name("latency"), "ns"));
            series.push(SeriesSpec::counter(name("queue"), "ns"));
        }
        series.push(SeriesSpec::gauge(format!("volume.{volume}.in-flight"), "ios"));
        series.push(SeriesSpec::gauge(format!("volume.{volume}.volatile"), "bytes"));
    }
    for DeviceSeries { name, is_mirrored } in devices {
        series.push(SeriesSpec::gauge(format!("device.{name}.buffer.fill"), "bytes"));
        series.push(SeriesSpec::counter(format!("device.{name}.buffer.drained"), "bytes"));
        if *is_mirrored {
            // Copies that are lost or incomplete, and what these must still be given.
            series.push(SeriesSpec::gauge(format!("device.{name}.copies.missing"), "copies"));
            series.push(SeriesSpec::gauge(format!("device.{name}.resync.left"), "bytes"));
        }
    }
    if has_link {
        series.push(SeriesSpec::counter("link.read.busy", "ns"));
        series.push(SeriesSpec::counter("link.write.busy", "ns"));
    }
    series.push(SeriesSpec::counter("server.delayed", "ios"));
    series.push(SeriesSpec::counter("server.host-limited", "ios"));
    series.push(SeriesSpec::counter("server.lateness", "ns"));
    series.push(SeriesSpec::counter("server.errors", "ios"));
    // What emulating costs the host.
    series.push(SeriesSpec::counter("server.cpu", "ns"));
    // Requests that a model was asked about: what it said, and what their clients got.
    for class in IoClass::ALL {
        let name = |what: &str| format!("io.{}.{what}", class.as_str());
        series.push(SeriesSpec::counter(name("ios"), "ios"));
        series.push(SeriesSpec::counter(name("modelled"), "ns"));
        series.push(SeriesSpec::counter(name("actual"), "ns"));
    }
    series
}

/// The values of [`declare`].
pub(crate) fn values(stat: &Stat, io_times: &IoTimes) -> Vec<f64> {
    let mut values = Vec::new();
    for volume in &stat.volumes {
        for operation in &volume.operations {
            let counters =
                [operation.ios, operation.bytes, operation.latency_ns, operation.queue_ns];
            values.extend(counters.map(|value| value as f64));
        }
        values.extend([volume.in_flight as f64, volume.volatile_bytes as f64]);
    }
    for device in &stat.devices {
        values.extend([device.buffer_fill_bytes as f64, device.drained_bytes as f64]);
        if !device.copies.is_empty() {
            let is_missing =
                |copy: &&CopyStat| copy.condition == Condition::Lost || copy.missed_bytes > 0;
            let missing = device.copies.iter().filter(is_missing).count();
            let left: u64 = device.copies.iter().map(|copy| copy.missed_bytes).sum();
            values.extend([missing as f64, left as f64]);
        }
    }
    if let Some(link) = &stat.link {
        values.extend([link.read_busy_ns as f64, link.write_busy_ns as f64]);
    }
    let server = [stat.delayed, stat.host_limited, stat.lateness_ns, stat.errors, stat.cpu_ns];
    values.extend(server.map(|value| value as f64));
    for class in IoClass::ALL {
        let io = io_times.of(class);
        values.extend([io.ios, io.modelled_ns, io.actual_ns].map(|value| value as f64));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::{DeviceSeries, IoTimes, declare, values};
    use crate::control::{Condition, CopyStat, DeviceStat, LinkStat, ModelledIo, Stat, VolumeStat};
    use underlay_export::path_cost::ByDirection;

    #[test]
    fn every_declared_series_has_a_value_in_its_place() {
        let mut stat = Stat {
            volumes: vec![VolumeStat::default(); 2],
            devices: vec![DeviceStat {
                name: "nvme".to_string(),
                condition: Condition::Healthy,
                free_bytes: 0,
                buffer_fill_bytes: 0,
                drained_bytes: 0,
                copies: vec![
                    CopyStat { condition: Condition::Healthy, missed_bytes: 0 },
                    CopyStat { condition: Condition::Healthy, missed_bytes: 4 },
                ],
            }],
            link: Some(LinkStat { read_busy_ns: 6, write_busy_ns: 8 }),
            lateness_ns: 9,
            cpu_ns: 11,
            ..Stat::default()
        };
        stat.volumes[1].name = "wal".to_string();
        stat.volumes[1].operations[1].bytes = 7;
        stat.volumes[1].operations[1].modelled =
            ModelledIo { ios: 2, modelled_ns: 60, actual_ns: 75 };
        stat.volumes[1].in_flight = 3;
        stat.devices[0].drained_bytes = 5;
        let nvme = DeviceSeries { name: "nvme".to_string(), is_mirrored: true };
        let series = declare(&["data", "wal"], &[nvme], true);
        let mut io_times = IoTimes::default();
        io_times.observe(&stat.volumes, &[ByDirection::default(); 2]);
        let values = values(&stat, &io_times);
        assert_eq!(series.len(), values.len());
        let value = |name: &str| {
            values[series.iter().position(|series| series.name == name).expect("declared")]
        };
        assert_eq!(value("volume.wal.write.bytes"), 7.0);
        assert_eq!(value("volume.wal.in-flight"), 3.0);
        assert_eq!(value("device.nvme.buffer.drained"), 5.0);
        assert_eq!(value("device.nvme.copies.missing"), 1.0);
        assert_eq!(value("device.nvme.resync.left"), 4.0);
        assert_eq!((value("link.read.busy"), value("link.write.busy")), (6.0, 8.0));
        assert_eq!(value("server.lateness"), 9.0);
        assert_eq!(value("server.cpu"), 11.0);
        assert_eq!((value("io.log.modelled"), value("io.log.actual")), (60.0, 75.0));
        assert_eq!(value("io.data-write.actual"), 0.0);
        assert_eq!(value("volume.data.write.bytes"), 0.0);
    }
}
