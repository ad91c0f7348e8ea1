//! Files of comma-separated values: quoting, the folder, the index of columns.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use underlay_core::Histogram;

use crate::entities::{Interval, RunId};
use crate::error::ExportError;

/// A column: its name and what it holds.
pub(super) type ColumnDoc<'a> = (&'a str, &'a str);

pub(super) struct Directory {
    pub(super) path: PathBuf,
    pub(super) files: Vec<PathBuf>,
    pub(super) documentation: String,
}

impl Directory {
    pub(super) fn open(path: &Path) -> Result<Directory, ExportError> {
        let write = |source| ExportError::Write { path: path.to_path_buf(), source };
        std::fs::create_dir_all(path).map_err(write)?;
        if std::fs::read_dir(path).map_err(write)?.next().is_some() {
            return Err(ExportError::NotEmpty { path: path.to_path_buf() });
        }
        let documentation = "# Columns\n\nTimes are nanoseconds on the clock of the run; \
                             `runs.csv` has the wall clock time of its origin.\n"
            .to_string();
        Ok(Directory { path: path.to_path_buf(), files: Vec::new(), documentation })
    }

    pub(super) fn table(
        &mut self,
        name: &str,
        about: &str,
        columns: &[ColumnDoc<'_>],
    ) -> Result<CsvFile, ExportError> {
        self.documentation.push_str(&format!("\n## {name}.csv\n\n{about}\n\n"));
        for (column, meaning) in columns {
            self.documentation.push_str(&format!("- `{column}`: {meaning}\n"));
        }
        let path = self.path.join(format!("{name}.csv"));
        assert!(!self.files.contains(&path), "{} would be overwritten", path.display());
        self.files.push(path.clone());
        let mut file = CsvFile::create(path, columns.len())?;
        let header: Vec<String> = columns.iter().map(|(name, _)| name.to_string()).collect();
        file.row(&header)?;
        Ok(file)
    }

    /// The name, or one like it if a table has that name already.
    pub(super) fn unused(&self, name: &str) -> String {
        let is_used = |name: &str| self.files.contains(&self.path.join(format!("{name}.csv")));
        let others = (2..).map(|number| format!("{name}-{number}"));
        let unused = std::iter::once(name.to_string()).chain(others).find(|name| !is_used(name));
        unused.expect("there are more numbers than files")
    }

    pub(super) fn finish(mut self) -> Result<Vec<PathBuf>, ExportError> {
        let path = self.path.join("COLUMNS.md");
        std::fs::write(&path, self.documentation)
            .map_err(|source| ExportError::Write { path: path.clone(), source })?;
        self.files.push(path);
        Ok(self.files)
    }
}

pub(super) struct CsvFile {
    pub(super) path: PathBuf,
    pub(super) writer: BufWriter<File>,
    columns: usize,
}

impl CsvFile {
    pub(super) fn create(path: PathBuf, columns: usize) -> Result<CsvFile, ExportError> {
        match File::create(&path) {
            Ok(file) => Ok(CsvFile { path, writer: BufWriter::new(file), columns }),
            Err(source) => Err(ExportError::Write { path, source }),
        }
    }

    pub(super) fn row(&mut self, cells: &[String]) -> Result<(), ExportError> {
        assert_eq!(cells.len(), self.columns, "a cell per column in {}", self.path.display());
        let line: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
        writeln!(self.writer, "{}", line.join(","))
            .map_err(|source| ExportError::Write { path: self.path.clone(), source })
    }

    pub(super) fn close(mut self) -> Result<(), ExportError> {
        self.writer.flush().map_err(|source| ExportError::Write { path: self.path, source })
    }
}

pub(super) fn quoted(cell: &str) -> String {
    let cell = if is_formula(cell) { format!("'{cell}") } else { cell.to_string() };
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell
    }
}

/// Whether a spreadsheet would calculate the cell instead of showing it. A number is no formula.
fn is_formula(cell: &str) -> bool {
    let begins_so = cell.starts_with(['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠']);
    begins_so && cell.parse::<f64>().is_err()
}

pub(super) fn text<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

pub(super) fn run_text(run: Option<RunId>) -> String {
    text(run.map(|run| run.0))
}

pub(super) fn window(run: RunId, interval: Interval) -> [String; 3] {
    [run.0.to_string(), interval.begin.0.to_string(), interval.end.0.to_string()]
}

pub(super) fn buckets(histogram: &Histogram) -> String {
    let texts: Vec<String> =
        histogram.buckets().map(|(low, width, n)| format!("{low}:{width}:{n}")).collect();
    texts.join(" ")
}

pub(super) fn value_text(values: Option<&[f64]>, i: usize) -> String {
    // Adding zero takes the sign of a zero, which some counters arrive with.
    text(values.map(|values| values[i] + 0.0).filter(|value| !value.is_nan()))
}
