//! How often comparisons are wrong, with real servers: many studies of two identical designs (false alarms, coverage), and of
//! two designs of which one device is slower by a known factor (power). Unattended; the studies are short.
//!
//! `error_rates [--studies N|FROM..TO] [--power-studies N|FROM..TO] [--repeats N] [--measure TIME] [--json FILE] [--folder DIR]
//! [--program PATH]`
//!
//! Needs root and the servers' programs; engines without one are skipped. One study takes two to three minutes at 5
//! repeats, so that the 40 + 20 of the default take almost three hours; ranges divide them over several calls. FILE is
//! overwritten after each study. The program uses a state directory of its own and leaves nothing there. The same promises
//! on synthetic records, within seconds: `cargo test -p underlay-report --lib error_rates`.

use serde_json::{Value, json};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use underlay_database::Engine;
use underlay_database::managed::find_installs;

type Failure = Box<dyn std::error::Error>;

/// How much longer the slow device takes for a write: throughput is 10 % lower where nothing but the log's writes takes time.
const SLOWER: f64 = 1.111;
/// Latency of a write of the device that is slowed, milliseconds: long against everything else in a transaction.
const WRITE_MS: f64 = 12.0;

fn main() -> Result<ExitCode, Failure> {
    let options = Options::parse(std::env::args().skip(1))?;
    let engines: Vec<Engine> = [Engine::Postgresql, Engine::Mariadb]
        .into_iter()
        .filter(|engine| !find_installs(*engine, None).is_empty())
        .collect();
    if engines.is_empty() {
        return Err("no database server on this host".into());
    }
    std::fs::create_dir_all(&options.folder)?;
    let mut equal = Vec::new();
    for number in options.studies.clone() {
        let engine = engines[number % engines.len()];
        let device = DEVICES[number / engines.len() % DEVICES.len()];
        let users = LADDERS[number / engines.len() % LADDERS.len()];
        let text = study(number, engine, [device.1, device.1], users, &options);
        equal.push(carry_out(
            &format!("A/A {}: {engine}, {}, users {users}", number + 1, device.0),
            &text,
            &options,
        )?);
        options.keep(&summary(&equal, &[]))?;
    }
    let mut slowed = Vec::new();
    for number in options.power_studies.clone() {
        let engine = engines[number % engines.len()];
        let devices = [WRITE_MS, WRITE_MS * SLOWER].map(slow_writes);
        let devices = [devices[0].as_str(), devices[1].as_str()];
        let text = study(1000 + number, engine, devices, "[1]", &options);
        slowed.push(carry_out(&format!("power {}: {engine}", number + 1), &text, &options)?);
        options.keep(&summary(&equal, &slowed))?;
    }
    println!("{:#}", summary(&equal, &slowed));
    Ok(ExitCode::SUCCESS)
}

