//! Demand profiles as TOML files: what transactions cost, each value with its source and, where it
//! was measured, its spread.
//!
//! Processor times of types are the default's, with a factor each where a record tells the types apart. Their log bytes are the
//! default's: records tell only the sum. A factor on all of either is what was measured of all types together.

use serde::{Deserialize, Serialize};
use underlay_core::Nanos;
use underlay_engine::{DemandProfile, TypeDemand};

use super::demand_fit::DemandFit;
use super::observation::Range;

/// Version of the form.
const FORMAT: u32 = 1;

/// Why a file is no demand profile of use.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DemandFileError {
    /// Not of this form.
    #[error("it is not a demand profile: {0}")]
    Form(String),
    /// Written by another version.
    #[error("it has format {0}, this program knows format {FORMAT}")]
    Format(u32),
    /// For something else.
    #[error("it is for {there}, and {wanted} is simulated")]
    Other {
        /// Engine and workload of the file.
        there: String,
        /// What is simulated.
        wanted: String,
    },
    /// A number that is none, or out of range.
    #[error("{what} is {value}; use a number from 0 to {most}")]
    Range {
        /// Which.
        what: String,
        /// What it is.
        value: f64,
        /// The greatest.
        most: f64,
    },
}

/// A demand profile with its sources.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DemandFile {
    format: u32,
    /// The workload: `tpcc`.
    pub workload: String,
    /// The engine: `postgresql`.
    pub engine: String,
    /// In one sentence where it comes from.
    pub source: String,
    cpu: Value,
    log: Value,
    per_page: PerPage,
    #[serde(rename = "type")]
    types: Vec<Type>,
    /// What the window showed, for comparison: results, not demands.
    #[serde(default)]
    observed: Vec<Value>,
}

/// A measured value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Value {
    /// What it is.
    name: String,
    value: f64,
    /// Least and greatest of the windows; the same where it was not measured.
    low: f64,
    high: f64,
    source: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PerPage {
    read_cpu_us: f64,
    write_cpu_us: f64,
    log_flush_cpu_us: f64,
    client_cpu_us: f64,
    /// Per I/O request; files of before do not have it.
    #[serde(default)]
    io_cpu_us: f64,
    /// Per transaction, of processes and threads without a session; files of before do not have it.
    #[serde(default)]
    background_cpu_us: f64,
    source: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Type {
    name: String,
    cpu_us: f64,
    cpu_per_unit_us: f64,
    log_bytes: u32,
    log_bytes_per_unit: u32,
    /// The factor on the default's processor times that is in the times above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cpu_factor: Option<Spread>,
    source: String,
}

/// What a factor is in the windows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Spread {
    value: f64,
    low: f64,
    high: f64,
}

/// Something that was observed.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// What: `pages-missed-per-transaction`.
    pub name: &'static str,
    /// How much; `None` where it was not observed.
    pub range: Option<Range>,
    /// Where it comes from.
    pub source: String,
}

const DEFAULT_TYPE: &str =
    "default; the record does not tell its processor time from that of others";
const MEASURED_TYPE: &str = "default, times the factor on its processor times: of the sessions' processor time per transaction \
                             of the type, over the same simulated, against that of all types";

