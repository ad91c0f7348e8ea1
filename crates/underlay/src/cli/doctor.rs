//! `underlay doctor`: the host's capabilities, and how to enable missing ones.

use crate::stop::Stop;
use clap::Args;
use serde_json::json;
use underlay_database::Engine;
use underlay_database::managed::capability;
use underlay_host::{capabilities, host_facts};

/// Arguments of `underlay doctor`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Print as JSON.
    #[arg(long)]
    json: bool,
    /// Folder with the database server's programs.
    #[arg(long, value_name = "DIR")]
    server_bin: Option<std::path::PathBuf>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    let facts = host_facts();
    let mut all = capabilities();
    let server_bin = arguments.server_bin.as_deref();
    all.extend(Engine::ALL.map(|engine| capability(engine, server_bin)));
    if arguments.json {
        let listed: Vec<_> = all
            .iter()
            .map(|capability| {
                json!({
                    "name": capability.name,
                    "available": capability.available,
                    "detail": capability.detail,
                    "remedy": capability.remedy,
                })
            })
            .collect();
        outln!("{:#}", json!({ "host": facts, "capabilities": listed }));
        return Ok(());
    }
    let unknown = || "unknown".to_string();
    outln!(
        "{}, Linux {}, {} x {}, {}",
        facts.distribution.unwrap_or_else(unknown),
        facts.kernel,
        facts.cpu_count,
        facts.cpu_model.unwrap_or_else(unknown),
        underlay_core::Bytes(facts.memory_bytes),
    );
    let widest = all.iter().map(|capability| capability.name.len()).max().unwrap_or(0);
    for capability in all {
        let mark = if capability.available { "yes" } else { "NO " };
        outln!("  {mark}  {:widest$}  {}", capability.name, capability.detail);
        if !capability.available && !capability.remedy.is_empty() {
            outln!("       {:widest$}  -> {}", "", capability.remedy);
        }
    }
    Ok(())
}
