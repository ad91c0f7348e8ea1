//! From a record to its analysis.

use underlay_record::{ReadError, Record};

use crate::analysis::{
    ANALYSIS_FORMAT, Analysis, Bottleneck, CausalCheck, Confound, Database, Design, Distribution,
    DriverLoad, Finding, Peak, Rung, RungValidity, Study, Window,
};
use crate::axes::Axes;
use crate::digest::{DatabaseDigest, Digest, evidence_kind};
use crate::ladder::Group;
use crate::observed::CausalFacts;
use crate::plan_view::PlanView;
use crate::timelines::assemble;
use crate::verdict::situation::Situation;
use crate::verdict::{bottleneck, causal};
use crate::{
    block_loads, comparisons, confounds, curves, findings, headline, ladder, latencies, method,
    operations, published, rate_searches, settings, validity,
};

/// Reads a record and computes everything that a report shows about it.
///
/// Works on records that are still being written: what is not there yet is absent.
pub fn analyse(record: &Record) -> Result<Analysis, ReadError> {
    Ok(analysis_of(Digest::read(record)?))
}

fn analysis_of(digest: Digest) -> Analysis {
    let groups = ladder::groups(&digest.windows);
    let ladders = ladders(&digest, &groups);
    let confounds = confounds::within(&digest);
    let findings = findings_with(&digest, &groups, (&ladders, &confounds));
    let axes = digest.axes();
    let designs = designs(&digest, &axes);
    let mut comparisons = comparisons::all(
        &groups,
        &ladders.peaks,
        &axes.pairs(),
        (&digest.titles(), &digest.workload),
        comparisons::interval_alpha(&PlanView::new(&digest.manifest.plan)),
    );
    validity::widen_within(&mut comparisons, &ladders.validity, &ladders.peaks);
    let databases = databases(&digest);
    let published = published::all(&digest, &axes, (&ladders.rungs, &databases));
    published::compare(&published, &mut comparisons);
    let searches = rate_searches::all(&digest);
    let causal_checks = causal_checks(&digest, &ladders.bottlenecks);
    let verdict = headline::verdict(&headline::Results {
        designs: &designs,
        rungs: &ladders.rungs,
        peaks: &ladders.peaks,
        comparisons: &comparisons,
        bottlenecks: &ladders.bottlenecks,
        causal_checks: &causal_checks,
        validity: &ladders.validity,
        findings: &findings,
        searches: &searches,
        workload: &digest.workload,
        axes: &axes,
        plan: PlanView::new(&digest.manifest.plan),
        time_dilation: digest.time_dilation,
    });
    Analysis {
        format: ANALYSIS_FORMAT,
        study: study(&digest),
        workload: digest.workload.serialisable(),
        verdict,
        axes: axes.list,
        designs,
        comparisons,
        rungs: ladders.rungs,
        databases,
        peaks: ladders.peaks,
        causal_checks,
        bottlenecks: ladders.bottlenecks,
        validity: ladders.validity,
        searches,
        curves: match digest.workload.is_one_run() {
            true => Vec::new(),
            false => curves::all(&block_loads::all(&digest)),
        },
        block_loads: block_loads::all(&digest),
        operations: operations::all(&digest),
        distributions: ladders.distributions,
        windows: ladders.windows,
        driver: ladders.driver,
        findings,
        confounds,
        settings: settings::all(&digest),
        published,
        method: method::method(&digest.workload),
        runs: digest.run_rows,
        timelines: assemble(digest.catalogue, digest.lines),
        checks: digest.checks,
        sources: digest.sources,
        emulation: digest.emulation,
        host: digest.manifest.host,
        software: digest.manifest.software,
    }
}

/// Whether the repeats so far make the main answer of a record precise: the interval of the ratio of throughput at the highest
/// common number of users is within `share` of it, for every pair of designs.
pub fn is_precise(record: &Record, share: f64) -> Result<bool, ReadError> {
    let digest = Digest::read(record)?;
    let alpha = comparisons::interval_alpha(&PlanView::new(&digest.manifest.plan));
    let groups = ladder::groups(&digest.windows);
    let pairs = digest.axes().pairs();
    Ok(comparisons::main_ratios_are_within(&groups, &pairs, &digest.workload, (share, alpha)))
}

/// What the reader of a record must know, gravest first.
pub(crate) fn findings_of(digest: &Digest) -> Vec<Finding> {
    let groups = ladder::groups(&digest.windows);
    let ladders = ladders(digest, &groups);
    findings_with(digest, &groups, (&ladders, &confounds::within(digest)))
}

