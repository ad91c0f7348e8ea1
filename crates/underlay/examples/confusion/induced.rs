//! The induced bottlenecks, each as a study of one design in which one thing is scarce.

/// One bottleneck.
pub struct Induced {
    pub name: &'static str,
    /// The names that are right.
    pub expected: &'static [&'static str],
    /// Other programs use all processors of the host.
    pub burners: bool,
    /// Share of one processor that the load generator may use.
    pub generator_share: Option<f64>,
    warehouses: u32,
    users: u32,
    /// Connections that the users share.
    connections: Option<u32>,
    mode: &'static str,
    /// Memory of the server, page cache included.
    memory: &'static str,
    /// Memory of the server's own cache.
    cache: &'static str,
    /// Log kept between checkpoints.
    log_size: &'static str,
    cpus: Option<f64>,
    /// Length of the measured window, which a name from sampling alone needs for its confidence.
    measure: &'static str,
    /// Length of the causal check. Where few transactions end, or the kernel's write-back has to follow, it takes longer.
    check: &'static str,
    design: String,
}

/// A device whose log is on another one.
fn devices(data: &str, log: &str) -> String {
    format!(
        "[design.datastore.emulated]\ndevices = [\n  {{ name = \"data\", {data} }},\n  {{ name = \"log\", {log} }},\n]\n\n\
         [design.volumes.wal]\ndevice = \"log\"\n"
    )
}

fn cluster(latency: &str) -> String {
    format!(
        "[design.datastore.cluster]\n\
         hosts = [{{ name = \"host\", count = 3, disk-groups = [{{ cache = \"dc1500m-960\", capacity = [\"dc1500m-960\"] }}] }}]\n\
         network = {{ latency = \"{latency}\", bytes-per-second = \"1250MB\" }}\n\
         policy = {{ failures-to-tolerate = 1 }}\n"
    )
}

/// An ordinary drive.
const ORDINARY: &str = "profile = \"dc1500m-960\"";
/// One that takes no time.
const INSTANT: &str = "profile = \"null\"";

