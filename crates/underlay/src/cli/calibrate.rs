//! `underlay calibrate`: measures a file or block device and writes a device profile.
//!
//! Only reads, unless it created the file or the caller allows its content to be destroyed. Everything it creates is
//! registered for teardown first.

use crate::cli::whole_number::whole_number;
use crate::lab::interrupt;
use crate::stop::{Stop, chain};
use clap::Args;
use serde_json::json;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use underlay_blockio::{
    BlockIoError, Existing, MeasureSpec, Measured, Phase, SIZE_MIN, Target, TargetKind, fill,
    measure,
};
use underlay_core::{Bytes, RootSeed};
use underlay_host::{Resource, StateDir, Teardown};
use underlay_model::DeviceProfile;
use underlay_model::calibration::{
    Calibration, DeviceIdentity, FitPoint, PointKind, calibrate as fit,
};
use underlay_study::profile_toml;

/// Space that must stay free after a file was created.
const SPARE: Bytes = Bytes::from_mib(256);

/// Arguments of `underlay calibrate`.
#[derive(Debug, Args)]
#[command(
    after_help = "A folder: a file is created in it, filled, read and written, and removed. A file or a device: it is \
    only read, and the parameters of writes are assumed.\n\nUse the result in a study as the `overrides` of a device \
    with profile = \"null\"."
)]
pub struct Arguments {
    /// A folder, a regular file, or a block device.
    path: PathBuf,
    /// Name of the profile: lower-case letters, digits, `-` and `.`.
    #[arg(long, default_value = "calibrated")]
    name: String,
    /// Size of the file created in a folder (also the profile's `capacity`, which you can raise there), or how much of
    /// an existing file or device to use.
    #[arg(long, default_value = "2GiB")]
    size: Bytes,
    /// Seconds per phase; there are 5 read phases and 9 write phases.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Destroy the content of the file to measure writes too. Refused for devices.
    #[arg(long, conflicts_with = "overwrite_device")]
    overwrite_file: bool,
    /// Destroy the content of the block device to measure writes too. Refused for files, and while the device
    /// is mounted or in use.
    #[arg(long)]
    overwrite_device: bool,
    /// Write the profile to this file, which must not exist; the fit is then printed instead.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The seed of addresses and of the fit.
    #[arg(long, default_value_t = 1, value_parser = whole_number, allow_negative_numbers = true)]
    seed: u64,
    /// Print profile and fit as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    if !(0.05..=3600.0).contains(&arguments.seconds) {
        return Err(Stop::bad_input("--seconds must lie in 0.05 to 3600"));
    }
    // A measurement of minutes must not end in a name that no profile can have, or show nothing.
    if let Some(problem) = DeviceProfile::name_problem(&arguments.name) {
        let said = format!("--name is {}; {}", problem.value, problem.rule);
        return Err(Stop::bad_input(said).with_hint("for example --name my-nvme"));
    }
    if arguments.size < SIZE_MIN {
        return Err(Stop::bad_input(format!(
            "--size is {}; it must be at least {SIZE_MIN} to give usable results",
            arguments.size
        )));
    }
    let out = arguments.out.as_deref().map(reserve).transpose()?;
    interrupt::install();
    let (measured, kind, size) = if arguments.path.is_dir() {
        in_folder(arguments)?
    } else {
        let target = open(arguments)?;
        (measure_target(&target, arguments)?, target.kind(), target.size())
    };
    for doubt in &measured.doubts {
        errln!("underlay: {doubt}");
    }
    let identity = identity(arguments, &measured, kind, size);
    let seed = RootSeed(arguments.seed);
    let mut calibration = fit(&measured.measurements, &identity, seed)
        .map_err(|error| Stop::run_failed(chain(&error)))?;
    if measured.measurements.writes.is_none() {
        calibration.assumptions.push(UNPROVEN_PROTECTION.to_string());
    }
    if let Some(doubt) = poor_fit(&calibration) {
        errln!("underlay: {doubt}");
    }
    let profile = profile_toml(&calibration.profile);
    if let Some(out) = out {
        out.write(&profile)?;
    }
    print(arguments, &calibration, &measured, &profile);
    Ok(())
}