impl DemandFile {
    /// Demands that were fitted to `defaults`, with what the factors on all processor times and on log bytes are called, and
    /// `observed`. A factor that was not observed is 1.
    pub fn new(
        (engine, workload): (&str, &str),
        source: String,
        fit: &DemandFit,
        [cpu, log]: [Observed; 2],
        observed: Vec<Observed>,
    ) -> DemandFile {
        let factor = |observed: Observed| {
            let one = Range { value: 1.0, low: 1.0, high: 1.0 };
            let source = match observed.range {
                Some(_) => observed.source,
                None => "default: not in the record".to_string(),
            };
            value(Observed { source, range: Some(observed.range.unwrap_or(one)), ..observed })
        };
        let micros = |time: Nanos| time.0 as f64 / 1e3;
        let kind = |(kind, factor): (&TypeDemand, &Option<Range>)| Type {
            name: kind.name.clone(),
            cpu_us: micros(kind.cpu_base),
            cpu_per_unit_us: micros(kind.cpu_per_unit),
            log_bytes: kind.log_bytes_base,
            log_bytes_per_unit: kind.log_bytes_per_unit,
            cpu_factor: factor.map(|Range { value, low, high }| Spread { value, low, high }),
            source: if factor.is_some() { MEASURED_TYPE } else { DEFAULT_TYPE }.to_string(),
        };
        let demands = &fit.demands;
        DemandFile {
            format: FORMAT,
            workload: workload.to_string(),
            engine: engine.to_string(),
            source,
            cpu: factor(cpu).expect("a factor has a range"),
            log: factor(log).expect("a factor has a range"),
            per_page: PerPage {
                read_cpu_us: micros(demands.cpu_per_page_read),
                write_cpu_us: micros(demands.cpu_per_page_write),
                log_flush_cpu_us: micros(demands.cpu_per_log_flush),
                client_cpu_us: micros(demands.client_cpu),
                io_cpu_us: micros(demands.cpu_per_io),
                background_cpu_us: micros(demands.background_cpu),
                source: "default, scaled with the processor time of the types; client, I/O and background as observed, \
                         where they are below"
                    .to_string(),
            },
            types: demands.types.iter().zip(&fit.types).map(kind).collect(),
            observed: observed.into_iter().filter_map(value).collect(),
        }
    }

    /// As text, with what to know about it.
    pub fn to_toml(&self) -> String {
        let body = toml::to_string(self).expect("a profile has names, numbers and texts");
        format!(
            "# Demand profile: what transactions cost, for `underlay run --simulate --demands` and\n\
             # `underlay predict --demands`.\n\
             # `cpu` and `log` are factors on the times and bytes of the types.\n\
             # `low` and `high` are the extremes of the windows.\n{body}"
        )
    }

    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with it, with the place in the file.
    pub fn parse(text: &str) -> Result<DemandFile, DemandFileError> {
        let file: DemandFile = toml::from_str(text)
            .map_err(|error| DemandFileError::Form(error.to_string().trim_end().to_string()))?;
        if file.format != FORMAT {
            return Err(DemandFileError::Format(file.format));
        }
        let check = |what: String, value: f64, most: f64| match (0.0..=most).contains(&value) {
            true => Ok(()),
            false => Err(DemandFileError::Range { what, value, most }),
        };
        for factor in [&file.cpu, &file.log] {
            check(format!("the factor {}", factor.name), factor.value, 1e3)?;
        }
        for kind in &file.types {
            for time in [kind.cpu_us, kind.cpu_per_unit_us] {
                check(format!("the processor time of {}", kind.name), time, 1e7)?;
            }
        }
        let PerPage {
            read_cpu_us,
            write_cpu_us,
            log_flush_cpu_us,
            client_cpu_us,
            io_cpu_us,
            background_cpu_us,
            ..
        } = file.per_page;
        let of_all = [client_cpu_us, io_cpu_us, background_cpu_us];
        for time in [read_cpu_us, write_cpu_us, log_flush_cpu_us].into_iter().chain(of_all) {
            check("a processor time of per-page".to_string(), time, 1e7)?;
        }
        Ok(file)
    }

    /// The demands, for that engine and workload.
    ///
    /// # Errors
    /// When they are for another.
    pub fn demands(&self, engine: &str, workload: &str) -> Result<DemandProfile, DemandFileError> {
        if (self.engine.as_str(), self.workload.as_str()) != (engine, workload) {
            return Err(DemandFileError::Other {
                there: format!("{} on {}", self.workload, self.engine),
                wanted: format!("{workload} on {engine}"),
            });
        }
        let time = |micros: f64| Nanos((micros * 1e3).round() as u64);
        let kind = |kind: &Type| TypeDemand {
            name: kind.name.clone(),
            cpu_base: time(kind.cpu_us),
            cpu_per_unit: time(kind.cpu_per_unit_us),
            log_bytes_base: kind.log_bytes,
            log_bytes_per_unit: kind.log_bytes_per_unit,
        };
        Ok(DemandProfile {
            types: self.types.iter().map(kind).collect(),
            cpu_per_page_read: time(self.per_page.read_cpu_us),
            cpu_per_page_write: time(self.per_page.write_cpu_us),
            cpu_per_log_flush: time(self.per_page.log_flush_cpu_us),
            client_cpu: time(self.per_page.client_cpu_us),
            cpu_per_io: time(self.per_page.io_cpu_us),
            background_cpu: time(self.per_page.background_cpu_us),
            cpu_factor: self.cpu.value,
            log_factor: self.log.value,
        })
    }
}

