//! What the planner needs to know about this host, looked up once: the planner itself is pure.

use std::path::Path;
use underlay_core::Bytes;
use underlay_database::managed::Install;
use underlay_database::mariadb::Flavour;
use underlay_database::{mariadb, postgres};
use underlay_datastore::check_host;
use underlay_host::{Capability, capabilities, free_space, host_facts};
use underlay_study::{
    DatastoreKind, DirectoryState, Enforcement, EngineKind, HostView, InstalledServer, Plan,
};

use crate::stop::{Stop, chain};

/// Refuses a plan with designs that this host cannot emulate, before anything is loaded for them.
pub fn require_emulation(plan: &Plan) -> Result<(), Stop> {
    let is_emulated = |kind: &DatastoreKind| !matches!(kind, DatastoreKind::Path { .. });
    let Some(design) = plan.designs.iter().find(|design| is_emulated(&design.kind)) else {
        return Ok(());
    };
    check_host().map_err(|error| {
        Stop::host(format!(
            "this host cannot emulate the design `{}`: {}",
            design.name,
            chain(&error)
        ))
    })
}

/// Calls `use_view` with a view of this host. Nothing is created: `state` is where Underlay's folder is or would be.
pub fn with_host_view<T>(state: &Path, use_view: impl FnOnce(&HostView<'_>) -> T) -> T {
    let facts = host_facts();
    let capabilities = capabilities();
    let view = HostView {
        cpus: u32::try_from(facts.cpu_count).unwrap_or(u32::MAX),
        memory: Bytes(facts.memory_bytes),
        // A folder that cannot be looked at is reported when it is used; it has no space until then.
        free_space: free_space(state).unwrap_or(Bytes::ZERO),
        memory_limits: enforcement(&capabilities, "cgroup-memory"),
        cpu_limits: enforcement(&capabilities, "cgroup-cpu"),
        directory: &directory_state,
        servers: &servers,
    };
    use_view(&view)
}

fn enforcement(capabilities: &[Capability], name: &str) -> Enforcement {
    match capabilities.iter().find(|capability| capability.name == name) {
        Some(capability) if capability.available => Enforcement::Enforced,
        Some(capability) => Enforcement::Unenforced {
            reason: format!("{}; {}", capability.detail, capability.remedy),
        },
        None => Enforcement::Unenforced { reason: "this host has no control groups".to_string() },
    }
}

fn directory_state(path: &Path) -> DirectoryState {
    match std::fs::metadata(path) {
        Err(_) => DirectoryState::Missing,
        Ok(metadata) if !metadata.is_dir() => DirectoryState::NotADirectory,
        Ok(_) => match (rustix::fs::access(path, rustix::fs::Access::WRITE_OK), free_space(path)) {
            (Ok(()), Ok(free)) => DirectoryState::Usable { free },
            _ => DirectoryState::NotWritable,
        },
    }
}

fn servers(engine: EngineKind, server_bin: Option<&Path>) -> Option<Vec<InstalledServer>> {
    let found = installs(engine, server_bin);
    Some(
        found
            .iter()
            .map(|install| InstalledServer {
                major: install.major(),
                settings: match install {
                    // A server that cannot be asked is looked at when it is started.
                    Install::Postgres(install) => install.settings_known().ok(),
                    Install::Mariadb(install) => install.setting_names(),
                },
                backup_problem: install.backup_problem(),
            })
            .collect(),
    )
}

/// The server programs of an engine, newest first.
pub fn installs(engine: EngineKind, server_bin: Option<&Path>) -> Vec<Install> {
    let of = |flavour| mariadb::find_installs(Some(flavour), server_bin).into_iter();
    match engine {
        EngineKind::Postgresql => {
            postgres::find_installs(server_bin).into_iter().map(Install::Postgres).collect()
        }
        EngineKind::Mariadb => of(Flavour::Mariadb).map(Install::Mariadb).collect(),
        EngineKind::Mysql => of(Flavour::Mysql).map(Install::Mariadb).collect(),
    }
}
