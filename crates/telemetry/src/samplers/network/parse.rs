//! The texts of `/proc/net/dev`, `snmp` and `netstat`. Pure.

/// Counters of one or several interfaces: receive bytes, packets, errors, drops, then the same for
/// transmit.
pub(crate) type Traffic = [u64; 8];

/// Columns of an interface line that are kept.
const COLUMNS: [usize; 8] = [0, 1, 2, 3, 8, 9, 10, 11];

/// Traffic of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interfaces {
    /// All interfaces except loopback together.
    pub(crate) others: Traffic,
    /// Loopback.
    pub(crate) loopback: Traffic,
}

/// Reads `/proc/net/dev`; lines that are not an interface are left out.
pub(crate) fn parse_interfaces(text: &str) -> Interfaces {
    let mut interfaces = Interfaces::default();
    for line in text.lines() {
        let Some((name, columns)) = line.split_once(':') else { continue };
        let sum = match name.trim() {
            "lo" => &mut interfaces.loopback,
            _ => &mut interfaces.others,
        };
        for (index, column) in columns.split_ascii_whitespace().enumerate() {
            let kept = COLUMNS.iter().position(|wanted| *wanted == index);
            if let (Some(slot), Ok(count)) = (kept, column.parse::<u64>()) {
                sum[slot] = sum[slot].wrapping_add(count);
            }
        }
    }
    interfaces
}

/// The values of columns (group, name) in a text where each group has a line of names and a line of
/// numbers; `NAN` where there is none.
pub(crate) fn protocol_values(text: &str, wanted: &[(&str, &str)]) -> Vec<f64> {
    let mut values = vec![f64::NAN; wanted.len()];
    let mut lines = text.lines();
    while let (Some(names), Some(numbers)) = (lines.next(), lines.next()) {
        let (Some((group, names)), Some((same, numbers))) =
            (names.split_once(':'), numbers.split_once(':'))
        else {
            continue;
        };
        if group != same || !wanted.iter().any(|(of, _)| *of == group) {
            continue;
        }
        let pairs = names.split_ascii_whitespace().zip(numbers.split_ascii_whitespace());
        for (name, number) in pairs {
            let index = wanted.iter().position(|(of, column)| *of == group && *column == name);
            if let (Some(index), Ok(number)) = (index, number.parse::<u64>()) {
                values[index] = number as f64;
            }
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::{parse_interfaces, protocol_values};
    use proptest::prelude::proptest;

    const DEV: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:    3193      29    0    0    0     0          0         0     3193      29    0    0    0     0       0          0
  ifb0:       1       2    3    4    0     0          0         0        5       6    7    8    0     0       0          0
  eth0:306044976    7451    0    0    0     0          0         0   388861    4197    0    0    0     0       0          0
";

    #[test]
    fn loopback_is_apart_and_others_are_added_up() {
        let interfaces = parse_interfaces(DEV);
        assert_eq!(interfaces.loopback, [3193, 29, 0, 0, 3193, 29, 0, 0]);
        assert_eq!(interfaces.others, [306044977, 7453, 3, 4, 388866, 4203, 7, 8]);
    }

    #[test]
    fn columns_are_found_by_name_and_group() {
        let text = "Ip: InReceives\nIp: 5\nTcp: RtoMin InSegs MaxConn\nTcp: 200 7415 -1\n\
                    UdpLite: InSegs\nUdpLite: 9\n";
        let wanted =
            [("Tcp", "InSegs"), ("Tcp", "MaxConn"), ("Tcp", "Absent"), ("Ip", "InReceives")];
        let values = protocol_values(text, &wanted);
        assert_eq!(values[0], 7415.0);
        assert!(values[1].is_nan(), "a negative number is not a counter");
        assert!(values[2].is_nan());
        assert_eq!(values[3], 5.0);
    }

    #[test]
    fn cut_off_texts_leave_missing_values() {
        assert!(protocol_values("Tcp: InSegs\nTcp:", &[("Tcp", "InSegs")])[0].is_nan());
        assert!(protocol_values("Tcp: InSegs", &[("Tcp", "InSegs")])[0].is_nan());
        assert_eq!(parse_interfaces("eth0: 1 2").others[..3], [1, 2, 0]);
    }

    proptest! {
        #[test]
        fn never_panics(text in "(Tcp|TcpExt|lo|eth0)?:? ?[A-Za-z0-9: \n-]{0,200}") {
            let _any = parse_interfaces(&text);
            let _any = protocol_values(&text, &[("Tcp", "InSegs")]);
        }
    }
}
