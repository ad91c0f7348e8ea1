//! Which block device a volume is on, which devices are disks, and notes on them.

use crate::targets::Roots;
use rustix::fs::{major, minor};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Device name, as in diskstats, of a volume given by a device or by any absolute path on it.
pub(super) fn of_place(roots: &Roots, place: &str) -> Result<String, String> {
    if let Some(device) = place.strip_prefix("/dev/") {
        return of_node(place, device);
    }
    if !place.starts_with('/') {
        return Ok(place.to_string());
    }
    let metadata = fs::metadata(place).map_err(|error| format!("{place}: {error}"))?;
    of_number(roots, metadata.dev(), place)
}

/// Device nodes may be links (`/dev/disk/by-id/...`, `/dev/mapper/...`).
fn of_node(place: &str, device: &str) -> Result<String, String> {
    let real = fs::canonicalize(place).ok();
    let name = real.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
    match name {
        Some(name) => Ok(name.to_string()),
        None if !device.contains('/') => Ok(device.to_string()),
        None => Err(format!("{place} does not exist")),
    }
}

fn of_number(roots: &Roots, device: u64, place: &str) -> Result<String, String> {
    let number = format!("{}:{}", major(device), minor(device));
    let link = fs::read_link(roots.sys.join("dev/block").join(&number)).map_err(|_| {
        format!("{place} is on a file system without a block device of its own ({number})")
    })?;
    let name = link.file_name().and_then(|name| name.to_str());
    name.map(str::to_string).ok_or(format!("{number} has no name in /sys/dev/block"))
}

/// Whether it is a whole device that can be the hardware beneath: no partition, nothing made of
/// memory or of files.
pub(super) fn is_disk(roots: &Roots, device: &str) -> bool {
    const NOT_HARDWARE: [&str; 6] = ["loop", "ram", "zram", "fd", "sr", "nbd"];
    !NOT_HARDWARE.iter().any(|prefix| device.starts_with(prefix))
        && roots.sys.join("block").join(device).is_dir()
}

/// Properties of a device's queue, for the record: they decide how its numbers compare.
pub(super) fn facts(roots: &Roots, device: &str) -> String {
    const PROPERTIES: [&str; 9] = [
        "scheduler",
        "nr_requests",
        "wbt_lat_usec",
        "write_cache",
        "fua",
        "rotational",
        "logical_block_size",
        "physical_block_size",
        "iostats",
    ];
    let mut text = format!("device {device}");
    let Some(queue) = queue_folder(roots, device) else {
        return text;
    };
    for property in PROPERTIES {
        if let Ok(value) = fs::read_to_string(queue.join(property)) {
            text.push_str(&format!(", {property} {}", chosen(value.trim())));
        }
    }
    text
}

/// A partition has the queue of its disk.
fn queue_folder(roots: &Roots, device: &str) -> Option<std::path::PathBuf> {
    let whole = roots.sys.join("block").join(device).join("queue");
    if whole.is_dir() {
        return Some(whole);
    }
    let partition = fs::canonicalize(roots.sys.join("class/block").join(device)).ok()?;
    let queue = partition.parent()?.join("queue");
    queue.is_dir().then_some(queue)
}

/// `none [mq-deadline] kyber` means mq-deadline.
fn chosen(value: &str) -> &str {
    value
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or(value, |(chosen, _)| chosen)
}

#[cfg(test)]
mod tests {
    use super::{chosen, of_place};
    use crate::targets::Roots;

    #[test]
    fn the_chosen_scheduler_is_named() {
        assert_eq!(chosen("none [mq-deadline] kyber"), "mq-deadline");
        assert_eq!(chosen("none"), "none");
        assert_eq!(chosen("broken ["), "broken [");
    }

    #[test]
    fn places_without_device_say_why() {
        let roots = Roots::system();
        assert!(of_place(&roots, "/proc/self").expect_err("no device").contains("/proc/self"));
        assert!(of_place(&roots, "/nowhere/at/all").expect_err("absent").contains("/nowhere"));
        assert!(of_place(&roots, "/dev/mapper/nothing").is_err());
        assert_eq!(of_place(&roots, "loop3").expect("as given"), "loop3");
    }
}
