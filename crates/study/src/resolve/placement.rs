//! The volumes of a design where a study has several databases, and the hosts that they are used from.
//!
//! It looks up what was decided with the databases, and decides nothing.

use underlay_model::cluster::{ClusterSpec, host_of_machine};

use super::resolver::Resolver;
use super::role::Role;
use super::volume_choice::VolumeChoice;
use crate::plan::unplaced_host;

/// The volumes of a design: its own, or those of all databases.
pub(super) fn volumes_of_all(
    resolver: &Resolver<'_>,
    design: &str,
    own: Option<&[VolumeChoice]>,
) -> Option<Vec<VolumeChoice>> {
    let Role::Whole(members) = resolver.role else { return own.map(<[_]>::to_vec) };
    let mut all = Vec::new();
    for member in members {
        let of_design = member.volumes.iter().filter(|(of, _)| of == design);
        all.extend(of_design.flat_map(|(_, volumes)| volumes.iter().cloned()));
    }
    own.map(|_| all)
}

/// The host of a cluster that each volume of a design is used from: that of its database. A block load has one machine per
/// volume.
pub(super) fn volume_hosts(
    resolver: &Resolver<'_>,
    design: &str,
    spec: &ClusterSpec,
    volumes: usize,
) -> Vec<u32> {
    let hosts = spec.hosts.len();
    if hosts == 0 {
        return Vec::new();
    }
    if resolver.is_block_load() {
        return (0..volumes).map(|machine| host_of_machine(machine, hosts).0).collect();
    }
    let Role::Whole(members) = resolver.role else { return vec![unplaced_host(0, hosts); volumes] };
    let of_design = members.iter().filter_map(|member| {
        let (_, volumes) = member.volumes.iter().find(|(of, _)| of == design)?;
        let parts = member.plan.iter().flat_map(|plan| &plan.parts);
        let place = parts.filter(|part| part.design == design).find_map(|it| it.host.as_ref());
        let named = place.and_then(|name| spec.hosts.iter().position(|it| it.name == *name));
        Some((named, volumes.len()))
    });
    let of_database = of_design.enumerate().flat_map(|(database, (named, volumes))| {
        let host = named.map_or_else(|| unplaced_host(database, hosts), |it| it as u32);
        std::iter::repeat_n(host, volumes)
    });
    of_database.collect()
}

/// Whether a database is placed on a host of a design.
pub(super) fn is_placed(resolver: &Resolver<'_>, design: &str, host: &str) -> bool {
    let Role::Whole(members) = resolver.role else { return false };
    let mut parts = members.iter().flat_map(|member| &member.plan).flat_map(|plan| &plan.parts);
    parts.any(|part| part.design == design && part.host.as_deref() == Some(host))
}
