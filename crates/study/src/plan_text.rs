//! The plan for people: what `underlay check` prints.

mod page;
mod scheduled;

use underlay_core::{Bytes, Evidence, Nanos};
use underlay_model::cluster::REQUESTS_AT_ONCE;
use underlay_model::{DeviceProfile, HostLink};

use self::page::Page;
use crate::exact;
use crate::finding::Finding;
use crate::options::StudySize;
use crate::plan::{
    AxisPlan, BlockPlan, ClusterPlan, DatastoreKind, DesignPlan, FEWEST_REPEATS_UNTIL,
    HomeWarehouse, HostCompute, Pacing, Plan, Profile, Scale, Setting, Sizes, TimeDilation,
    VolumePlan, WorkloadKind, WorkloadPlan,
};
use crate::resolve::cluster::described;
use underlay_core::Words;
use underlay_workload::batch::Loop;

/// The plan as text of at most `width` columns (at least 60 are used), without colours.
pub fn render_plan(plan: &Plan, width: usize) -> String {
    let mut page = Page { text: String::new(), width: width.max(60) };
    page.line(&format!("{}: {}", plan.name, plan.title));
    page.wrapped("", "", &plan.question);
    page.blank();
    summary(&mut page, plan);
    if !plan.axes.is_empty() {
        page.heading("Axes");
        plan.axes.iter().for_each(|axis| describe_axis(&mut page, axis));
    }
    if plan.has_named_databases() {
        page.heading("Databases");
        describe_databases(&mut page, plan);
    }
    page.heading("Designs");
    for design in &plan.designs {
        // The variants of a design lie on the same storage, unless an axis changes that.
        let before = design.variant.as_ref().and_then(|variant| {
            plan.designs.iter().take_while(|other| other.name != design.name).find(|other| {
                other.variant.as_ref().is_some_and(|it| it.design == variant.design)
                    && is_same_storage(other, design)
            })
        });
        match before {
            None => describe_design(&mut page, plan, design),
            Some(before) => {
                page.line(&format!("  {}: {} ({})", design.name, design.title, design.evidence));
                page.line(&format!("    storage as {}", before.name));
            }
        }
    }
    if !plan.deviations.is_empty() {
        page.heading("Deviations from the publication");
        for deviation in &plan.deviations {
            page.wrapped("  ", "  ", deviation);
        }
    }
    scheduled::describe(&mut page, plan);
    if plan.scale != Scale::FULL {
        page.heading(&format!("Size at scale {}", plan.scale));
        describe_scale(&mut page, plan);
    }
    page.heading("Values, and who decided them");
    provenance(&mut page, plan);
    if !plan.findings.is_empty() {
        page.heading("Doubts");
        for finding in &plan.findings {
            describe_finding(&mut page, finding);
        }
    }
    page.text
}

fn summary(page: &mut Page, plan: &Plan) {
    let estimates = &plan.estimates;
    let runs = plan.schedule.len();
    let most = if plan.procedure.repeats_until.is_some() { "at most " } else { "" };
    let is_block_load = plan.workload.kind.block().is_some();
    page.row("evidence", &evidence(plan));
    if plan.options.size == Some(StudySize::Laptop) {
        page.row("size", "laptop: with the values of [laptop]");
    }
    let load = match is_block_load {
        true => String::new(),
        false => format!("load {}, then ", estimates.load),
    };
    page.row(
        "duration",
        &format!(
            "{most}about {}: {load}{most}{runs} runs of {}",
            estimates.duration, estimates.run
        ),
    );
    let template = match is_block_load {
        true => String::new(),
        false => format!("{} loaded database, ", estimates.disk_templates),
    };
    page.row(
        "disk",
        &format!(
            "about {}: {template}{} volumes of a run (at most {})",
            estimates.disk, estimates.disk_volumes, estimates.disk_volumes_worst
        ),
    );
    page.row("memory", &format!("about {}", estimates.memory));
    match plan.workload.kind.block() {
        None => page.row("database", &database(plan)),
        Some(block) => page.row("files", &format!("{} on each volume", block.working_set)),
    }
    page.row("load", &workload(&plan.workload));
    page.row("order", &order(plan));
    if let Some(precision) = plan.procedure.repeats_until {
        page.row(
            "repeats",
            &format!(
                "until the interval of the main ratio is within {precision} of it; {FEWEST_REPEATS_UNTIL} to {}",
                plan.procedure.repeats
            ),
        );
    }
    page.row("one run", &one_run(plan));
}