/// Of a target that was only read.
const UNPROVEN_PROTECTION: &str = "nothing was written: power-loss protection is assumed, so a power cut keeps the write \
                                   buffer; set `power-loss-protected = false` if the device has none";
/// A mean error beyond which a profile is not the device that was measured.
const POOR_FIT_PERCENT: f64 = 25.0;

/// What to say of a profile that is far from what was measured.
fn poor_fit(calibration: &Calibration) -> Option<String> {
    let mean = calibration.mean_error_percent();
    let worst = calibration.worst()?;
    (mean > POOR_FIT_PERCENT).then(|| {
        format!(
            "the profile does not fit the measurements: mean error {mean:.1} %, worst {:+.1} % ({}); measure again on \
             an idle host before using it",
            worst.error_percent(),
            worst.kind
        )
    })
}

/// The file that the profile will be in: made before anything is measured, because a full run must not end without a
/// place to write to, and taken away again when nothing comes of it.
struct Reserved<'a> {
    path: &'a Path,
    file: File,
    is_written: bool,
}

fn reserve(path: &Path) -> Result<Reserved<'_>, Stop> {
    let file = File::create_new(path).map_err(|error| {
        Stop::bad_input(format!("could not create {}: {error}", path.display()))
            .with_hint("name a file that does not exist yet")
    })?;
    Ok(Reserved { path, file, is_written: false })
}

impl Reserved<'_> {
    fn write(mut self, profile: &str) -> Result<(), Stop> {
        let written = self.file.write_all(profile.as_bytes());
        self.is_written = written.is_ok();
        written.map_err(|error| {
            Stop::host(format!("could not write {}: {error}", self.path.display()))
        })
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if !self.is_written
            && let Err(error) = std::fs::remove_file(self.path)
        {
            errln!("underlay: could not remove the empty {}: {error}", self.path.display());
        }
    }
}

fn open(arguments: &Arguments) -> Result<Target, Stop> {
    let path = &arguments.path;
    let opened = match (arguments.overwrite_file, arguments.overwrite_device) {
        (true, _) => Target::open_for_overwriting(path, Existing::OverwriteFile),
        (_, true) => Target::open_for_overwriting(path, Existing::OverwriteDevice),
        (false, false) => Target::open(path),
    };
    opened.map_err(|error| {
        let stop = stop(&error);
        match error {
            BlockIoError::OtherKind { .. } if arguments.overwrite_file => stop.with_hint(
                "--overwrite-file is for regular files; for a block device use --overwrite-device",
            ),
            BlockIoError::OtherKind { .. } if arguments.overwrite_device => stop.with_hint(
                "--overwrite-device is for block devices; for a file use --overwrite-file",
            ),
            _ => stop,
        }
    })
}

/// Measures a file of our own, and removes it whatever happens.
fn in_folder(arguments: &Arguments) -> Result<(Measured, TargetKind, Bytes), Stop> {
    let host = |error: underlay_host::HostError| Stop::host(chain(&error));
    let folder = arguments.path.canonicalize().map_err(|error| {
        Stop::bad_input(format!("could not open {}: {error}", arguments.path.display()))
    })?;
    let free = underlay_host::free_space(&folder).map_err(host)?;
    if free.0 < arguments.size.0 + SPARE.0 {
        return Err(Stop::host(format!(
            "{} has {free} free; a file of {} plus a reserve of {SPARE} does not fit",
            folder.display(),
            arguments.size
        ))
        .with_hint("choose a smaller --size"));
    }
    let state = StateDir::open().map_err(host)?;
    let teardown = Teardown::create(&state, "calibrate").map_err(host)?;
    let path = folder.join(format!(".underlay-calibrate-{}", std::process::id()));
    let ticket = teardown.register(Resource::File { path: path.clone() }).map_err(host)?;
    let outcome =
        Target::create(&path, arguments.size).map_err(|error| stop(&error)).and_then(|target| {
            let seed = RootSeed(arguments.seed);
            fill(&target, seed, &mut show_progress()).map_err(|error| stop(&error))?;
            Ok((measure_target(&target, arguments)?, target.kind(), target.size()))
        });
    teardown.release(ticket).map_err(host)?;
    let left = teardown.unwind();
    if let Some(left) = left.first() {
        return Err(Stop::left_behind(format!(
            "could not remove {}: {}",
            left.resource, left.reason
        )));
    }
    outcome
}

