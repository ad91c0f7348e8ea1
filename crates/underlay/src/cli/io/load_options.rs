//! The requested load: a profile, with the command line's changes.

use super::options::LoadArguments;
use crate::cli::complaints::Complaints;
use crate::exit_code;
use crate::stop::Stop;
use std::path::Path;
use underlay_core::Bytes;
use underlay_study::{
    Colour, Source, builtin_io_profiles, find_io_profile, parse_io_profile, suggest_io_profile,
};
use underlay_workload::block::{
    BlockStream, Content, FlushPolicy, IoProfile, Locality, Runs, SizeShare, Zone,
};

/// Requests in flight of one job that a ring has room for.
const IN_FLIGHT_MAX: u32 = 16_384;

/// The profile named on the command line, changed by its options as far as they make sense.
pub fn profile(options: &LoadArguments, complaints: &mut Complaints) -> Result<IoProfile, Stop> {
    let name = options.profile.as_deref().expect("required by the parser");
    let mut profile = find(name)?;
    change_streams(options, &mut profile, complaints);
    change_pace(options, &mut profile, complaints);
    if let Some(ratio) = options.compress_ratio {
        profile.content.compress_ratio = ratio;
    }
    if let Some(percent) = options.duplicate_percent {
        profile.content.duplicate_share = percent / 100.0;
    }
    if let Err(error) = Content::new(profile.content, options.root()) {
        complaints.add(error.to_string());
    }
    for job in &profile.jobs {
        let in_flight = job.concurrency.threads.checked_mul(job.concurrency.queue_depth);
        if in_flight.is_none_or(|count| count == 0 || count > IN_FLIGHT_MAX) {
            complaints
                .add(format!("threads x queue depth of a target must lie in 1 to {IN_FLIGHT_MAX}"));
        }
    }
    Ok(profile)
}

/// A file wins over a built-in load of the same name only when it is written as a path.
fn find(name: &str) -> Result<IoProfile, Stop> {
    if let Some(profile) = find_io_profile(name) {
        return Ok(profile.clone());
    }
    let text = match underlay_host::read_small_text(Path::new(name)) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let stop = Stop::bad_input(format!("there is no load or file `{name}`"));
            return Err(match suggest_io_profile(name) {
                Some(similar) => stop.with_hint(format!("did you mean `{similar}`?")),
                None => {
                    let names = builtin_io_profiles().iter().map(|profile| profile.name.as_str());
                    stop.with_hint(format!("built-in: {}", names.collect::<Vec<_>>().join(", ")))
                }
            });
        }
        Err(error) => return Err(Stop::bad_input(format!("could not read `{name}`: {error}"))),
    };
    parse_io_profile(&Source { name: name.to_string(), text }).map_err(|problems| {
        let width = crate::cli::terminal::width();
        let ansi = crate::cli::terminal::colours_on_stderr();
        err!("{}", problems.render(width, if ansi { Colour::Ansi } else { Colour::Plain }));
        Stop::silent(exit_code::BAD_INPUT)
    })
}

fn change_pace(options: &LoadArguments, profile: &mut IoProfile, complaints: &mut Complaints) {
    if options.threads.is_some() || options.queue_depth.is_some() {
        if profile.jobs.len() > 1 {
            several(profile, "--threads and --queue-depth", complaints);
        } else {
            let job = &mut profile.jobs[0];
            job.concurrency.threads = options.threads.unwrap_or(job.concurrency.threads);
            job.concurrency.queue_depth =
                options.queue_depth.unwrap_or(job.concurrency.queue_depth);
        }
    }
    if options.max || options.curve {
        profile.unpace();
    }
    match options.rate {
        None => {}
        Some(rate) if rate > 0.0 && rate <= 1e7 => profile.set_rate(rate, options.arrivals()),
        Some(_) => complaints.add("--rate must lie above 0, up to 10 million"),
    }
}

fn change_streams(options: &LoadArguments, profile: &mut IoProfile, complaints: &mut Complaints) {
    let changed = options.block_size.is_some()
        || options.read_percent.is_some()
        || options.random_percent.is_some()
        || options.zipf.is_some()
        || options.zones.is_some();
    let streams: usize = profile.jobs.iter().map(|job| job.workload.streams.len()).sum();
    let one = streams == 1;
    if changed && !one {
        several(
            profile,
            "--block-size, --read-percent, --random-percent, --zipf and --zones",
            complaints,
        );
    }
    if options.flush_every == Some(0) {
        complaints.add("--flush-every must be 1 or more");
    }
    for stream in profile.jobs.iter_mut().flat_map(|job| &mut job.workload.streams) {
        if one {
            change_stream(options, stream, complaints);
        }
        if stream.read_share < 1.0 {
            match (options.flush_every, options.write_through) {
                (Some(every), _) => stream.durability = FlushPolicy::FlushEvery(every.max(1)),
                (None, true) => stream.durability = FlushPolicy::WriteThrough,
                (None, false) => {}
            }
        }
    }
}