/// The kind of evidence of all designs, or of each.
fn evidence(plan: &Plan) -> String {
    let pace = match plan.procedure.time_dilation {
        TimeDilation::NONE => "in real time".to_string(),
        TimeDilation::Factor(dilation) => format!("slowed down by {}", dilation.factor()),
        TimeDilation::Auto => "slowed down as much as this host needs".to_string(),
    };
    let words = |evidence| match plan.workload.kind.block() {
        Some(_) => meaning_for_blocks(evidence, &pace),
        None => meaning(evidence, &pace),
    };
    if plan.is_mixed_evidence() {
        let each: Vec<String> = plan
            .designs
            .iter()
            .map(|design| format!("{} {}", design.name, design.evidence))
            .collect();
        return format!("mixed: {}", each.join(", "));
    }
    format!("{}, {}", plan.evidence, words(plan.evidence))
}

fn meaning_for_blocks(evidence: Evidence, pace: &str) -> String {
    match evidence {
        Evidence::Measured => format!("real requests to real storage, {pace}"),
        Evidence::Emulated => format!("real requests to modelled devices, {pace}"),
        Evidence::Simulated => "virtual time".to_string(),
    }
}

fn meaning(evidence: Evidence, pace: &str) -> String {
    match evidence {
        Evidence::Measured => format!("a real database on real storage, {pace}"),
        Evidence::Emulated => format!("a real database on modelled devices, {pace}"),
        Evidence::Simulated => "virtual time, without a database".to_string(),
    }
}

fn database(plan: &Plan) -> String {
    let size = match plan.databases.len() {
        1 => format!("about {}, {}", plan.estimates.database, plan.workload.kind.population()),
        several => format!("{several} databases of about {} together", plan.estimates.database),
    };
    match plan.estimates.working_set_ratio {
        None => size,
        // `0.0 x` would say that there is nothing.
        Some(ratio) if ratio < 0.05 => {
            format!("{size}; less than 0.1 x the memory that can hold it")
        }
        Some(ratio) => format!("{size}; {ratio:.1} x the memory that can hold it"),
    }
}

fn workload(workload: &WorkloadPlan) -> String {
    let pacing = match workload.pacing {
        Pacing::Closed { key_think: 0.0 } => "closed loop without waiting".to_string(),
        Pacing::Closed { key_think } => {
            format!("closed loop, {key_think} x keying and think time")
        }
        Pacing::Open { rate_per_second, arrivals } => {
            format!("open loop, {rate_per_second} transactions/s, {}", arrivals.as_str())
        }
        Pacing::Job => "until it is done".to_string(),
    };
    match &workload.kind {
        WorkloadKind::Tpcc(tpcc) => {
            let profile = match tpcc.profile {
                Profile::Specification => "TPC-C",
                Profile::HammerdbLike => "TPC-C by hammerdb-like rules",
            };
            let homes = match tpcc.home_warehouse {
                HomeWarehouse::Fixed => "",
                HomeWarehouse::Drawn => "warehouses drawn per transaction, ",
            };
            format!("{profile}, {}, {homes}{pacing}", tpcc.mode.as_str())
        }
        WorkloadKind::Batch(batch) => format!(
            "batch insertion of {} rows, {}, {}{} sessions",
            batch.rows,
            batch.mode,
            match batch.place {
                Loop::Client => "",
                Loop::Server => "in a loop inside the server, ",
            },
            batch.sessions
        ),
        WorkloadKind::Warehouse(warehouse) => format!(
            "data warehouse derived from TPC-H, scale factor {}, power run and {} streams",
            warehouse.scale, warehouse.streams
        ),
        WorkloadKind::Backup(backup) => format!(
            "{} of {}{}",
            match backup.cycles {
                1 => "1 cycle".to_string(),
                cycles => format!("{cycles} cycles"),
            },
            match backup.restore {
                true => "a backup and its restore",
                false => "a backup without a restore",
            },
            match (backup.cycles, backup.pause) {
                (1, _) | (_, Nanos::ZERO) => String::new(),
                (_, pause) => format!(", {pause} between them"),
            }
        ),
        WorkloadKind::Dvdstore(dvdstore) => {
            format!("web shop after DVD Store 3, {}, {pacing}", dvdstore.size)
        }
        WorkloadKind::Block(block) => block_load(block),
        WorkloadKind::Sysbench(sysbench) => format!(
            "sysbench-compatible {} on {} tables, ids {}, {pacing}",
            sysbench.script, sysbench.tables, sysbench.distribution
        ),
    }
}