fn measure_target(target: &Target, arguments: &Arguments) -> Result<Measured, Stop> {
    let spec = MeasureSpec {
        depths: vec![1, 8, 32, 256],
        phase: Duration::from_secs_f64(arguments.seconds),
        working_set: used(target.size(), arguments),
        seed: RootSeed(arguments.seed),
    };
    measure(target, &spec, &mut show_progress()).map_err(|error| stop(&error))
}

/// The part of the target that is used: whole blocks of 1 MiB.
fn used(size: Bytes, arguments: &Arguments) -> Bytes {
    Bytes((size.0.min(arguments.size.0) >> 20) << 20)
}

/// Says each phase once, and whether the user wants to go on.
fn show_progress() -> impl FnMut(Phase) -> bool {
    let mut last = None;
    move |phase| {
        if last != Some(phase) {
            errln!("measuring: {}", words(phase));
            last = Some(phase);
        }
        !interrupt::requested()
    }
}

fn words(phase: Phase) -> String {
    match phase {
        Phase::Fill => "filling the file".to_string(),
        Phase::Read(depth) => format!("random reads, queue depth {depth}"),
        Phase::SequentialRead => "sequential reads".to_string(),
        Phase::SingleWrite => "single writes and flushes".to_string(),
        Phase::Burst => "flushes after bursts".to_string(),
        Phase::SequentialWrite => "sequential writes".to_string(),
        Phase::Mixed => "mixed reads and writes".to_string(),
        Phase::Sustained => "random writes until they are steady".to_string(),
    }
}

fn identity(
    arguments: &Arguments,
    measured: &Measured,
    kind: TargetKind,
    size: Bytes,
) -> DeviceIdentity {
    let what = match kind {
        TargetKind::File => "a file",
        TargetKind::BlockDevice => "a block device",
    };
    let writes = match measured.measurements.writes {
        Some(_) => "reads and writes",
        None => "reads only (writes, flushes and power-loss protection are assumed)",
    };
    DeviceIdentity {
        name: arguments.name.clone(),
        description: format!("Measured: {what}, {size}"),
        source: format!(
            "Measured by `underlay calibrate` on {what} with direct I/O, {writes}, {} s per phase, {} in use, seed \
             {}; every latency includes this host's overhead.",
            arguments.seconds,
            used(size, arguments),
            arguments.seed
        ),
        capacity: size,
    }
}

fn stop(error: &BlockIoError) -> Stop {
    let text = chain(error);
    match error {
        BlockIoError::Interrupted => Stop::interrupted(text),
        BlockIoError::NoRing { .. }
        | BlockIoError::NoDirectIo { .. }
        | BlockIoError::NoMemory { .. } => Stop::host(text),
        BlockIoError::WrongKind { .. }
        | BlockIoError::OtherKind { .. }
        | BlockIoError::Sparse { .. }
        | BlockIoError::TooSmall { .. }
        | BlockIoError::ReadOnly { .. }
        | BlockIoError::Target { action: "open" | "create" | "look at", .. } => {
            Stop::bad_input(text)
        }
        _ => Stop::run_failed(text),
    }
}