fn value(observed: Observed) -> Option<Value> {
    let Range { value, low, high } = observed.range?;
    Some(Value { name: observed.name.to_string(), value, low, high, source: observed.source })
}

#[cfg(test)]
mod tests {
    use super::{DemandFile, DemandFileError, Observed};
    use crate::databases::{DemandFit, Range};
    use underlay_core::Nanos;
    use underlay_engine::DemandProfile;

    fn file() -> DemandFile {
        let observed = |name, range| Observed { name, range, source: "a record".to_string() };
        let cpu = Some(Range { value: 1.5, low: 1.4, high: 1.75 });
        let rest = vec![observed("pages-missed-per-transaction", cpu), observed("x", None)];
        let factors = [observed("cpu-factor", cpu), observed("log-factor", None)];
        let mut demands = DemandProfile::tpcc_postgresql();
        demands.types[1].cpu_base = Nanos::from_micros(180);
        demands.background_cpu = Nanos(12_500);
        let types = vec![None, cpu, None, None, None];
        let fit = DemandFit { demands, cpu, log: None, types };
        DemandFile::new(("postgresql", "tpcc"), "r".to_string(), &fit, factors, rest)
    }

    #[test]
    fn what_is_written_is_read_back() {
        let file = file();
        let read = DemandFile::parse(&file.to_toml()).expect("its own form");
        assert_eq!(read, file);
        let demands = read.demands("postgresql", "tpcc").expect("the same");
        let defaults = DemandProfile::tpcc_postgresql();
        let mut expected =
            DemandProfile { cpu_factor: 1.5, background_cpu: Nanos(12_500), ..defaults.clone() };
        expected.types[1].cpu_base = Nanos::from_micros(180);
        assert_eq!(demands, expected, "what was not observed is as always");
        assert_eq!(file.observed.len(), 1, "what was not observed is not in the file");
        let factors: Vec<bool> = file.types.iter().map(|kind| kind.cpu_factor.is_some()).collect();
        assert_eq!(factors, [false, true, false, false, false]);
    }

    #[test]
    fn files_of_before_have_no_background() {
        let text = file().to_toml();
        let before: Vec<&str> =
            text.lines().filter(|line| !line.starts_with("background-cpu-us")).collect();
        assert!(before.len() < text.lines().count(), "{text}");
        let read = DemandFile::parse(&before.join("\n")).expect("its own form");
        let demands = read.demands("postgresql", "tpcc").expect("the same");
        assert_eq!(demands.background_cpu, Nanos::ZERO);
    }

    #[test]
    fn files_of_no_use_are_refused_with_the_reason() {
        let text = file().to_toml();
        let refused = |from: &str, to: &str| {
            assert!(text.contains(from), "{text}");
            DemandFile::parse(&text.replacen(from, to, 1)).expect_err("wrong")
        };
        assert_eq!(refused("format = 1", "format = 2"), DemandFileError::Format(2));
        let unknown = refused("format = 1", "format = 1\nspeed = 3").to_string();
        assert!(unknown.contains("line 6") && unknown.contains("speed"), "{unknown}");
        let negative = refused("value = 1.5", "value = -1.5").to_string();
        assert_eq!(negative, "the factor cpu-factor is -1.5; use a number from 0 to 1000");
        let other = file().demands("mariadb", "tpcc").expect_err("another engine").to_string();
        assert_eq!(other, "it is for tpcc on postgresql, and tpcc on mariadb is simulated");
    }
}