/// `block load 4k-random-70-30, 8 requests in flight per volume, closed loop`.
fn block_load(block: &BlockPlan) -> String {
    let in_flight: Vec<String> =
        block.threads.iter().map(|threads| block.in_flight(*threads).to_string()).collect();
    let pace = match (block.curve.is_empty(), block.pacing()) {
        (false, _) => {
            let points: Vec<String> = block.curve.iter().map(u32::to_string).collect();
            format!(
                "the maximum, then {} % of it in an open loop, {}",
                points.join(", "),
                block.arrivals.as_str()
            )
        }
        (true, Pacing::Open { rate_per_second, arrivals }) => {
            let of =
                if block.rate_per_second.is_some() { "over all volumes" } else { "per volume" };
            format!("open loop, {rate_per_second} requests/s {of}, {}", arrivals.as_str())
        }
        (true, Pacing::Closed { .. } | Pacing::Job) => "closed loop".to_string(),
    };
    format!(
        "block load {}, {} requests in flight per volume, {pace}",
        block.profile.name,
        in_flight.join(", ")
    )
}

/// `nvme sata | sata nvme | nvme sata`, cut after some repeats.
fn order(plan: &Plan) -> String {
    const REPEATS_SHOWN: usize = 4;
    let repeats: Vec<String> = plan
        .schedule
        .chunks(plan.designs.len())
        .map(|repeat| {
            let name = |run: &crate::RunPlan| plan.designs[run.design].name.as_str();
            repeat.iter().map(name).collect::<Vec<_>>().join(" ")
        })
        .collect();
    let shown = repeats[..repeats.len().min(REPEATS_SHOWN)].join(" | ");
    if repeats.len() > REPEATS_SHOWN { format!("{shown} | ...") } else { shown }
}

fn one_run(plan: &Plan) -> String {
    let procedure = &plan.procedure;
    if plan.workload.kind.job_sessions().is_some() {
        return format!(
            "restore, start, settle {}, then the job until it is done, at most {}; stop, check",
            procedure.settle, procedure.measure
        );
    }
    if let Some(block) = plan.workload.kind.block() {
        return one_block_run(plan, block);
    }
    let users: Vec<String> = procedure.users.iter().map(u32::to_string).collect();
    let search = procedure.search.as_ref().map_or_else(String::new, |search| {
        format!(
            "search the highest rate with {} ({} per rate, measured {}, within {} %), ",
            search.objective,
            search.settle,
            search.measure,
            search.resolution * 100.0
        )
    });
    let causal = procedure.causal.map_or_else(String::new, |causal| {
        let faster = if causal.what_if { ", what if" } else { "" };
        format!("in the first repeat causal check{faster} {}; ", causal.total())
    });
    let cool_down =
        procedure.cool_down.map_or_else(String::new, |cool_down| match cool_down.until {
            None => format!("cool down {}; ", cool_down.at_most),
            Some(until) => {
                format!("cool down until {}, at most {}; ", until.as_str(), cool_down.at_most)
            }
        });
    let twin = if procedure.null_twin { "; null twin in the first" } else { "" };
    let warm_up_to =
        procedure.warm_up_to.map_or_else(String::new, |users| format!(" to {users} users"));
    let caches = match procedure.cache_warm_up {
        Nanos::ZERO => String::new(),
        length => format!("fill caches {length}, "),
    };
    format!(
        "restore, start, {caches}settle {}, warm up {}{warm_up_to}, then for {} users: ramp up {}, {search}measure {}{twin}; {causal}{cool_down}stop, check",
        procedure.settle,
        procedure.warm_up,
        users.join(", "),
        procedure.ramp_up,
        procedure.measure
    )
}

fn one_block_run(plan: &Plan, block: &BlockPlan) -> String {
    let procedure = &plan.procedure;
    let precondition = match block.precondition {
        0 => String::new(),
        1 => "write once in order, ".to_string(),
        times => format!("write {times} times in order, "),
    };
    let rungs = match block.curve.len() {
        0 => {
            let threads: Vec<String> = block.threads.iter().map(u32::to_string).collect();
            format!("for {} threads per volume", threads.join(", "))
        }
        points => format!("for the maximum and {points} rates"),
    };
    let twin = if procedure.null_twin { "; null twin in the first" } else { "" };
    let compared = if block.verify { "; stop, compare all blocks" } else { "; stop" };
    format!(
        "fill, {precondition}settle {}, warm up {}, then {rungs}: ramp up {}, measure {}{twin}{compared}",
        procedure.settle, procedure.warm_up, procedure.ramp_up, procedure.measure
    )
}

