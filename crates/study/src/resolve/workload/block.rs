//! The block load: merging, scaling and checking what only it has. Its procedure is in `block_procedure`.

use std::ops::Range;

use underlay_core::{Arrivals, Bytes};
use underlay_workload::block::{Concurrency, IoProfile, Pace};

use crate::entry::Section;
use crate::exact;
use crate::file::Volumes;
use crate::file::block::Block;
use crate::limits::{BLOCK_FILE_MIN, BLOCK_IN_FLIGHT_MAX, CURVE_PERCENT, CURVE_POINTS, RUNGS_MAX};
use crate::plan::{BlockPlan, Scale, Setting, scaled_concurrency};
use crate::resolve::chosen::{Chosen, Layer, Pick};
use crate::resolve::io_profiles;
use crate::resolve::resolver::Resolver;
use crate::resolve::volume_scale::VolumeScale;
use crate::scale;

/// The path of its section.
pub(super) const PATH: &str = "workload.block";
/// Verified blocks carry marks, which cannot be compressed away.
const VERIFIED_RATIO_MAX: f64 = 25.0;

/// The decisions about a block load.
#[derive(Clone, Debug)]
pub(super) struct BlockChoice {
    /// The profile's name where it was chosen; the others lead to the plan.
    name: Chosen<String>,
    profile: IoProfile,
    threads: Option<Chosen<Vec<u32>>>,
    queue_depth: Option<Chosen<u32>>,
    rate_per_second: Option<Chosen<f64>>,
    arrivals: Chosen<Arrivals>,
    curve: Option<Chosen<Vec<u32>>>,
    working_set: Chosen<Bytes>,
    precondition: Chosen<u32>,
    verify: Chosen<bool>,
}

impl BlockChoice {
    /// As the plan holds it.
    pub fn plan(&self) -> BlockPlan {
        let mut profile = self.profile.clone();
        if let ([job], Some(depth)) = (&mut profile.jobs[..], &self.queue_depth) {
            job.concurrency.queue_depth = depth.value;
        }
        BlockPlan {
            threads: self.ladder(),
            profile,
            rate_per_second: self.rate_per_second.as_ref().map(|rate| rate.value),
            arrivals: self.arrivals.value,
            curve: self.curve.as_ref().map_or_else(Vec::new, |curve| curve.value.clone()),
            working_set: self.working_set.value,
            precondition: self.precondition.value,
            verify: self.verify.value,
        }
    }

    /// Threads per volume of each rung.
    pub fn ladder(&self) -> Vec<u32> {
        match &self.threads {
            Some(threads) => threads.value.clone(),
            None => vec![self.profile.jobs.iter().map(|job| job.concurrency.threads).sum()],
        }
    }

    /// The top of the ladder, where it was decided.
    pub fn top(&self) -> Chosen<u32> {
        let top = self.ladder().into_iter().max().unwrap_or(1);
        match &self.threads {
            Some(threads) => threads.with(top),
            None => self.name.with(top),
        }
    }

    /// At the size of the plan; `volumes` is the largest number of equal volumes of the study.
    pub fn scale(&mut self, scale: Scale, volumes: u32) -> VolumeScale {
        let full = self.plan();
        let top = full.threads.iter().copied().max().unwrap_or(1);
        let before = full.in_flight(top);
        self.scale_concurrency(&full, scale);
        let scaled = self.plan();
        let after = scaled.in_flight(scaled.threads.iter().copied().max().unwrap_or(1));
        // What requests in flight could not be divided by, the number of volumes is.
        let left = f64::from(scale.divisor) * f64::from(after) / f64::from(before.max(1));
        let count = (left.round() as u32).clamp(1, volumes.min(scale.divisor).max(1));
        let size = Scale { divisor: (scale.divisor / count).max(1) };
        let set = self.working_set.value;
        self.working_set =
            self.working_set.scaled(scale::size(set, size, BLOCK_FILE_MIN), exact::size(set));
        if let Some(rate) = &mut self.rate_per_second {
            *rate = rate.scaled(rate.value / f64::from(scale.divisor), rate.value.to_string());
        }
        for job in &mut self.profile.jobs {
            if let Pace::Open { rate_per_second, .. } = &mut job.pace {
                *rate_per_second /= f64::from(size.divisor);
            }
        }
        VolumeScale { count, size }
    }

