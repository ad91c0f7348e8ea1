//! What differs between the members of a family of clusters, as it is written: `hosts=3..8`,
//! `cache-device=p4800x-375,dc1500m-960`.

use std::str::FromStr;
use underlay_core::words;

words! {
    /// A quantity of a cluster.
    pub enum Varied: "quantity to vary" {
        /// Hosts.
        Hosts = "hosts",
        /// Disk groups of each host.
        DiskGroups = "disk-groups",
        /// Capacity devices of each disk group.
        CapacityDrives = "capacity-drives",
        /// The cache device of each disk group.
        CacheDevice = "cache-device",
        /// The capacity devices of each disk group.
        CapacityDevice = "capacity-device",
        /// Failures that the volumes tolerate.
        Failures = "ftt",
    }
}

impl Varied {
    /// The least and the greatest number; `None` of devices, which have names.
    pub const fn range(self) -> Option<(u32, u32)> {
        match self {
            Varied::Hosts => Some((1, 64)),
            Varied::DiskGroups => Some((1, 5)),
            Varied::CapacityDrives => Some((1, 7)),
            Varied::Failures => Some((0, 2)),
            Varied::CacheDevice | Varied::CapacityDevice => None,
        }
    }
}

/// Values of a quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// Numbers, ascending, each once.
    Numbers(Vec<u32>),
    /// Names of devices, each once.
    Devices(Vec<String>),
}

/// A quantity and the values it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vary {
    /// Which.
    pub what: Varied,
    /// Its values, one or more.
    pub values: Values,
}

/// A text that says no such thing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VaryError {
    /// No quantity, or none that can be varied.
    #[error(
        "`{0}` is not a known variation; write hosts, disk-groups, capacity-drives or ftt with numbers (hosts=3..8), \
         cache-device or capacity-device with names"
    )]
    Quantity(String),
    /// Values of the wrong kind.
    #[error("`{text}`: {what} takes {least} to {most}, as a range (3..8) or a list (3,4,6)")]
    Numbers {
        /// What was written.
        text: String,
        /// The quantity.
        what: Varied,
        /// Its least value.
        least: u32,
        /// Its greatest.
        most: u32,
    },
    /// No name.
    #[error("`{0}` names no device; `underlay list devices` lists them")]
    NoDevice(String),
}

impl FromStr for Vary {
    type Err = VaryError;

    fn from_str(text: &str) -> Result<Vary, VaryError> {
        let quantity = || VaryError::Quantity(text.to_string());
        let (what, values) = text.split_once('=').ok_or_else(quantity)?;
        let what: Varied = what.trim().parse().map_err(|_| quantity())?;
        let values = match what.range() {
            Some((least, most)) => {
                let refused = || VaryError::Numbers { text: text.to_string(), what, least, most };
                let numbers = numbers(values).ok_or_else(refused)?;
                if numbers.iter().any(|number| !(least..=most).contains(number)) {
                    return Err(refused());
                }
                Values::Numbers(numbers)
            }
            None => {
                let mut names: Vec<String> = Vec::new();
                for name in values.split(',').map(str::trim) {
                    if name.is_empty() {
                        return Err(VaryError::NoDevice(text.to_string()));
                    }
                    if !names.iter().any(|known| known == name) {
                        names.push(name.to_string());
                    }
                }
                Values::Devices(names)
            }
        };
        Ok(Vary { what, values })
    }
}

/// Both ends of a range are part of it.
fn numbers(text: &str) -> Option<Vec<u32>> {
    let number = |text: &str| text.trim().parse::<u32>().ok();
    let mut all: Vec<u32> = match text.split_once("..") {
        // A range is at most as long as a cluster has hosts; what is out of range is refused later.
        Some((from, to)) => (number(from)?..=number(to)?.min(1_000)).collect(),
        None => text.split(',').map(number).collect::<Option<_>>()?,
    };
    all.sort_unstable();
    all.dedup();
    (!all.is_empty()).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::{Values, Varied, Vary};

    #[test]
    fn ranges_and_lists_are_read() {
        let read = |text: &str| text.parse::<Vary>().expect("a quantity");
        let hosts = |numbers: &[u32]| Vary {
            what: Varied::Hosts,
            values: Values::Numbers(numbers.to_vec()),
        };
        assert_eq!(read("hosts=3..5"), hosts(&[3, 4, 5]));
        assert_eq!(read("hosts = 6, 3,3"), hosts(&[3, 6]));
        assert_eq!(
            read("cache-device=p4800x-375,dc1500m-960").values,
            Values::Devices(vec!["p4800x-375".to_string(), "dc1500m-960".to_string()])
        );
    }

    #[test]
    fn what_cannot_be_varied_is_refused_with_a_remedy() {
        let refused = |text: &str| text.parse::<Vary>().expect_err(text).to_string();
        assert!(refused("hosts").contains("write hosts, disk-groups"));
        assert!(refused("racks=2").contains("is not a known variation"));
        assert!(refused("hosts=5..3").contains("takes 1 to 64"));
        assert!(refused("capacity-drives=2..9").contains("takes 1 to 7"));
        assert!(refused("ftt=one").contains("takes 0 to 2"));
        assert!(refused("cache-device=a,,b").contains("names no device"));
    }
}