/// `memory: engine.memory-limit = 8GiB, 16GiB`, or a line per named point.
fn describe_axis(page: &mut Page, axis: &AxisPlan) {
    let names: Vec<&str> = axis.points.iter().map(|point| point.name.as_str()).collect();
    if let ([key], true) = (&axis.keys[..], axis.points.iter().all(|point| point.is_value())) {
        let text = format!("{}: {key} = {}", axis.name, names.join(", "));
        page.wrapped("  ", "    ", &text);
        return;
    }
    page.line(&format!("  {}:", axis.name));
    for point in &axis.points {
        let set: Vec<String> =
            point.set.iter().map(|(path, value)| format!("{path} = {value}")).collect();
        let set = if set.is_empty() { "the study as it is".to_string() } else { set.join(", ") };
        page.wrapped("    ", "      ", &format!("{}: {set}", point.name));
    }
}

/// Databases that are alike but for their names in one line.
fn describe_databases(page: &mut Page, plan: &Plan) {
    let mut described: Vec<(Vec<&str>, String)> = Vec::new();
    for database in &plan.databases {
        let Sizes { cpus, memory_limit, population, database: bytes, .. } = &database.size;
        let cpus = cpus.map_or_else(String::new, |cpus| format!(", {cpus} processors"));
        let memory = memory_limit.map_or_else(String::new, |limit| format!(", memory {limit}"));
        let load = workload(&database.workload);
        let client = database.parts.iter().find_map(|part| part.client.described());
        let client = client.map_or_else(String::new, |client| format!("; client {client}"));
        let text = format!("about {bytes}, {population}{cpus}{memory}; {load}{client}");
        match described.last_mut() {
            Some((names, last)) if *last == text => names.push(database.name.as_str()),
            _ => described.push((vec![database.name.as_str()], text)),
        }
    }
    for (names, text) in described {
        page.wrapped("  ", "    ", &format!("{}: {text}", from_to(&names)));
    }
}

fn is_same_storage(a: &DesignPlan, b: &DesignPlan) -> bool {
    format!("{:?} {:?}", a.kind, a.volumes) == format!("{:?} {:?}", b.kind, b.volumes)
}

/// The volumes of a design; of several databases those of each, equal ones in one line.
fn describe_volumes(page: &mut Page, plan: &Plan, design: &DesignPlan) {
    let listed = |volumes: &[VolumePlan]| {
        let each = equal_volumes(volumes).into_iter().map(|(first, count)| match count {
            1 => volume(design, first),
            _ => format!("{count} like {}", volume(design, first)),
        });
        each.collect::<Vec<_>>().join(", ")
    };
    if !plan.has_named_databases() {
        page.wrapped("    ", "      ", &format!("volumes {}", listed(&design.volumes)));
        return;
    }
    let point = design.variant.as_ref().and_then(|variant| plan.points.get(variant.point));
    let mut described: Vec<(Vec<&str>, String)> = Vec::new();
    for database in &point.unwrap_or(plan).databases {
        let Some(part) = database.part(design) else { continue };
        let own = |volume: &VolumePlan| {
            let name = volume.name.strip_prefix(&*database.name).unwrap_or(&volume.name);
            VolumePlan { name: name.trim_start_matches('-').to_string(), ..volume.clone() }
        };
        let volumes: Vec<VolumePlan> = part.volumes.iter().map(own).collect();
        let text = listed(&volumes);
        match described.last_mut() {
            Some((names, last)) if *last == text => names.push(database.name.as_str()),
            _ => described.push((vec![database.name.as_str()], text)),
        }
    }
    for (names, text) in described {
        let text = format!("volumes of {}: {text}", from_to(&names));
        page.wrapped("    ", "      ", &text);
    }
}

/// `oltp-1 to oltp-8`.
fn from_to(names: &[&str]) -> String {
    match names {
        [first, .., last] => format!("{first} to {last}"),
        names => names.concat(),
    }
}