/// Title, and the device in the study's language.
const DEVICES: [(&str, &str); 4] = [
    ("no delay", r#"profile = "null""#),
    ("SATA", r#"profile = "5200eco-1920""#),
    (
        "slow writes",
        r#"profile = "5200eco-1920", overrides = { write-buffer = { latency = "4ms" } }"#,
    ),
    ("NVMe, a quarter", r#"profile = "dc1500m-960", overrides = { divisor = 4 }"#),
];

const LADDERS: [&str; 3] = ["[2]", "[1, 4]", "[2, 8]"];

fn slow_writes(milliseconds: f64) -> String {
    let us = (milliseconds * 1000.0).round();
    format!(
        r#"profile = "5200eco-1920", overrides = {{ write-buffer = {{ latency = "{us}us" }} }}"#
    )
}

fn study(
    number: usize,
    engine: Engine,
    devices: [&str; 2],
    users: &str,
    options: &Options,
) -> String {
    let settings = match engine {
        Engine::Postgresql => "shared_buffers = \"48MB\"\nmax_wal_size = \"256MB\"",
        Engine::Mariadb => "innodb_buffer_pool_size = \"48M\"",
    };
    let design = |name: &str, device: &str| {
        format!(
            "[[design]]\nname = \"{name}\"\n\n[design.datastore.emulated]\n\
             devices = [{{ name = \"disk\", {device} }}]\n\n"
        )
    };
    let (repeats, measure) = (options.repeats, &options.measure);
    format!(
        "name = \"error-rates\"\ntitle = \"Error rates\"\n\
         question = \"Is what the comparison says true?\"\nseed = {}\n\n\
         [engine]\nkind = \"{}\"\nmemory-limit = \"256MiB\"\n\n[engine.settings]\n{settings}\n\n\
         [volumes.data]\ncapacity = \"1GiB\"\n\n[volumes.wal]\ncapacity = \"512MiB\"\n\n\
         [volumes.backup]\ncapacity = \"256MiB\"\n\n{}{}\
         [workload.tpcc]\nwarehouses = 1\n\n[procedure]\nusers = {users}\nsettle = \"0s\"\n\
         warm-up = \"2s\"\nramp-up = \"1s\"\nmeasure = \"{measure}\"\nrepeats = {repeats}\n",
        7000 + number,
        engine.as_str(),
        design("a", devices[0]),
        design("b", devices[1]),
    )
}

/// What one study said.
struct Said {
    /// The throughput at the highest number of users.
    main: Value,
    /// Everything that was called different.
    different: Vec<String>,
    /// Comparisons of throughput with an interval.
    throughput: Vec<Value>,
}

fn carry_out(title: &str, text: &str, options: &Options) -> Result<Said, Failure> {
    let folder = &options.folder;
    let (study, record) = (folder.join("study.toml"), folder.join("record.sqlite"));
    std::fs::write(&study, text)?;
    let _ = std::fs::remove_file(&record);
    let state = folder.join("state");
    let output = Command::new(&options.program)
        .args(["run", "--json", "--no-progress", "--fresh", "--out"])
        .arg(&record)
        .arg(&study)
        .env("UNDERLAY_STATE_DIR", &state)
        .stderr(Stdio::piped())
        .output()?;
    if !output.status.success() {
        // With --json, problems of the study are on the standard output.
        let why = [output.stderr, output.stdout].concat();
        let why = String::from_utf8_lossy(&why).into_owned();
        return Err(format!("{title}: {}\n{why}", output.status).into());
    }
    let analysis: Value = serde_json::from_slice(&output.stdout)?;
    // The next study has another seed, and with it another template.
    Command::new(&options.program)
        .args(["clean", "--templates"])
        .env("UNDERLAY_STATE_DIR", &state)
        .stdout(Stdio::null())
        .status()?;
    let said = said(&analysis).ok_or_else(|| format!("{title}: no comparison"))?;
    let main = &said.main;
    eprintln!(
        "{title}: {:.3} [{:.3}, {:.3}], p {:.3}: {}",
        number(main, "ratio"),
        number(main, "low"),
        number(main, "high"),
        number(main, "p_adjusted"),
        if said.different.is_empty() {
            "nothing different".to_string()
        } else {
            said.different.join("; ")
        }
    );
    Ok(said)
}

fn said(analysis: &Value) -> Option<Said> {
    let comparisons = analysis["comparisons"].as_array()?;
    let is_throughput = |comparison: &&Value| {
        comparison["metric"] == "headline"
            && comparison["scope"] == "rung"
            && comparison["low"].is_f64()
    };
    let throughput: Vec<Value> = comparisons.iter().filter(is_throughput).cloned().collect();
    let main = throughput.iter().max_by_key(|comparison| comparison["users"].as_u64())?.clone();
    let different = comparisons
        .iter()
        .filter(|comparison| comparison["outcome"] == "better" || comparison["outcome"] == "worse")
        .filter_map(|comparison| comparison["text"].as_str().map(str::to_string))
        .collect();
    Some(Said { main, different, throughput })
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or(f64::NAN)
}

fn summary(equal: &[Said], slowed: &[Said]) -> Value {
    let share = |n: usize, of: usize| (of > 0).then(|| n as f64 / of as f64);
    let is_called =
        |said: &Said| said.main["outcome"] == "better" || said.main["outcome"] == "worse";
    let intervals: Vec<&Value> = equal.iter().flat_map(|said| &said.throughput).collect();
    let holds_one =
        |interval: &&&Value| number(interval, "low") <= 1.0 && number(interval, "high") >= 1.0;
    let logs: Vec<f64> = slowed.iter().map(|said| number(&said.main, "ratio").ln()).collect();
    let truth = (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp();
    let found = slowed.iter().filter(|said| said.main["outcome"] == "worse").count();
    // How far the two runs of a pair are apart by chance.
    let spread = |said: &Said| {
        let (main, pairs) = (&said.main, number(&said.main, "pairs"));
        let half_width = (number(main, "high") / number(main, "ratio")).ln();
        half_width * pairs.sqrt()
    };
    let mut spreads: Vec<f64> = equal.iter().map(spread).collect();
    spreads.sort_by(f64::total_cmp);
    json!({
        "equal_designs": {
            "studies": equal.len(),
            "studies_with_a_false_alarm": equal.iter().filter(|said| !said.different.is_empty()).count(),
            "share": share(equal.iter().filter(|said| !said.different.is_empty()).count(), equal.len()),
            "main_false_alarms": equal.iter().filter(|said| is_called(said)).count(),
            "intervals": intervals.len(),
            "coverage": share(intervals.iter().filter(holds_one).count(), intervals.len()),
            "called_the_same": equal.iter().filter(|said| said.main["outcome"] == "equivalent").count(),
            "median_half_width_times_root_pairs": spreads.get(spreads.len() / 2),
        },
        "slower_device": {
            "studies": slowed.len(),
            "mean_ratio": (!slowed.is_empty()).then_some(truth),
            "found": found,
            "power": share(found, slowed.len()),
        },
    })
}

struct Options {
    studies: Range<usize>,
    power_studies: Range<usize>,
    repeats: u32,
    measure: String,
    json: Option<PathBuf>,
    folder: PathBuf,
    program: PathBuf,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, Failure> {
        // Beside the folder of the examples.
        let program = std::env::current_exe()?
            .parent()
            .and_then(Path::parent)
            .map_or_else(|| PathBuf::from("underlay"), |target| target.join("underlay"));
        let mut options = Options {
            studies: 0..40,
            power_studies: 0..20,
            repeats: 5,
            measure: "5s".to_string(),
            json: None,
            folder: std::env::temp_dir()
                .join(format!("underlay-error-rates-{}", std::process::id())),
            program,
        };
        while let Some(option) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{option} needs a value"))?;
            match option.as_str() {
                "--studies" => options.studies = numbers(&value)?,
                "--power-studies" => options.power_studies = numbers(&value)?,
                "--repeats" => options.repeats = value.parse()?,
                "--measure" => options.measure = value,
                "--json" => options.json = Some(value.into()),
                "--folder" => options.folder = value.into(),
                "--program" => options.program = value.into(),
                _ => return Err(format!("unknown option {option}").into()),
            }
        }
        Ok(options)
    }

    fn keep(&self, summary: &Value) -> Result<(), Failure> {
        match &self.json {
            Some(path) => Ok(std::fs::write(path, format!("{summary:#}\n"))?),
            None => Ok(()),
        }
    }
}

/// The studies that a number of them, or `FROM..TO`, means; they are numbered from 0.
fn numbers(value: &str) -> Result<Range<usize>, Failure> {
    let (from, to) = value.split_once("..").unwrap_or(("0", value));
    Ok(from.parse()?..to.parse()?)
}

/// Nothing of the studies remains, however they end; a folder that has other files stays.
impl Drop for Options {
    fn drop(&mut self) {
        for file in ["study.toml", "record.sqlite", "record.html"] {
            let _ = std::fs::remove_file(self.folder.join(file));
        }
        let _ = std::fs::remove_dir_all(self.folder.join("state"));
        let _ = std::fs::remove_dir(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::{DEVICES, LADDERS, Options, WRITE_MS, slow_writes, study};
    use underlay_database::Engine;
    use underlay_study::Source;

    #[test]
    fn what_it_runs_are_valid_studies() {
        let options = Options::parse(std::iter::empty()).expect("the defaults");
        let slow = slow_writes(WRITE_MS);
        for engine in [Engine::Postgresql, Engine::Mariadb] {
            for device in DEVICES.map(|(_, device)| device).into_iter().chain([slow.as_str()]) {
                for users in LADDERS {
                    let text = study(1, engine, [device, device], users, &options);
                    let source = Source { name: "error-rates".to_string(), text };
                    if let Err(problems) = underlay_study::parse(&source) {
                        panic!("{problems:?}\n{}", source.text);
                    }
                }
            }
        }
    }
}