fn print(arguments: &Arguments, calibration: &Calibration, measured: &Measured, profile: &str) {
    if arguments.json {
        let points: Vec<_> = calibration.points.iter().map(point_json).collect();
        outln!(
            "{:#}",
            json!({
                "profile": profile,
                "mean_error_percent": calibration.mean_error_percent(),
                "points": points,
                "assumptions": calibration.assumptions,
                "doubts": measured.doubts,
            })
        );
    } else if arguments.out.is_some() {
        out!("{}", table(calibration));
    } else {
        out!("{profile}");
        err!("\n{}", table(calibration));
    }
}

fn point_json(point: &FitPoint) -> serde_json::Value {
    json!({
        "figure": point.kind.to_string(),
        "unit": point.kind.unit(),
        "measured": point.measured,
        "modelled": point.modelled,
        "error_percent": point.error_percent(),
    })
}

/// How well the profile fits, point by point.
fn table(calibration: &Calibration) -> String {
    let rows = calibration.points.iter().map(|point| {
        format!(
            "{:<40} {:>12} {:>12} {:>+8.1} %\n",
            point.kind.to_string(),
            figure(point.kind, point.measured),
            figure(point.kind, point.modelled),
            point.error_percent()
        )
    });
    let rows: String = rows.collect();
    let worst = calibration.worst().map_or(String::new(), |worst| {
        format!("; worst: {} ({:+.1} %)", worst.kind, worst.error_percent())
    });
    let assumed: String = calibration
        .assumptions
        .iter()
        .map(|assumption| format!("assumed: {assumption}\n"))
        .collect();
    format!(
        "{:<40} {:>12} {:>12} {:>10}\n{rows}mean error {:.1} %{worst}\n{assumed}",
        "",
        "measured",
        "profile",
        "error",
        calibration.mean_error_percent()
    )
}

fn figure(kind: PointKind, value: f64) -> String {
    match kind.unit() {
        "ns" => format!("{:.1} us", value / 1e3),
        "B/s" => format!("{:.1} MB/s", value / 1e6),
        _ => format!("{value:.0} /s"),
    }
}

#[cfg(test)]
mod tests {
    use super::{figure, poor_fit, table};
    use underlay_core::{Bytes, RootSeed};
    use underlay_model::builtin;
    use underlay_model::calibration::{
        DeviceIdentity, MeasurementPlan, PointKind, Sequential, calibrate, measure_device,
    };

    #[test]
    fn figures_carry_their_unit() {
        assert_eq!(figure(PointKind::ReadP99(8), 123_456.0), "123.5 us");
        assert_eq!(figure(PointKind::SteadyWrite, 90.1e6), "90.1 MB/s");
        assert_eq!(figure(PointKind::ReadIops(1), 9_876.4), "9876 /s");
    }

    #[test]
    fn the_table_shows_each_error_and_what_was_assumed() {
        let plan = MeasurementPlan {
            block_bytes: 4096,
            depths: vec![1, 16],
            requests: 2_000,
            sequential: Sequential::Skipped,
            writes: None,
        };
        let device = builtin::find("dc1500m-960").expect("built in");
        let identity = DeviceIdentity {
            name: "x".to_string(),
            description: String::new(),
            source: String::new(),
            capacity: Bytes::from_gib(1),
        };
        let measured = measure_device(&device, &plan, RootSeed(1));
        let calibration = calibrate(&measured, &identity, RootSeed(1)).expect("two depths");
        let text = table(&calibration);
        assert_eq!(text.lines().filter(|line| line.ends_with(" %")).count(), 8, "{text}");
        assert!(text.contains("mean error ") && text.contains("worst: "), "{text}");
        assert!(text.contains("assumed: nothing was written"), "{text}");
        assert_eq!(poor_fit(&calibration), None, "{text}");
        let mut far = calibration;
        far.points[0].modelled = 1_000.0 * far.points[0].measured;
        let doubt = poor_fit(&far).expect("far off");
        assert!(doubt.contains("+99900.0 %") && doubt.contains("idle host"), "{doubt}");
    }
}
