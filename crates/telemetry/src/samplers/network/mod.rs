//! Network of the host: traffic of real interfaces and of loopback, and TCP's signs of trouble.
//!
//! * **Reads** `/proc/net/dev`, `/proc/net/snmp`, `/proc/net/netstat`, one `pread` each.
//! * **Emits** bytes, packets, errors and drops of all interfaces except `lo` together (`net.*`), of
//!   `lo` (`loopback.*`), and counters of TCP (`tcp.*`).
//! * **Costs** about 72 us per tick.
//! * **Needs** nothing; TCP counters that a kernel does not know are not declared.
//!
//! The files are those of the collector's own network namespace. It does not look at single
//! connections.

mod parse;

pub(crate) use parse::{Interfaces, parse_interfaces, protocol_values};

use crate::declare::{SamplerDoc, SeriesDoc};
use crate::identity::{Identity, identify};
use crate::kernel_file::KernelFile;
use crate::source::{SampleError, Sampler};
use crate::targets::Roots;
use underlay_core::series::Layer;

/// The declaration.
pub(crate) const DOC: SamplerDoc = SamplerDoc {
    name: "network",
    layer: Layer::Host,
    reads: "/proc/net/{dev,snmp,netstat}",
    costs: "72 us",
    needs: "nothing",
    traps: &[
        "traffic of a bridge and of its members is counted in both: net.* is an upper bound on hosts with virtual networks",
        "a load driver on the same host talks over loopback or a Unix socket; the latter is counted nowhere",
    ],
    series: &[
        SeriesDoc::counter(
            "net.receive.bytes",
            "bytes",
            "received by all interfaces except loopback",
        ),
        SeriesDoc::counter(
            "net.receive.packets",
            "packets",
            "received by all interfaces except loopback",
        ),
        SeriesDoc::counter("net.receive.errors", "packets", "received broken"),
        SeriesDoc::counter("net.receive.drops", "packets", "received and dropped"),
        SeriesDoc::counter("net.transmit.bytes", "bytes", "sent by all interfaces except loopback"),
        SeriesDoc::counter(
            "net.transmit.packets",
            "packets",
            "sent by all interfaces except loopback",
        ),
        SeriesDoc::counter("net.transmit.errors", "packets", "not sent because of an error"),
        SeriesDoc::counter("net.transmit.drops", "packets", "dropped before sending"),
        SeriesDoc::counter("loopback.receive.bytes", "bytes", "through the loopback interface"),
        SeriesDoc::counter("loopback.receive.packets", "packets", "through the loopback interface"),
        SeriesDoc::counter("tcp.segments.received", "segments", "TCP segments received"),
        SeriesDoc::counter(
            "tcp.segments.sent",
            "segments",
            "TCP segments sent, without retransmissions",
        ),
        SeriesDoc::counter("tcp.segments.retransmitted", "segments", "TCP segments sent again"),
        SeriesDoc::gauge("tcp.established", "connections", "TCP connections established now"),
        SeriesDoc::counter("tcp.resets.sent", "segments", "TCP resets sent"),
        SeriesDoc::counter("tcp.timeouts", "events", "retransmission timers that expired"),
        SeriesDoc::counter(
            "tcp.lost_retransmits",
            "segments",
            "retransmissions that were lost again",
        ),
        SeriesDoc::counter(
            "tcp.listen.overflows",
            "events",
            "connections refused because a listen queue was full",
        ),
        SeriesDoc::counter("tcp.listen.drops", "events", "connections dropped while being set up"),
        SeriesDoc::counter(
            "tcp.backlog_drops",
            "segments",
            "segments dropped because a socket's backlog was full",
        ),
        SeriesDoc::counter(
            "tcp.zero_window",
            "events",
            "windows closed because the receiver did not read",
        ),
        SeriesDoc::counter("tcp.syn_retransmits", "segments", "connection requests sent again"),
    ],
};

/// Series number in [`DOC`] of the first TCP counter.
const TCP_FIRST: usize = 10;

/// File (0 snmp, 1 netstat), group and column of each TCP counter, in the order of the declaration.
const TCP: [(usize, &str, &str); 12] = [
    (0, "Tcp", "InSegs"),
    (0, "Tcp", "OutSegs"),
    (0, "Tcp", "RetransSegs"),
    (0, "Tcp", "CurrEstab"),
    (0, "Tcp", "OutRsts"),
    (1, "TcpExt", "TCPTimeouts"),
    (1, "TcpExt", "TCPLostRetransmit"),
    (1, "TcpExt", "ListenOverflows"),
    (1, "TcpExt", "ListenDrops"),
    (1, "TcpExt", "TCPBacklogDrop"),
    (1, "TcpExt", "TCPToZeroWindowAdv"),
    (1, "TcpExt", "TCPSynRetrans"),
];

