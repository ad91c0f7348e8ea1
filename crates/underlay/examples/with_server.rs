//! Runs a command beside a managed server of its own: for benchmarks that need a server to
//! measure against.
//!
//! `with_server [--engine postgresql|mariadb] [--setting NAME=VALUE]... -- COMMAND ARGUMENT...`
//!
//! The command finds the server's superuser in `BENCH_URL` (over 127.0.0.1, password included) and its parts
//! in `BENCH_HOST`, `BENCH_PORT`, `BENCH_USER`, `BENCH_PASSWORD`. The server is removed afterwards. It has a
//! fixed, ordinary configuration: durable, 512 MB of buffers, connections for a thousand users. Without server
//! programs on this host the exit code is 69.

use std::collections::BTreeMap;
use std::process::{Command, ExitCode};
use underlay_database::managed::{Listen, Server, ServerSpec, StopMode, find_installs};
use underlay_database::{Address, Engine};
use underlay_host::{StateDir, Teardown, unprivileged_user};

/// The exit code when there is no server to run: EX_UNAVAILABLE of sysexits.
const NO_SERVER: u8 = 69;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<ExitCode, Failure> {
    let Options { engine, settings, command } = parse(std::env::args().skip(1))?;
    let Some(install) = find_installs(engine, None).into_iter().next() else {
        eprintln!("no {engine} server on this host");
        return Ok(ExitCode::from(NO_SERVER));
    };
    let state = StateDir::open()?;
    underlay_host::clean(&state)?;
    let teardown = Teardown::create(&state, "benchmark server")?;
    let scratch = state.scratch_dir(&format!("bench-{}", std::process::id()));
    teardown.create_directory(&scratch)?;
    let spec = ServerSpec {
        name: "bench".to_string(),
        install,
        data: scratch.join("data"),
        wal: scratch.join("wal"),
        backup: scratch.join("backup"),
        settings,
        run_as: unprivileged_user()?,
        cgroup: None,
        runtime_dir: scratch.join("pg"),
        listen: Listen::Loopback,
    };
    let mut server = Server::create(&teardown, spec)?;
    server.start()?;
    let target = server.tcp_target().ok_or("the server does not listen on 127.0.0.1")?;
    let Address::Tcp(host) = &target.address else { return Err("not a TCP address".into()) };
    let password = target.password.as_ref().map_or("", |password| password.reveal());
    let status = Command::new(&command[0])
        .args(&command[1..])
        .env(
            "BENCH_URL",
            match engine {
                Engine::Postgresql => format!(
                    "postgres://{}:{password}@{host}:{}/{}",
                    target.user, target.port, target.database
                ),
                Engine::Mariadb => {
                    format!("mysql://{}:{password}@{host}:{}/tpcc", target.user, target.port)
                }
            },
        )
        .env("BENCH_HOST", host)
        .env("BENCH_PORT", target.port.to_string())
        .env("BENCH_USER", &target.user)
        .env("BENCH_PASSWORD", password)
        .status();
    server.stop(StopMode::Fast)?;
    drop(server);
    for leftover in teardown.unwind() {
        eprintln!("could not remove {}: {}", leftover.resource, leftover.reason);
    }
    Ok(if status?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// An ordinary configuration with connections for a thousand users.
fn usual(engine: Engine) -> &'static [(&'static str, &'static str)] {
    match engine {
        Engine::Postgresql => &[
            ("shared_buffers", "512MB"),
            ("max_connections", "1100"),
            ("max_wal_size", "4GB"),
            ("checkpoint_timeout", "30min"),
        ],
        Engine::Mariadb => &[
            ("innodb_buffer_pool_size", "512M"),
            ("max_connections", "1100"),
            ("innodb_log_file_size", "1G"),
        ],
    }
}

/// What the command line says.
struct Options {
    engine: Engine,
    settings: BTreeMap<String, String>,
    command: Vec<String>,
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, Failure> {
    let mut engine = Engine::Postgresql;
    let mut given = Vec::new();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--engine" => {
                let word = arguments.next().ok_or("--engine needs a word")?;
                engine = Engine::ALL
                    .into_iter()
                    .find(|engine| engine.as_str() == word)
                    .ok_or(format!("{word} is not an engine"))?;
            }
            "--setting" => {
                let pair = arguments.next().ok_or("--setting needs NAME=VALUE")?;
                let (name, value) = pair.split_once('=').ok_or("--setting needs NAME=VALUE")?;
                given.push((name.to_string(), value.to_string()));
            }
            "--" => {
                let command: Vec<String> = arguments.collect();
                if command.is_empty() {
                    return Err("no command after --".into());
                }
                let usual = usual(engine).iter();
                let usual = usual.map(|(name, value)| (name.to_string(), value.to_string()));
                return Ok(Options { engine, settings: usual.chain(given).collect(), command });
            }
            _ => return Err(format!("{argument} is not an option").into()),
        }
    }
    Err("write -- before the command".into())
}
