//! Demand profiles as TOML files: what transactions cost, each value with its source and, where it
//! was measured, its spread.
//!
//! A recorded run does not tell the processor time of transaction types apart. Therefore a file has
//! the default's types and one factor for all of them, which is what was measured.

use serde::{Deserialize, Serialize};
use underlay_core::Nanos;
use underlay_engine::{DemandProfile, TypeDemand};

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
    source: String,
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

const TYPES_SOURCE: &str =
    "default; the record does not distinguish the types, so the factors above scale all of them";

impl DemandFile {
    /// The default demands with factors that were fitted, `observed` in the order of processors,
    /// log, and the rest. A factor that was not observed is 1.
    pub fn new(
        (engine, workload): (&str, &str),
        source: String,
        demands: &DemandProfile,
        [cpu, log]: [Observed; 2],
        rest: Vec<Observed>,
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
        let kind = |kind: &TypeDemand| Type {
            name: kind.name.clone(),
            cpu_us: micros(kind.cpu_base),
            cpu_per_unit_us: micros(kind.cpu_per_unit),
            log_bytes: kind.log_bytes_base,
            log_bytes_per_unit: kind.log_bytes_per_unit,
            source: TYPES_SOURCE.to_string(),
        };
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
                source: "default, scaled with the processor time of the types; client and I/O as observed, \
                         where they are below"
                    .to_string(),
            },
            types: demands.types.iter().map(kind).collect(),
            observed: rest.into_iter().filter_map(value).collect(),
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
            read_cpu_us, write_cpu_us, log_flush_cpu_us, client_cpu_us, io_cpu_us, ..
        } = file.per_page;
        for time in [read_cpu_us, write_cpu_us, log_flush_cpu_us, client_cpu_us, io_cpu_us] {
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
    use crate::databases::Range;
    use underlay_engine::DemandProfile;

    fn file() -> DemandFile {
        let observed = |name, range| Observed { name, range, source: "a record".to_string() };
        let cpu = Some(Range { value: 1.5, low: 1.4, high: 1.75 });
        let rest = vec![observed("pages-missed-per-transaction", cpu), observed("x", None)];
        let factors = [observed("cpu-factor", cpu), observed("log-factor", None)];
        let demands = DemandProfile::tpcc_postgresql();
        DemandFile::new(("postgresql", "tpcc"), "r".to_string(), &demands, factors, rest)
    }

    #[test]
    fn what_is_written_is_read_back() {
        let file = file();
        let read = DemandFile::parse(&file.to_toml()).expect("its own form");
        assert_eq!(read, file);
        let demands = read.demands("postgresql", "tpcc").expect("the same");
        let expected = DemandProfile { cpu_factor: 1.5, ..DemandProfile::tpcc_postgresql() };
        assert_eq!(demands, expected, "what was not observed is as always");
        assert_eq!(file.observed.len(), 1, "what was not observed is not in the file");
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