/// A file of protocol counters and the columns wanted from it.
struct Protocols {
    file: KernelFile,
    columns: Vec<(&'static str, &'static str)>,
}

/// The sampler.
struct Network {
    identity: Identity,
    interfaces: Option<KernelFile>,
    protocols: Vec<Protocols>,
}

/// The sampler of the host under `roots`.
pub(crate) fn sampler(roots: &Roots) -> Box<dyn Sampler> {
    let folder = roots.proc.join("net");
    let mut series = Vec::new();
    let mut gaps = Vec::new();
    let interfaces =
        KernelFile::open(folder.join("dev")).map_err(|error| gaps.push(error.to_string())).ok();
    if interfaces.is_some() {
        series.extend(DOC.series[..TCP_FIRST].iter().map(SeriesDoc::spec));
    }
    let mut protocols = Vec::new();
    for (number, name) in ["snmp", "netstat"].into_iter().enumerate() {
        let opened = KernelFile::open(folder.join(name)).and_then(|mut file| {
            let text = file.text()?;
            let known = |(_, (of, group, column)): &(usize, &(usize, &str, &str))| {
                *of == number && !protocol_values(text, &[(*group, *column)])[0].is_nan()
            };
            let wanted: Vec<_> = TCP.iter().enumerate().filter(known).collect();
            series.extend(wanted.iter().map(|(index, _)| DOC.series[TCP_FIRST + index].spec()));
            let columns = wanted.iter().map(|(_, (_, group, column))| (*group, *column)).collect();
            Ok(Protocols { file, columns })
        });
        match opened {
            Ok(file) => protocols.push(file),
            Err(error) => gaps.push(error.to_string()),
        }
    }
    Box::new(Network { identity: Identity::with_gaps(&DOC, series, &gaps), interfaces, protocols })
}

impl Sampler for Network {
    identify!();

    fn sample(&mut self, values: &mut Vec<f64>) -> Result<(), SampleError> {
        if self.identity.series.is_empty() {
            return Err(self.identity.absence());
        }
        if let Some(file) = &mut self.interfaces {
            let Interfaces { others, loopback } = parse_interfaces(file.text()?);
            values.extend(others.map(|count| count as f64));
            values.extend(loopback[..2].iter().map(|count| *count as f64));
        }
        for protocol in &mut self.protocols {
            values.extend(protocol_values(protocol.file.text()?, &protocol.columns));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{DOC, TCP, TCP_FIRST, sampler};
    use crate::targets::Roots;
    use std::fs;

    #[test]
    fn the_order_of_values_is_the_order_of_series() {
        assert_eq!(TCP_FIRST + TCP.len(), DOC.series.len());
        let folder = tempfile::tempdir().expect("a temporary folder");
        let net = folder.path().join("net");
        fs::create_dir(&net).expect("made");
        let dev = "Inter-|   Receive\n face |bytes\n    lo: 7 8 0 0 0 0 0 0 7 8 0 0 0 0 0 0\n\
                   eth0: 1 2 3 4 0 0 0 0 5 6 9 10 0 0 0 0\n";
        fs::write(net.join("dev"), dev).expect("written");
        let snmp = "Tcp: InSegs RetransSegs\nTcp: 100 3\n";
        fs::write(net.join("snmp"), snmp).expect("written");
        fs::write(net.join("netstat"), "TcpExt: TCPTimeouts\nTcpExt: 44\n").expect("written");
        let roots = Roots { proc: folder.path().to_path_buf(), sys: folder.path().to_path_buf() };
        let mut sampler = sampler(&roots);
        let mut values = Vec::new();
        sampler.sample(&mut values).expect("sampled");
        let value = |name: &str| {
            let index = sampler.series().iter().position(|series| series.name == name);
            values[index.expect("declared")]
        };
        assert_eq!(values.len(), sampler.series().len());
        assert_eq!(value("net.receive.drops"), 4.0);
        assert_eq!(value("net.transmit.bytes"), 5.0);
        assert_eq!(value("loopback.receive.packets"), 8.0);
        assert_eq!(value("tcp.segments.retransmitted"), 3.0);
        assert_eq!(value("tcp.timeouts"), 44.0);
        assert!(!sampler.series().iter().any(|series| series.name == "tcp.syn_retransmits"));
    }
}