    fn scale_concurrency(&mut self, full: &BlockPlan, scale: Scale) {
        for job in &mut self.profile.jobs {
            job.concurrency = scaled_concurrency(job.concurrency, scale.divisor);
        }
        let [job] = &full.profile.jobs[..] else { return };
        let queue_depth = job.concurrency.queue_depth;
        let top = full.threads.iter().copied().max().unwrap_or(1);
        let least = scaled_concurrency(Concurrency { threads: top, queue_depth }, scale.divisor);
        // All rungs have one queue depth: that which the highest is left with.
        let of_rung = |threads: u32| {
            let in_flight = f64::from(threads * queue_depth) / f64::from(scale.divisor);
            (in_flight / f64::from(least.queue_depth)).round().max(1.0) as u32
        };
        if let Some(threads) = &mut self.threads {
            let written = format!("{:?}", threads.value);
            let mut ladder: Vec<u32> = threads.value.iter().copied().map(of_rung).collect();
            ladder.dedup();
            *threads = threads.scaled(ladder, written);
        } else if let [job] = &mut self.profile.jobs[..] {
            job.concurrency.threads = of_rung(top);
        }
        if let Some(depth) = &mut self.queue_depth {
            *depth = depth.scaled(least.queue_depth, depth.value.to_string());
        } else if let [job] = &mut self.profile.jobs[..] {
            job.concurrency.queue_depth = least.queue_depth;
        }
    }

    /// The lines of the provenance table.
    pub fn settings(&self) -> Vec<Setting> {
        let mut rows = vec![self.name.setting(self.name.value.clone())];
        rows.extend(self.threads.iter().map(|c| c.setting(format!("{:?}", c.value))));
        rows.extend(self.queue_depth.iter().map(|c| c.setting(c.value.to_string())));
        rows.extend(self.rate_per_second.iter().map(|c| c.setting(c.value.to_string())));
        rows.extend(self.curve.iter().map(|c| c.setting(format!("{:?}", c.value))));
        if self.rate_per_second.is_some() || self.curve.is_some() {
            rows.push(self.arrivals.setting(self.arrivals.value.as_str().to_string()));
        }
        rows.push(self.working_set.setting(exact::size(self.working_set.value)));
        rows.push(self.precondition.setting(self.precondition.value.to_string()));
        rows.push(self.verify.setting(self.verify.value.to_string()));
        rows
    }
}

/// The largest number of equal volumes that any design of the study has.
pub(super) fn equal_volumes(resolver: &Resolver<'_>) -> u32 {
    let designs = resolver.file.design.get().map_or(&[][..], Vec::as_slice);
    let sections = designs.iter().map(|design| &design.volumes).chain([&resolver.file.volumes]);
    let counts = sections.flat_map(|volumes| {
        (0..Volumes::NAMES.len()).filter_map(move |position| volumes.at(position).count.get())
    });
    counts.copied().max().and_then(|count| u32::try_from(count).ok()).unwrap_or(1)
}

