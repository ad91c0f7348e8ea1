//! Facts about the host that go into every record.

use std::fs;
use std::path::Path;
use std::thread;

use rustix::system::uname;
use serde::Serialize;

use crate::cgroup::Hierarchies;

/// The host. Unknown facts are `None`; nothing is guessed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostFacts {
    /// Its name.
    pub hostname: String,
    /// `uname -r`.
    pub kernel: String,
    /// `uname -m`.
    pub architecture: String,
    /// `PRETTY_NAME` of os-release.
    pub distribution: Option<String>,
    /// As the kernel names it.
    pub cpu_model: Option<String>,
    /// CPUs that this process may run on.
    pub cpu_count: usize,
    /// Usable memory.
    pub memory_bytes: u64,
    /// Swap space.
    pub swap_bytes: u64,
    /// `docker`, `kvm`, `vmware`, ..., `hypervisor` when its name is not shown, else `none`.
    pub virtualization: String,
    /// `v1`, `v2`, `hybrid` or `none`.
    pub cgroup_version: String,
    /// `tsc`, `kvm-clock`, ...
    pub clocksource: Option<String>,
    /// The frequency governor of the first CPU.
    pub cpu_governor: Option<String>,
    /// Whether `/proc/pressure` can be read.
    pub psi_available: bool,
    /// `always`, `madvise` or `never`.
    pub transparent_hugepages: Option<String>,
}

/// Asks the kernel.
pub fn host_facts() -> HostFacts {
    let name = uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    HostFacts {
        hostname: text(name.nodename()),
        kernel: text(name.release()),
        architecture: text(name.machine()),
        distribution: distribution(),
        cpu_model: cpu_model(&cpuinfo),
        cpu_count: thread::available_parallelism().map_or(1, std::num::NonZero::get),
        memory_bytes: meminfo_bytes(&meminfo, "MemTotal").unwrap_or_default(),
        swap_bytes: meminfo_bytes(&meminfo, "SwapTotal").unwrap_or_default(),
        virtualization: virtualization(&cpuinfo),
        cgroup_version: Hierarchies::find().unwrap_or_default().version_word().to_string(),
        clocksource: line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        cpu_governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        psi_available: fs::read("/proc/pressure/cpu").is_ok(),
        transparent_hugepages: line("/sys/kernel/mm/transparent_hugepage/enabled")
            .and_then(|text| selected(&text)),
    }
}

/// The memory that programs may still use without swapping, in bytes.
pub fn available_memory_bytes() -> Option<u64> {
    meminfo_bytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable")
}

/// The first line of a file, if there is any text in it.
pub(crate) fn line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().next().map(str::trim).filter(|line| !line.is_empty()).map(str::to_string)
}

fn distribution() -> Option<String> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim_matches('"').to_string())
}

/// x86 says `model name`; most ARM kernels say nothing of use.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    value_of(cpuinfo, "model name").or_else(|| value_of(cpuinfo, "Model")).map(str::to_string)
}

fn value_of<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}

fn meminfo_bytes(meminfo: &str, key: &str) -> Option<u64> {
    let kib: u64 = value_of(meminfo, key)?.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// The innermost layer first: a container in a virtual machine is named a container.
fn virtualization(cpuinfo: &str) -> String {
    container()
        .or_else(|| line("/sys/hypervisor/type"))
        .or_else(|| machine_vendor().map(str::to_string))
        .or_else(|| has_hypervisor_flag(cpuinfo).then(|| "hypervisor".to_string()))
        .unwrap_or_else(|| "none".to_string())
}

fn container() -> Option<String> {
    if Path::new("/.dockerenv").exists() {
        return Some("docker".to_string());
    }
    if Path::new("/run/.containerenv").exists() {
        return Some("podman".to_string());
    }
    let environment = fs::read("/proc/1/environ").ok()?;
    environment
        .split(|byte| *byte == 0)
        .find_map(|entry| entry.strip_prefix(b"container="))
        .map(|name| String::from_utf8_lossy(name).into_owned())
}

fn machine_vendor() -> Option<&'static str> {
    let vendor = line("/sys/class/dmi/id/sys_vendor").unwrap_or_default();
    let product = line("/sys/class/dmi/id/product_name").unwrap_or_default();
    let both = format!("{vendor} {product}");
    [
        ("VMware", "vmware"),
        ("QEMU", "kvm"),
        ("KVM", "kvm"),
        ("VirtualBox", "virtualbox"),
        ("Virtual Machine", "hyper-v"),
        ("Google Compute Engine", "google"),
        ("Amazon EC2", "amazon"),
        ("Xen", "xen"),
        ("Firecracker", "firecracker"),
    ]
    .into_iter()
    .find(|(text, _)| both.contains(text))
    .map(|(_, name)| name)
}

fn has_hypervisor_flag(cpuinfo: &str) -> bool {
    value_of(cpuinfo, "flags")
        .is_some_and(|flags| flags.split_ascii_whitespace().any(|flag| flag == "hypervisor"))
}

/// `always [madvise] never` is `madvise`.
fn selected(choices: &str) -> Option<String> {
    let (_, rest) = choices.split_once('[')?;
    Some(rest.split_once(']')?.0.to_string())
}

#[cfg(test)]
mod tests {
    use super::{cpu_model, has_hypervisor_flag, host_facts, meminfo_bytes, selected};

    #[test]
    fn reads_what_the_kernel_writes() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Fast: CPU @ 2GHz\nflags\t\t: fpu hypervisor\n";
        assert_eq!(cpu_model(cpuinfo).as_deref(), Some("Fast: CPU @ 2GHz"));
        assert!(has_hypervisor_flag(cpuinfo));
        assert!(!has_hypervisor_flag("flags : fpu hypervisor_x\n"));
        assert_eq!(meminfo_bytes("MemTotal:       16 kB\n", "MemTotal"), Some(16_384));
        assert_eq!(meminfo_bytes("MemTotal:       16 kB\n", "SwapTotal"), None);
        assert_eq!(selected("always [madvise] never").as_deref(), Some("madvise"));
    }

    #[test]
    fn this_host_has_facts() {
        let facts = host_facts();
        assert!(!facts.kernel.is_empty());
        assert!(facts.memory_bytes > 1 << 26);
        assert!(facts.cpu_count > 0);
        assert!(["v1", "v2", "hybrid", "none"].contains(&facts.cgroup_version.as_str()));
    }
}
