//! Commands from outside: one thread per connection, each command on its own line.
//!
//! These threads have real-time priority too, though the lowest: one that was interrupted while it holds the
//! engine's lock would hold up the reader and the completer.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use tracing::{info, warn};
use underlay_core::RootSeed;

use super::export::Export;
use super::realtime::prioritise;
use super::statistics::take;
use crate::control::{
    Answer, Command, DeviceStat, EncodedHistogram, LatencyEntry, Stat, TimingEntry, VolumeStat,
};
use crate::path_cost::PathCost;

/// Below the reader.
const CONTROL_PRIORITY: i32 = 9;

/// Accepts connections for ever.
pub(crate) fn listen(export: &Arc<Export>, listener: &UnixListener, seed: RootSeed) {
    for connection in listener.incoming() {
        let Ok(connection) = connection else { continue };
        let export = Arc::clone(export);
        let served = thread::Builder::new().name("control-client".to_string()).spawn(move || {
            prioritise(CONTROL_PRIORITY);
            if let Err(error) = converse(&export, &connection, seed) {
                warn!("control connection lost: {error}");
            }
        });
        if let Err(error) = served {
            warn!("no thread for a control connection: {error}");
        }
    }
}

fn converse(export: &Export, connection: &UnixStream, seed: RootSeed) -> io::Result<()> {
    let mut writer = connection;
    for line in BufReader::new(connection).lines() {
        let answer = match serde_json::from_str::<Command>(&line?) {
            Ok(command) => obey(export, &command, seed),
            Err(error) => Answer::Refused { reason: error.to_string() },
        };
        let mut text = serde_json::to_string(&answer)?;
        text.push('\n');
        writer.write_all(text.as_bytes())?;
    }
    Ok(())
}

fn obey(export: &Export, command: &Command, seed: RootSeed) -> Answer {
    match command {
        Command::Ping => Answer::Done,
        Command::Stat => Answer::Stat(stat(export)),
        Command::Latency => Answer::Latency(latency(export)),
        Command::Timing => Answer::Timing(timing(export)),
        Command::SetTiming(mode) => {
            export.engine().set_mode(*mode);
            Answer::Done
        }
        Command::Compensate(line) => {
            export.engine().path = PathCost::calibrated(*line);
            Answer::Done
        }
        Command::PowerCut => power_cut(export, seed),
        Command::PowerOn => {
            export.engine().power_on();
            info!("power on");
            Answer::Done
        }
    }
}

fn stat(export: &Export) -> Stat {
    let volatile: Vec<u64> =
        export.volumes.iter().map(|volume| volume.data.volatile_bytes()).collect();
    let now = export.clock.now();
    let mut engine = export.engine();
    let volumes = volatile
        .into_iter()
        .enumerate()
        .map(|(volume, volatile_bytes)| VolumeStat {
            operations: engine.statistics.volumes[volume].operations,
            in_flight: engine.in_flight(volume),
            volatile_bytes,
        })
        .collect();
    let devices = engine
        .buffers(now)
        .into_iter()
        .map(|(buffer_fill_bytes, drained_bytes)| DeviceStat { buffer_fill_bytes, drained_bytes })
        .collect();
    Stat {
        volumes,
        devices,
        delayed: engine.statistics.delayed.total,
        host_limited: engine.statistics.host_limited.total,
        lateness_ns: engine.statistics.lateness_ns,
        errors: engine.statistics.errors,
        realtime: export.is_realtime.load(Ordering::Relaxed),
    }
}

/// Histograms are copied under the lock and encoded outside: the requests must not wait for it.
fn latency(export: &Export) -> Vec<LatencyEntry> {
    let taken = export.engine().statistics.take_latency();
    taken
        .into_iter()
        .map(|(volume, operation, histogram)| LatencyEntry {
            volume,
            operation,
            histogram: EncodedHistogram::encode(&histogram),
        })
        .collect()
}

fn timing(export: &Export) -> TimingEntry {
    let (lateness, modelled) = {
        let statistics = &mut export.engine().statistics;
        (take(&mut statistics.lateness), take(&mut statistics.modelled))
    };
    let (lateness, modelled) =
        (EncodedHistogram::encode(&lateness), EncodedHistogram::encode(&modelled));
    let mut engine = export.engine();
    TimingEntry {
        lateness,
        modelled,
        delayed: engine.statistics.delayed.take(),
        host_limited: engine.statistics.host_limited.take(),
        modelled_ios: engine.statistics.modelled_ios.take(),
        modelled_ns: engine.statistics.modelled_ns.take(),
        wake_ns: engine.path.wake().0,
        compensation_ns: engine.path.compensation().0,
    }
}

/// First no more requests, then the fate of what is volatile, then errors for what was in flight.
fn power_cut(export: &Export, seed: RootSeed) -> Answer {
    let (in_flight, cycle) = {
        let mut engine = export.engine();
        if !engine.is_powered() {
            return Answer::Refused { reason: "the power is off already".to_string() };
        }
        (engine.power_off(), engine.power_cycles())
    };
    let (mut kept, mut lost, mut torn) = (0, 0, 0);
    for volume in &export.volumes {
        let mut random = seed.stream(&format!("power-cut.{}", volume.name), cycle);
        match volume.data.power_cut(&mut random) {
            Ok(outcome) => {
                kept += outcome.kept;
                lost += outcome.lost;
                torn += outcome.torn;
            }
            Err(error) => {
                return Answer::Refused {
                    reason: format!("the backing file of `{}` failed: {error}", volume.name),
                };
            }
        }
    }
    let failed = in_flight.len();
    in_flight.into_iter().for_each(|reply| export.fail(reply));
    info!("power cut: {kept} blocks kept, {lost} lost, {torn} torn, {failed} requests failed");
    Answer::PowerCut { kept, lost, torn }
}