/// Everything in memory, on ordinary drives, with four users.
fn usual(name: &'static str, expected: &'static [&'static str]) -> Induced {
    Induced {
        name,
        expected,
        burners: false,
        generator_share: None,
        warehouses: 2,
        users: 4,
        connections: None,
        mode: "procedures",
        memory: "1GiB",
        cache: "512MB",
        log_size: "1GB",
        cpus: None,
        measure: "16s",
        check: "30s",
        design: devices(ORDINARY, ORDINARY),
    }
}

/// All of them for an engine.
pub fn all(engine: &str) -> Vec<Induced> {
    let small_cache = match engine {
        "mariadb" => ("256MiB", "24M"),
        _ => ("224MiB", "24MB"),
    };
    // InnoDB writes a page of 16 KiB twice. At the rate that is enough for PostgreSQL it would do five transactions a
    // second, which no check of some minutes can count.
    let slow_data = if engine == "mariadb" { "12MB" } else { "3MB" };
    let slow_data_memory = if engine == "mariadb" { "384MiB" } else { small_cache.0 };
    // With little memory, the throughput of PostgreSQL varies twice as much from one period of a check to the next.
    let memory_check = if engine == "mariadb" { "240s" } else { "480s" };
    // Sessions of MariaDB are looked at nine times per second.
    let sampled = if engine == "mariadb" { "60s" } else { "40s" };
    let short_of_memory = |induced: Induced| Induced {
        memory: small_cache.0,
        cache: small_cache.1,
        warehouses: 6,
        check: "120s",
        ..induced
    };
    let slow_reads =
        "profile = \"dc1500m-960\", overrides = { medium = { flash = { base = \"3ms\" } } }";
    let slow_flushes = "profile = \"dc1500m-960\", overrides = { flush = \"5ms\" }";
    // Slow enough that the sessions of the fastest engine leave two processors idle for most of the time.
    let slower_flushes = "profile = \"dc1500m-960\", overrides = { flush = \"20ms\" }";
    let slow_drain = |rate: &str| {
        format!(
            "profile = \"dc1500m-960\", overrides = {{ write-buffer = {{ capacity = \"1MiB\", \
             drain-sequential-bytes-per-second = \"{rate}\", drain-random-bytes-per-second = \"{rate}\", \
             fresh-budget = \"0B\" }} }}"
        )
    };
    let shared = |device: &str| {
        format!("[design.datastore.emulated]\ndevices = [{{ name = \"both\", {device} }}]\n")
    };
    vec![
        Induced { cpus: Some(0.2), ..usual("cpu-quota", &["cpu", "cpu-limit"]) },
        Induced {
            burners: true,
            // What other programs use cannot be slowed: there is nothing but sampling.
            measure: sampled,
            design: devices(INSTANT, INSTANT),
            users: 8,
            ..usual("host-cpu", &["cpu", "cpu-starved"])
        },
        Induced { design: devices(ORDINARY, slow_flushes), ..usual("log-latency", &["log"]) },
        Induced {
            design: devices(ORDINARY, &slow_drain("3MB")),
            ..usual("log-write-rate", &["log"])
        },
        short_of_memory(Induced {
            design: shared(&slow_drain("6MB")),
            ..usual("log-behind-data-writes", &["data-write", "log", "log-behind-data"])
        }),
        short_of_memory(Induced {
            design: devices(slow_reads, ORDINARY),
            ..usual("data-read-latency", &["data-read"])
        }),
        Induced {
            // The kernel lets sessions wait over seconds for pages to be written back.
            check: "300s",
            // The checks after the load read whole tables, while the pages that they change wait for the device.
            memory: slow_data_memory,
            ..short_of_memory(Induced {
                design: devices(&slow_drain(slow_data), ORDINARY),
                ..usual("data-write-rate", &["data-write"])
            })
        },
        Induced {
            // Who has the lock of a district waits for the log while sixteen users want it. Without a long delay this
            // is no bottleneck: two processors are.
            warehouses: 1,
            users: 16,
            design: devices(ORDINARY, slower_flushes),
            ..usual("lock-on-one-warehouse", &["lock", "log"])
        },
        Induced {
            generator_share: Some(0.04),
            design: devices(INSTANT, INSTANT),
            ..usual("client-cpu", &["client", "load-generator"])
        },
        Induced {
            // Two sessions that never wait would use both processors, and then these are the bottleneck. With a slow log
            // the connections would do nothing but flush it: two causes.
            users: 16,
            connections: Some(1),
            ..usual("connection-pool", &["connections"])
        },
        Induced { design: cluster("3ms"), ..usual("network-latency", &["network"]) },
        Induced {
            log_size: "64MB",
            // Only a check of several checkpoints can tell what they cost.
            check: "600s",
            design: shared("profile = \"5200eco-1920\", overrides = { divisor = 16 }"),
            ..usual("checkpoint-storms", &["log", "data-write"])
        },
        // With all of its data in memory the same server is limited by its processors. A page that is read needs room,
        // for which InnoDB writes another.
        Induced {
            check: memory_check,
            ..short_of_memory(Induced {
                design: devices(
                    "profile = \"5200eco-1920\", overrides = { divisor = 8 }",
                    ORDINARY,
                ),
                ..usual("memory-pressure", &["data-read", "data-write"])
            })
        },
    ]
}

impl Induced {
    /// The study that induces it.
    pub fn study(&self, engine: &str, seed: u64) -> String {
        let settings = match engine {
            "mariadb" => format!(
                "innodb_buffer_pool_size = \"{}\"\ninnodb_log_file_size = \"{}\"\n",
                self.cache.trim_end_matches('B'),
                self.log_size.trim_end_matches('B')
            ),
            _ => format!(
                "shared_buffers = \"{}\"\nmax_wal_size = \"{}\"\nmin_wal_size = \"32MB\"\n",
                self.cache, self.log_size
            ),
        };
        let cpus =
            self.cpus.map_or(String::new(), |cpus| format!("\n[design.engine]\ncpus = {cpus}\n"));
        let client = self.connections.map_or(String::new(), |connections| {
            format!("[client]\nconnections = {connections}\n\n")
        });
        format!(
            "name = \"confusion-{name}\"\nquestion = \"Is {name} named?\"\nseed = {seed}\n\n\
             [engine]\nkind = \"{engine}\"\nmemory-limit = \"{memory}\"\n\n[engine.settings]\n{settings}\n{client}\
             [volumes.data]\ncapacity = \"2GiB\"\n\n[volumes.wal]\ncapacity = \"2GiB\"\n\n\
             [volumes.backup]\ncapacity = \"256MiB\"\n\n[[design]]\nname = \"{name}\"\n\n{design}{cpus}\n\
             [workload.tpcc]\nwarehouses = {warehouses}\nmode = \"{mode}\"\n\n\
             [procedure]\nusers = [{users}]\nsettle = \"0s\"\nwarm-up = \"4s\"\nramp-up = \"1s\"\nmeasure = \"{measure}\"\n\
             repeats = 1\ncausal-check = \"{check}\"\n",
            name = self.name,
            memory = self.memory,
            design = self.design,
            warehouses = self.warehouses,
            mode = self.mode,
            measure = self.measure,
            check = self.check,
            users = self.users,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::all;
    use underlay_study::Source;

    #[test]
    fn every_induced_bottleneck_is_a_study_of_its_own() {
        for engine in ["postgresql", "mariadb"] {
            let induced = all(engine);
            assert!(induced.len() >= 13);
            let mut names: Vec<&str> = induced.iter().map(|it| it.name).collect();
            names.dedup();
            assert_eq!(names.len(), induced.len());
            for it in induced {
                let study = it.study(engine, 1);
                let source = Source { name: it.name.to_string(), text: study };
                if let Err(problems) = underlay_study::parse(&source) {
                    panic!("{}: {problems:?}\n{}", it.name, source.text);
                }
            }
        }
    }
}