/// Decides about `[workload.block]` at full size.
pub(super) fn resolve(
    resolver: &mut Resolver<'_>,
    file: &Section<Block>,
    default: &Block,
) -> Option<BlockChoice> {
    let at = |key: &str| format!("{PATH}.{key}");
    let own = io_profiles::resolve(resolver);
    if file.profile.is_absent() {
        resolver.report.add(
            file.span.clone(),
            "missing-key",
            "`workload.block` does not say what is asked of the volumes",
            "`profile` is missing",
            "add for example profile = \"4k-random-70-30\"; `underlay list io-profiles` shows them",
        );
    }
    let profile = io_profiles::io_profile(resolver, &file.profile, &own);
    let threads = resolver.pick(&at("threads"), &[(Layer::File, &file.threads)]);
    let queue_depth = resolver.pick(&at("queue-depth"), &[(Layer::File, &file.queue_depth)]);
    let rate = resolver.pick(&at("rate-per-second"), &[(Layer::File, &file.rate_per_second)]);
    let curve = resolver.pick(&at("curve"), &[(Layer::File, &file.curve)]);
    let arrivals = [(Layer::File, &file.arrivals), (Layer::Default, &default.arrivals)];
    let arrivals = resolver.pick(&at("arrivals"), &arrivals).found();
    let set = [(Layer::File, &file.working_set), (Layer::Default, &default.working_set)];
    let working_set = resolver.pick(&at("working-set"), &set).found();
    let passes = [(Layer::File, &file.precondition), (Layer::Default, &default.precondition)];
    let precondition = resolver.pick(&at("precondition"), &passes).found();
    let verify = [(Layer::File, &file.verify), (Layer::Default, &default.verify)];
    let verify = resolver.pick(&at("verify"), &verify).found();

    let is_sound = check_ladders(resolver, &threads, &curve);
    check_clock(resolver, file, &curve);
    if let Some(set) = &working_set
        && set.value < BLOCK_FILE_MIN
    {
        set.problem(
            &mut resolver.report,
            "out-of-range",
            format!("{} is too small for a file that blocks are written to", set.called()),
            format!("{} is less than {BLOCK_FILE_MIN}", set.value),
            "write for example working-set = \"1GiB\"",
        );
    }
    let refused = [&threads, &curve].into_iter().any(|pick| matches!(pick, Pick::Refused))
        || matches!(queue_depth, Pick::Refused)
        || matches!(rate, Pick::Refused);
    let picked = resolver.pick(&at("profile"), &[(Layer::File, &file.profile)]).found();
    let choice = BlockChoice {
        name: picked?,
        profile: profile?,
        threads: threads.found(),
        queue_depth: queue_depth.found().and_then(|depth| {
            let narrow = u32::try_from(depth.value).ok()?;
            Some(depth.with(narrow))
        }),
        rate_per_second: rate.found(),
        arrivals: arrivals?,
        curve: curve.found(),
        working_set: working_set?,
        precondition: precondition
            .and_then(|passes| Some(passes.with(u32::try_from(passes.value).ok()?)))?,
        verify: verify?,
    };
    if refused || !is_sound {
        return None;
    }
    check_block(resolver, &choice).then_some(choice)
}

/// Rungs and points ascend.
fn check_ladders(
    resolver: &mut Resolver<'_>,
    threads: &Pick<Vec<u32>>,
    curve: &Pick<Vec<u32>>,
) -> bool {
    let mut is_sound = true;
    let ladders = [
        (threads, RUNGS_MAX, 1..=u32::MAX, "write for example threads = [1, 8, 32]"),
        (curve, CURVE_POINTS, CURVE_PERCENT, "write for example curve = [10, 50, 90, 100]"),
    ];
    for (pick, most, range, remedy) in ladders {
        let Pick::Found(ladder) = pick else { continue };
        let descends = ladder.value.windows(2).find(|pair| pair[0] >= pair[1]);
        let outside = ladder.value.iter().find(|value| !range.contains(value));
        let (code, reason) = if ladder.value.is_empty() {
            ("empty", "an empty list measures nothing".to_string())
        } else if ladder.value.len() > most {
            ("out-of-range", format!("{} are more than {most}", ladder.value.len()))
        } else if let Some(value) = outside {
            let (low, high) = (range.start(), range.end());
            ("out-of-range", format!("{value} does not lie in {low} to {high}"))
        } else if let Some(pair) = descends {
            ("not-ascending", format!("{} comes after {}", pair[1], pair[0]))
        } else {
            continue;
        };
        let message = format!("{} is not a ladder", ladder.called());
        ladder.problem(&mut resolver.report, code, message, reason, remedy);
        is_sound = false;
    }
    is_sound
}