fn several(profile: &IoProfile, options: &str, complaints: &mut Complaints) {
    complaints.add_with_hint(
        format!("`{}` has several jobs or streams, so {options} would be ambiguous", profile.name),
        format!("change a copy of it: underlay show {} > mine.toml", profile.name),
    );
}

fn change_stream(options: &LoadArguments, stream: &mut BlockStream, complaints: &mut Complaints) {
    if let Some(text) = &options.block_size {
        match sizes(text) {
            Some(sizes) => stream.sizes = sizes,
            None => complaints.add_with_hint(
                format!("--block-size `{text}` is not a size or a mix of sizes"),
                "write 8KiB, or 8KiB:90,32KiB:10; multiples of 512 B up to 64 MiB",
            ),
        }
        if stream.sizes.len() > 1 {
            stream.runs = Runs::PerThread;
        }
    }
    if let Some(percent) = options.read_percent
        && let Some(share) = share(percent, "--read-percent", complaints)
    {
        stream.read_share = share;
    }
    if let Some(percent) = options.random_percent
        && let Some(share) = share(percent, "--random-percent", complaints)
    {
        stream.random_share = share;
        let sequential = stream.random_share == 0.0 && stream.sizes.len() == 1;
        stream.runs = if sequential { Runs::Interleaved } else { Runs::PerThread };
    }
    match options.zipf {
        Some(exponent) if exponent > 0.0 && exponent <= 5.0 => {
            stream.locality = Locality::Zipf { exponent };
        }
        Some(_) => complaints.add("--zipf must lie above 0, up to 5"),
        None => {}
    }
    if let Some(text) = &options.zones {
        match zones(text) {
            Some(zones) => stream.locality = zones,
            None => complaints.add_with_hint(
                format!("--zones `{text}` must cover all of the space and all accesses"),
                "write percent of space / percent of accesses: 5/95,10/4,85/1",
            ),
        }
    }
}

fn share(percent: f64, option: &str, complaints: &mut Complaints) -> Option<f64> {
    if (0.0..=100.0).contains(&percent) {
        return Some(percent / 100.0);
    }
    complaints.add(format!("{option} must lie in 0 to 100"));
    None
}

fn sizes(text: &str) -> Option<Vec<SizeShare>> {
    let part = |part: &str| {
        let (size, weight) = part.split_once(':').unwrap_or((part, "1"));
        let bytes: Bytes = size.trim().parse().ok()?;
        let weight: f64 = weight.trim().parse().ok()?;
        let fits = (512..=64 << 20).contains(&bytes.0) && bytes.0.is_multiple_of(512);
        (fits && weight > 0.0 && weight.is_finite())
            .then_some(SizeShare { bytes: bytes.0 as u32, weight })
    };
    text.split(',').map(part).collect()
}

fn zones(text: &str) -> Option<Locality> {
    let zone = |part: &str| {
        let (space, access) = part.split_once('/')?;
        let percent = |text: &str| text.trim().parse::<f64>().ok().map(|percent| percent / 100.0);
        Some(Zone { space_share: percent(space)?, access_share: percent(access)? })
    };
    let zones = text.split(',').map(zone).collect::<Option<Vec<Zone>>>()?;
    let is_one = |shares: f64| (shares - 1.0).abs() < 1e-6;
    let sound = is_one(zones.iter().map(|zone| zone.space_share).sum())
        && is_one(zones.iter().map(|zone| zone.access_share).sum())
        && zones.iter().all(|zone| zone.space_share > 0.0 && zone.access_share >= 0.0);
    sound.then_some(Locality::Zones(zones))
}

#[cfg(test)]
mod tests {
    use super::{sizes, zones};
    use underlay_workload::block::Locality;

    #[test]
    fn mixes_and_hot_spots_are_read() {
        let mix = sizes("8KiB:90, 32KiB:10").expect("a mix");
        assert_eq!(mix.iter().map(|size| size.bytes).collect::<Vec<_>>(), [8192, 32768]);
        assert_eq!(sizes("4KiB").expect("a size")[0].weight, 1.0);
        for wrong in ["", "4", "1000B", "8KiB:0", "128MiB", "8KiB:x"] {
            assert!(sizes(wrong).is_none(), "{wrong}");
        }
        assert!(
            matches!(zones("5/95,10/4,85/1"), Some(Locality::Zones(zones)) if zones.len() == 3)
        );
        for wrong in ["", "5/95", "50/50,50/60", "0/50,100/50"] {
            assert!(zones(wrong).is_none(), "{wrong}");
        }
    }
}
