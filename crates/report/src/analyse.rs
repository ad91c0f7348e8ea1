//! From a record to its analysis.

use underlay_record::{ReadError, Record};

use crate::analysis::{ANALYSIS_FORMAT, Analysis, Design, Study};
use crate::digest::{Digest, evidence_kind};
use crate::plan_view::PlanView;
use crate::verdict::bottleneck;
use crate::verdict::situation::Situation;
use crate::{comparisons, confounds, findings, headline, ladder, latencies, method, settings};

/// Reads a record and computes everything that a report shows about it.
///
/// Works on records that are still being written: what is not there yet is absent.
pub fn analyse(record: &Record) -> Result<Analysis, ReadError> {
    Ok(analysis_of(Digest::read(record)?))
}

fn analysis_of(digest: Digest) -> Analysis {
    let plan = PlanView::new(&digest.manifest.plan);
    let seed = digest.manifest.seed;
    let groups = ladder::groups(&digest.windows);
    let slopes = ladder::slopes(&groups);
    let windows: Vec<_> = digest.windows.iter().map(ladder::window).collect();
    let rungs: Vec<_> = groups.iter().map(|group| ladder::rung(group, seed)).collect();
    let peaks = ladder::peaks(&groups, &rungs);
    let bottlenecks: Vec<_> = groups
        .iter()
        .zip(slopes)
        .map(|(group, slope)| {
            let steady = windows
                .iter()
                .filter(|window| (window.design, window.users) == (group.design, group.users))
                .map(|window| window.steady.state)
                .collect();
            let situation = Situation::of(&group.windows, steady, &plan, slope);
            bottleneck::judge(&situation, group.design, group.users)
        })
        .collect();
    let driver: Vec<_> = groups.iter().map(ladder::driver_load).collect();
    let confounds = confounds::within(&digest);
    let findings = findings::all(&findings::Evidence {
        digest: &digest,
        groups: &groups,
        windows: &windows,
        bottlenecks: &bottlenecks,
        driver: &driver,
        confounds: &confounds,
    });
    let designs = designs(&digest);
    let comparisons = comparisons::all(&groups, &peaks, &digest.titles());
    let verdict = headline::verdict(&headline::Results {
        designs: &designs,
        rungs: &rungs,
        peaks: &peaks,
        comparisons: &comparisons,
        bottlenecks: &bottlenecks,
        findings: &findings,
    });
    let distributions =
        groups.iter().flat_map(|group| latencies::distributions(&group.windows)).collect();
    let settings = settings::all(&digest);
    let published = settings::published(&digest);
    let study = study(&digest);
    Analysis {
        format: ANALYSIS_FORMAT,
        study,
        verdict,
        designs,
        comparisons,
        rungs,
        peaks,
        bottlenecks,
        distributions,
        windows,
        findings,
        confounds,
        settings,
        driver,
        published,
        method: method::method(),
        runs: digest.run_rows,
        timelines: crate::timelines::assemble(digest.catalogue, digest.lines),
        checks: digest.checks,
        sources: digest.sources,
        emulation: digest.emulation,
        host: digest.manifest.host,
        software: digest.manifest.software,
    }
}

fn study(digest: &Digest) -> Study {
    let manifest = &digest.manifest;
    Study {
        name: manifest.study_name.clone(),
        title: manifest.title.clone(),
        question: manifest.question.clone(),
        evidence: evidence_kind(manifest.evidence),
        seed: manifest.seed.0.to_string(),
        identity: manifest.identity.clone(),
        started_wall_ns: manifest.started_wall_ns,
        finished_wall_ns: digest.execution.finished_wall_ns,
        status: digest.execution.status.to_string(),
        sessions: digest.execution.sessions,
    }
}

fn designs(digest: &Digest) -> Vec<Design> {
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
            evidence: evidence_kind(design.evidence),
            facts: settings::design_facts(digest, position),
        })
        .collect()
}