/// A clock is either a rate or a curve.
fn check_clock(resolver: &mut Resolver<'_>, file: &Block, curve: &Pick<Vec<u32>>) {
    if let (Some(_), Some(span)) = (file.rate_per_second.span(), file.curve.span()) {
        resolver.report.at(
            &span,
            "conflict",
            "`workload.block` names both `rate-per-second` and `curve`",
            "a curve finds its rates itself",
            "remove one of them",
        );
    }
    let has_clock = !file.rate_per_second.is_absent() || !file.curve.is_absent();
    if let Some(span) = file.arrivals.span()
        && !has_clock
    {
        resolver.report.at(
            &span,
            "conflict",
            "`workload.block.arrivals` has no effect without a clock",
            "neither `rate-per-second` nor `curve` is given",
            "remove it, or add for example rate-per-second = 1000.0",
        );
    }
    if let (Some(rungs), Pick::Found(_)) = (file.threads.get(), curve)
        && rungs.len() > 1
    {
        resolver.report.add(
            file.threads.span(),
            "conflict",
            "a curve has one number of threads",
            format!("{} are given", rungs.len()),
            "write the number with which the maximum is to be found",
        );
    }
}

/// What the parts mean together.
fn check_block(resolver: &mut Resolver<'_>, choice: &BlockChoice) -> bool {
    let plan = choice.plan();
    let top = choice.top();
    let deepest = plan.profile.jobs.iter().map(|job| job.concurrency.queue_depth).max();
    let in_flight = u64::from(top.value) * u64::from(deepest.unwrap_or(1));
    if in_flight > u64::from(BLOCK_IN_FLIGHT_MAX) {
        top.problem(
            &mut resolver.report,
            "out-of-range",
            "too many requests in flight on a volume",
            format!("{in_flight} are more than {BLOCK_IN_FLIGHT_MAX}"),
            "lower threads or queue-depth",
        );
        return false;
    }
    let jobs = plan.profile.jobs.len();
    let of_threads = choice.threads.as_ref().and_then(|threads| threads.span.clone());
    let of_depth = choice.queue_depth.as_ref().and_then(|depth| depth.span.clone());
    let mut is_sound = true;
    let mut refuse = |span, code, message: String, label: String, help: &str| {
        resolver.report.add(span, code, message, label, help);
        is_sound = false;
    };
    let or_name = |span: &Option<Range<usize>>| span.clone().or(choice.name.span.clone());
    if let Some(span) = of_threads.or(of_depth).filter(|_| jobs > 1) {
        refuse(
            Some(span),
            "conflict",
            format!("the block load `{}` has {jobs} jobs", plan.profile.name),
            "threads and queue depth would be ambiguous".to_string(),
            "remove them, or write an [[io-profile]] of your own",
        );
    }
    let content = plan.profile.content;
    let unverifiable = if content.duplicate_share > 0.0 {
        Some("verified blocks carry their own address, so none can be a duplicate".to_string())
    } else {
        (content.compress_ratio > VERIFIED_RATIO_MAX).then(|| {
            format!("verified blocks cannot be compressed more than {VERIFIED_RATIO_MAX} times")
        })
    };
    if let Some(reason) = unverifiable.filter(|_| plan.verify) {
        let message = format!("blocks of `{}` cannot be verified", plan.profile.name);
        let span = or_name(&choice.verify.span);
        refuse(span, "conflict", message, reason, "write verify = false");
    }
    if let Some(problem) = plan.at(top.value, 1).problems(plan.working_set).first() {
        refuse(
            or_name(&choice.working_set.span),
            "out-of-range",
            "the working set does not fit the block load".to_string(),
            problem.to_string(),
            "write a larger working-set, or fewer threads",
        );
    }
    is_sound
}