fn describe_design(page: &mut Page, plan: &Plan, design: &DesignPlan) {
    page.line(&format!("  {}: {} ({})", design.name, design.title, design.evidence));
    page.wrapped("    ", "    ", &design.description);
    match &design.kind {
        DatastoreKind::Path { directory } => {
            page.line(&format!("    directory {}", directory.display()));
        }
        DatastoreKind::Emulated { devices, link, durability, backing } => {
            for (name, profile) in devices {
                page.wrapped("    ", "      ", &device(name, profile));
            }
            if let Some(link) = link {
                page.line(&format!("    {}", host_link(*link)));
            }
            if *durability != crate::Durability::Profile {
                page.line(&format!("    durability {}", durability.as_str()));
            }
            if let Some(backing) = backing {
                page.line(&format!("    backing files in {}", backing.display()));
            }
        }
        DatastoreKind::Cluster(plan) => describe_cluster(page, plan),
    }
    describe_volumes(page, plan, design);
    if !design.engine_overrides.is_empty() {
        let overrides = design.engine_overrides.join(", ");
        page.wrapped("    ", "      ", &format!("own engine values: {overrides}"));
    }
    if let Some(client) = design.client.described() {
        page.wrapped("    ", "      ", &format!("client {client}"));
    }
}

fn host_link(link: HostLink) -> String {
    let rate = exact::size(Bytes(link.bytes_per_second));
    let latency = match link.latency {
        Nanos::ZERO => String::new(),
        latency => format!(", {} per request", exact::time(latency)),
    };
    let part = match link.divisor {
        1 => String::new(),
        divisor => format!(", 1/{divisor} of it"),
    };
    format!("link to all devices {rate}/s in each direction{latency}{part}")
}

fn describe_cluster(page: &mut Page, plan: &ClusterPlan) {
    let mut hosts: Vec<(Vec<&str>, String)> = Vec::new();
    for host in &plan.spec.hosts {
        let text = described(&host.groups);
        match hosts.iter_mut().find(|(_, known)| *known == text) {
            Some((names, _)) => names.push(&host.name),
            None => hosts.push((vec![&host.name], text)),
        }
    }
    for (names, text) in hosts {
        let text = format!("hosts {}: {text}", names.join(", "));
        page.wrapped("    ", "      ", &text);
    }
    if let Some(percent) = plan.fill_percent {
        page.line(&format!(
            "    {percent} % of every capacity device hold other data at the start"
        ));
    }
    describe_compute(page, plan);
    let network = &plan.spec.network;
    page.line(&format!(
        "    network {} per second and host, {} one way",
        Bytes(network.bytes_per_second / u64::from(network.divisor)),
        network.latency
    ));
    let per_io = plan.spec.settings.stack.per_io;
    if per_io > Nanos::ZERO {
        let part = match network.divisor {
            1 => String::new(),
            divisor => format!(", one part in {divisor} of it"),
        };
        page.line(&format!(
            "    storage stack of a host {per_io} per I/O, {REQUESTS_AT_ONCE} at a time{part}"
        ));
    }
    let policy = &plan.policy;
    let limit =
        policy.iops_limit.map_or(String::new(), |limit| format!(", limit {limit} I/Os per second"));
    page.line(&format!(
        "    policy {} {} tolerated by {}, stripe width {}, checksum {}{limit}",
        policy.failures_to_tolerate,
        if policy.failures_to_tolerate == 1 { "failure" } else { "failures" },
        policy.method.word(),
        policy.stripe_width,
        policy.checksum.word()
    ));
}

/// What hosts give the databases on them, equal ones in one line.
fn describe_compute(page: &mut Page, plan: &ClusterPlan) {
    let same = |a: &HostCompute, b: &HostCompute| {
        (a.cores, a.threads_per_core, a.core_speed, a.memory)
            == (b.cores, b.threads_per_core, b.core_speed, b.memory)
    };
    for equal in plan.compute.chunk_by(same) {
        let names: Vec<&str> = equal.iter().map(|it| it.host.as_str()).collect();
        let cpus = equal[0].cores.map(|cores| match equal[0].threads_per_core {
            1 => format!("{cores} cores"),
            threads => format!("{cores} cores of {threads} threads"),
        });
        let speed = equal[0].core_speed;
        let of_speed = |cpus| if speed == 1.0 { cpus } else { format!("{cpus} of speed {speed}") };
        let cpus = cpus.map(of_speed);
        let memory = equal[0].memory.map(|memory| format!("{memory} of memory"));
        let limits: Vec<String> = cpus.into_iter().chain(memory).collect();
        let text =
            format!("each of {} gives its databases {}", names.join(", "), limits.join(", "));
        page.wrapped("    ", "      ", &text);
    }
}