fn findings_with(
    digest: &Digest,
    groups: &[Group<'_>],
    (ladders, confounds): (&Ladders, &[Confound]),
) -> Vec<Finding> {
    findings::all(&findings::Evidence {
        digest,
        groups,
        windows: &ladders.windows,
        rungs: &ladders.rungs,
        peaks: &ladders.peaks,
        bottlenecks: &ladders.bottlenecks,
        validity: &ladders.validity,
        driver: &ladders.driver,
        confounds,
    })
}

/// Everything that is said per rung or window.
struct Ladders {
    windows: Vec<Window>,
    rungs: Vec<Rung>,
    peaks: Vec<Peak>,
    bottlenecks: Vec<Bottleneck>,
    validity: Vec<RungValidity>,
    distributions: Vec<Distribution>,
    driver: Vec<DriverLoad>,
}

fn ladders(digest: &Digest, groups: &[Group<'_>]) -> Ladders {
    let plan = PlanView::new(&digest.manifest.plan);
    let windows: Vec<Window> = digest.windows.iter().map(ladder::window).collect();
    let rungs: Vec<Rung> =
        groups.iter().map(|group| ladder::rung(group, digest, &digest.workload)).collect();
    let judge = |(group, slope): (&Group<'_>, Option<f64>)| {
        let steady = windows
            .iter()
            .filter(|window| (window.design, window.users) == (group.design, group.users))
            .map(|window| window.steady.state)
            .collect();
        let situation = Situation::of(&group.windows, steady, (&plan, &digest.workload), slope);
        bottleneck::judge(&situation, group.design, group.users)
    };
    Ladders {
        peaks: ladder::peaks(groups, &rungs),
        // Without sessions there is no time of theirs that could be divided.
        bottlenecks: match digest.workload.has_sessions() {
            false => Vec::new(),
            true => groups.iter().zip(ladder::slopes(groups, &rungs)).map(judge).collect(),
        },
        validity: validity::all(digest, groups),
        distributions: groups
            .iter()
            .flat_map(|group| latencies::distributions(&group.windows))
            .collect(),
        driver: groups.iter().map(ladder::driver_load).collect(),
        windows,
        rungs,
    }
}

/// The rungs of each of several databases.
fn databases(digest: &Digest) -> Vec<Database> {
    let of_database = |database: &DatabaseDigest| Database {
        name: database.name.clone(),
        workload: database.workload.serialisable(),
        rungs: ladder::groups(&database.windows)
            .iter()
            // What users touch of the database is known of the whole.
            .map(|group| Rung {
                working_set: None,
                ..ladder::rung(group, digest, &database.workload)
            })
            .collect(),
    };
    digest.databases.iter().map(of_database).collect()
}

fn causal_checks(digest: &Digest, bottlenecks: &[Bottleneck]) -> Vec<CausalCheck> {
    let beside = |facts: &CausalFacts| {
        let at = (facts.design, facts.users);
        let observed = bottlenecks.iter().find(|it| (it.design, it.users) == at);
        let plan = PlanView::new(&digest.manifest.plan);
        let one_device = plan.device_of_log_and_data(facts.design).is_some();
        causal::judge(facts, observed, one_device)
    };
    digest.causal.iter().map(beside).collect()
}

fn study(digest: &Digest) -> Study {
    let manifest = &digest.manifest;
    Study {
        name: manifest.study_name.clone(),
        title: manifest.title.clone(),
        question: manifest.question.clone(),
        deviations: PlanView::new(&manifest.plan).deviations(),
        scale: PlanView::new(&manifest.plan).scale(),
        evidence: digest.evidence(),
        seed: manifest.seed.0.to_string(),
        identity: manifest.identity.clone(),
        started_wall_ns: manifest.started_wall_ns,
        finished_wall_ns: digest.execution.finished_wall_ns,
        status: digest.execution.status.to_string(),
        sessions: digest.execution.sessions,
        time_dilation: digest.time_dilation,
    }
}

fn designs(digest: &Digest, axes: &Axes) -> Vec<Design> {
    let titles = digest.titles();
    digest
        .designs
        .iter()
        .zip(titles)
        .enumerate()
        .map(|(position, (design, title))| Design {
            name: design.name.clone(),
            title,
            description: design.description.clone(),
            of: axes.design(position).to_string(),
            of_title: axes.design_title(position).to_string(),
            coordinates: axes.coordinates(position).to_vec(),
            evidence: evidence_kind(design.evidence),
            facts: settings::design_facts(digest, position),
        })
        .collect()
}