fn device(name: &str, profile: &DeviceProfile) -> String {
    format!(
        "device {name} = {}, {} ({}, {})",
        profile.name,
        profile.description,
        profile.capacity,
        profile.basis.as_str()
    )
}

fn volume(design: &DesignPlan, volume: &VolumePlan) -> String {
    match (&design.kind, &volume.device) {
        (DatastoreKind::Emulated { .. }, Some(device)) => format!(
            "{} {} on {device} ({})",
            volume.name,
            volume.capacity,
            volume.file_system.as_str()
        ),
        _ => format!("{} {}", volume.name, volume.capacity),
    }
}

/// Runs of volumes that differ in nothing but their number: the first, and how many.
fn equal_volumes(volumes: &[VolumePlan]) -> Vec<(&VolumePlan, usize)> {
    let is_equal = |a: &VolumePlan, b: &VolumePlan| {
        let unnumbered = |volume: &VolumePlan| {
            let (kind, number) = volume.name.rsplit_once('-')?;
            number.parse::<u32>().ok()?;
            Some(VolumePlan { name: kind.to_string(), ..volume.clone() })
        };
        unnumbered(a).is_some_and(|first| unnumbered(b) == Some(first))
    };
    let runs = volumes.chunk_by(is_equal);
    runs.filter_map(|run| Some((run.first()?, run.len()))).collect()
}

fn describe_scale(page: &mut Page, plan: &Plan) {
    let names = ["processors", "memory", "population", "database", "users"];
    let of_blocks = ["population", "users"];
    for (position, name) in names.into_iter().enumerate() {
        let name = match (plan.workload.kind.block(), name) {
            (None, name) => name,
            (Some(_), name) if !of_blocks.contains(&name) => continue,
            (Some(_), "users") => "threads",
            (Some(_), _) => "files",
        };
        // Of a study with axes: each size that there is.
        let distinct = |of: &dyn Fn(&Plan) -> &Sizes| {
            let mut texts: Vec<String> = Vec::new();
            for text in plan.plans().into_iter().map(|point| size_texts(of(point))) {
                let text = &text[position];
                if !texts.contains(text) {
                    texts.push(text.clone());
                }
            }
            texts.join(", ")
        };
        let (planned, full) = (distinct(&|point| &point.size), distinct(&|point| &point.full_size));
        page.wrapped("  ", "    ", &format!("{name}: {planned} (full size: {full})"));
    }
}

fn size_texts(sizes: &Sizes) -> [String; 5] {
    let users: Vec<String> = sizes.users.iter().map(u32::to_string).collect();
    [
        sizes.cpus.map_or_else(|| "no limit".to_string(), |cpus| cpus.to_string()),
        sizes.memory_limit.map_or_else(|| "no limit".to_string(), |limit| limit.to_string()),
        sizes.population.to_string(),
        sizes.database.to_string(),
        users.join(" "),
    ]
}

fn provenance(page: &mut Page, plan: &Plan) {
    let longest = |width: fn(&Setting) -> usize| plan.provenance.iter().map(width).max();
    let path_width = longest(|row| row.path.chars().count()).unwrap_or(0);
    let value_width = longest(|row| row.value.chars().count()).unwrap_or(0);
    for row in &plan.provenance {
        let origin = row.origin.to_string();
        let left = page.width.saturating_sub(path_width + origin.chars().count() + 6).max(12);
        let value = shortened(&row.value, left);
        let padded = value_width.min(24);
        page.line(&format!("  {:path_width$}  {value:padded$}  {origin}", row.path));
    }
}

fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_string();
    }
    let kept: String = text.chars().take(width.saturating_sub(3)).collect();
    format!("{}...", kept.trim_end())
}

fn describe_finding(page: &mut Page, finding: &Finding) {
    let line = finding.line.map_or_else(String::new, |line| format!(" (line {line})"));
    let text = format!("{}: {}{line} [{}]", finding.severity, finding.text, finding.code);
    page.wrapped("  ", "    ", &text);
    page.wrapped("    ", "    ", &format!("remedy: {}", finding.remedy));
}

#[cfg(test)]
mod tests {
    use super::{Page, shortened};

    #[test]
    fn lines_stay_within_the_width() {
        let mut page = Page { text: String::new(), width: 20 };
        page.wrapped("- ", "  ", "one two three four five six seven");
        assert_eq!(page.text, "- one two three four\n  five six seven\n");
        assert_eq!(shortened("abcdefgh", 6), "abc...");
        assert_eq!(shortened("abcdef", 6), "abcdef");
    }
}
