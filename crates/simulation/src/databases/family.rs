//! A family of clusters: a base design with other numbers of hosts, disk groups and drives, other
//! devices, other failures to tolerate.
//!
//! Every host of a member is alike. Processors and memory of hosts stay as the base has them.
//! Deliberately not here: what the members carry.

use underlay_model::cluster::HostSpec;
use underlay_model::{DeviceProfile, DiskGroupSpec, WriteBufferSpec, builtin};
use underlay_study::{ClusterPlan, DatastoreKind, DesignPlan};

use super::vary::{Values, Varied, Vary};

/// No family is larger.
const MOST_MEMBERS: usize = 1_000;

/// Why a base design and what varies make no family.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FamilyProblem {
    /// Single devices or real storage.
    #[error("design `{0}` is not a cluster; for single devices use `underlay predict --slo`")]
    NoCluster(String),
    /// Hosts that differ.
    #[error(
        "design `{0}` has hosts or disk groups that differ, or fault domains; a family has equal \
         hosts and equal disk groups"
    )]
    Unequal(String),
    /// Varied twice.
    #[error("{0} is varied twice; write all of its values in one --vary")]
    Twice(Varied),
    /// An unknown device.
    #[error("there is no device `{0}`; `underlay list devices` lists them")]
    NoDevice(String),
    /// A member that cannot be built.
    #[error("{member}: {problem}")]
    Member {
        /// Which.
        member: String,
        /// What it violates.
        problem: String,
    },
    /// Too many.
    #[error("the family has {0} designs, at most {MOST_MEMBERS} are compared; vary less")]
    TooMany(usize),
}

/// A design of a family.
#[derive(Clone, Debug)]
pub struct Member {
    /// The design.
    pub design: DesignPlan,
    /// Hosts.
    pub hosts: u32,
    /// Disk groups of each.
    pub groups: u32,
    /// Capacity devices of each group.
    pub capacity_drives: u32,
    /// The cache device of each group.
    pub cache: String,
    /// The capacity devices of each group.
    pub capacity: String,
    /// Failures that volumes tolerate.
    pub failures: u8,
}

impl Member {
    /// Cache and capacity devices of all hosts.
    pub fn devices(&self) -> u32 {
        self.hosts * self.groups * (1 + self.capacity_drives)
    }

    /// In one line: `4 hosts x 1 group of dc1500m-960 + 2 x dc1500m-960, FTT=0`.
    pub fn name(&self) -> String {
        let Member { hosts, groups, capacity_drives, cache, capacity, failures, .. } = self;
        let plural = |number: u32| if number == 1 { "" } else { "s" };
        format!(
            "{hosts} host{} x {groups} group{} of {cache} + {capacity_drives} x {capacity}, \
             FTT={failures}",
            plural(*hosts),
            plural(*groups)
        )
    }

    /// Whether it has everything that another one has: at least as many hosts, groups and drives of
    /// the same devices, for the same policy.
    pub fn contains(&self, other: &Member) -> bool {
        self.hosts >= other.hosts
            && self.groups >= other.groups
            && self.capacity_drives >= other.capacity_drives
            && (&self.cache, &self.capacity, self.failures)
                == (&other.cache, &other.capacity, other.failures)
    }
}

/// The designs of a family, those of few devices first.
#[derive(Clone, Debug)]
pub struct Family {
    /// At least one.
    pub members: Vec<Member>,
}

impl Family {
    /// The members of a base design.
    ///
    /// # Errors
    /// Every reason why there is no such family.
    pub fn new(base: &DesignPlan, vary: &[Vary]) -> Result<Family, Vec<FamilyProblem>> {
        let mut problems = Vec::new();
        for (position, one) in vary.iter().enumerate() {
            if vary[..position].iter().any(|other| other.what == one.what) {
                problems.push(FamilyProblem::Twice(one.what));
            }
        }
        let mut devices = |what, own: &DeviceProfile| match values(vary, what) {
            Some(Values::Devices(names)) => names
                .iter()
                .filter_map(|name| {
                    // The base's own device may be one of a file.
                    let found =
                        if *name == own.name { Some(own.clone()) } else { builtin::find(name) };
                    if found.is_none() {
                        problems.push(FamilyProblem::NoDevice(name.clone()));
                    }
                    found
                })
                .collect(),
            _ => vec![own.clone()],
        };
        let DatastoreKind::Cluster(cluster) = &base.kind else {
            problems.push(FamilyProblem::NoCluster(base.title.clone()));
            return Err(problems);
        };
        let Some((host, group)) = template(cluster) else {
            problems.push(FamilyProblem::Unequal(base.title.clone()));
            return Err(problems);
        };
        let caches = devices(Varied::CacheDevice, &group.cache);
        let capacities = devices(Varied::CapacityDevice, &group.capacity[0]);
        let numbers = |what, own: usize| match values(vary, what) {
            Some(Values::Numbers(numbers)) => numbers.clone(),
            _ => vec![own as u32],
        };
        let hosts = numbers(Varied::Hosts, cluster.spec.hosts.len());
        let groups = numbers(Varied::DiskGroups, host.groups.len());
        let drives = numbers(Varied::CapacityDrives, group.capacity.len());
        let failures = numbers(Varied::Failures, usize::from(cluster.policy.failures_to_tolerate));
        let size = caches.len() * capacities.len() * failures.len();
        let size = size * hosts.len() * groups.len() * drives.len();
        if size > MOST_MEMBERS {
            problems.push(FamilyProblem::TooMany(size));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut members = Vec::with_capacity(size);
        for (cache, capacity) in
            caches.iter().flat_map(|it| capacities.iter().map(move |at| (it, at)))
        {
            for &failures in &failures {
                for (&hosts, &groups) in
                    hosts.iter().flat_map(|it| groups.iter().map(move |at| (it, at)))
                {
                    for &drives in &drives {
                        let shape = Shape { hosts, groups, drives, cache, capacity, failures };
                        let member = shape.of(base, cluster, group);
                        let found = problems_of(&member);
                        problems.extend(found.into_iter().map(|problem| FamilyProblem::Member {
                            member: member.name(),
                            problem,
                        }));
                        members.push(member);
                    }
                }
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        members.sort_by_key(|it| (it.devices(), it.hosts, it.groups, it.failures));
        Ok(Family { members })
    }
}

/// A member on its way.
struct Shape<'a> {
    hosts: u32,
    groups: u32,
    drives: u32,
    cache: &'a DeviceProfile,
    capacity: &'a DeviceProfile,
    failures: u32,
}

impl Shape<'_> {
    fn of(&self, base: &DesignPlan, cluster: &ClusterPlan, group: &DiskGroupSpec) -> Member {
        let Shape { hosts, groups, drives, cache, capacity, failures } = *self;
        let write_buffer = if cache.name == group.cache.name {
            group.write_buffer
        } else {
            WriteBufferSpec::on(cache.capacity)
        };
        let all_groups: Vec<DiskGroupSpec> = (1..=groups)
            .map(|number| DiskGroupSpec {
                name: format!("group-{number}"),
                cache: cache.clone(),
                capacity: vec![capacity.clone(); drives as usize],
                write_buffer,
                extents: Vec::new(),
                ..group.clone()
            })
            .collect();
        let mut cluster = cluster.clone();
        cluster.policy.failures_to_tolerate = failures as u8;
        cluster.spec.hosts = names(&cluster.spec.hosts, hosts as usize)
            .into_iter()
            .map(|name| HostSpec { name, fault_domain: None, groups: all_groups.clone() })
            .collect();
        Member {
            design: base.on_datastore(DatastoreKind::Cluster(Box::new(cluster))),
            hosts,
            groups,
            capacity_drives: drives,
            cache: cache.name.clone(),
            capacity: capacity.name.clone(),
            failures: failures as u8,
        }
    }
}

fn values(vary: &[Vary], what: Varied) -> Option<&Values> {
    vary.iter().find(|one| one.what == what).map(|one| &one.values)
}

/// The host and the disk group that all of a cluster are like.
fn template(cluster: &ClusterPlan) -> Option<(&HostSpec, &DiskGroupSpec)> {
    let host = cluster.spec.hosts.first()?;
    let group = host.groups.first()?;
    let like = |it: &DiskGroupSpec| DiskGroupSpec { name: group.name.clone(), ..it.clone() };
    let is_equal = cluster.spec.hosts.iter().all(|it| {
        it.fault_domain.is_none()
            && it.groups.len() == host.groups.len()
            && it.groups.iter().all(|it| like(it) == *group)
    });
    let drives_are_equal = group.capacity.iter().all(|it| *it == group.capacity[0]);
    (is_equal && drives_are_equal).then_some((host, group))
}

/// Names of so many hosts: those that are there, and others like them.
fn names(hosts: &[HostSpec], number: usize) -> Vec<String> {
    let mut names: Vec<String> = hosts.iter().take(number).map(|it| it.name.clone()).collect();
    let first = hosts.first().map_or("host", |host| host.name.as_str());
    let stem = first.trim_end_matches(|it: char| it.is_ascii_digit()).trim_end_matches('-');
    let mut next = names.len() + 1;
    while names.len() < number {
        let name = format!("{stem}-{next}");
        if !names.contains(&name) {
            names.push(name);
        }
        next += 1;
    }
    names
}

fn problems_of(member: &Member) -> Vec<String> {
    let DatastoreKind::Cluster(cluster) = &member.design.kind else { return Vec::new() };
    let spec = cluster.spec.problems().into_iter().map(|problem| problem.to_string());
    spec.chain(cluster.policy.problems().into_iter().map(|problem| problem.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::{Family, FamilyProblem};
    use crate::databases::Varied;
    use crate::databases::tests::plan;
    use underlay_study::{DatastoreKind, DesignPlan};

    fn base(design: &str) -> DesignPlan {
        plan(design).designs.remove(0)
    }

    fn family(design: &str, vary: &[&str]) -> Result<Family, Vec<FamilyProblem>> {
        let vary: Vec<_> = vary.iter().map(|text| text.parse().expect("a quantity")).collect();
        Family::new(&base(design), &vary)
    }

    #[test]
    fn members_are_sorted_by_devices_and_built_as_named() {
        let family = family("kingston-nvme-vsan", &["hosts=3..5", "capacity-drives=1,3"]);
        let members = family.expect("a family").members;
        let shapes: Vec<_> =
            members.iter().map(|it| (it.devices(), it.hosts, it.capacity_drives)).collect();
        assert_eq!(shapes, [(6, 3, 1), (8, 4, 1), (10, 5, 1), (12, 3, 3), (16, 4, 3), (20, 5, 3)]);
        let DatastoreKind::Cluster(cluster) = &members[5].design.kind else { panic!() };
        let names: Vec<_> = cluster.spec.hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(names, ["node-1", "node-2", "node-3", "node-4", "node-5"]);
        assert!(cluster.spec.hosts.iter().all(|host| host.groups[0].capacity.len() == 3));
        assert!(members[5].contains(&members[4]) && !members[2].contains(&members[3]));
        assert_eq!(members[0].name(), "3 hosts x 1 group of dc1500m-960 + 1 x dc1500m-960, FTT=0");
    }

    #[test]
    fn the_base_alone_is_a_family_of_its_own_cluster() {
        let family = family("kingston-nvme-vsan", &[]).expect("a family");
        let [own] = &family.members[..] else { panic!("{} members", family.members.len()) };
        let base = base("kingston-nvme-vsan");
        let (DatastoreKind::Cluster(own), DatastoreKind::Cluster(base)) =
            (&own.design.kind, &base.kind)
        else {
            panic!("clusters")
        };
        assert_eq!(own, base);
    }

    #[test]
    fn another_cache_device_brings_its_own_write_buffer() {
        let family = family("kingston-nvme-vsan", &["cache-device=p4800x-375"]).expect("a family");
        let DatastoreKind::Cluster(cluster) = &family.members[0].design.kind else { panic!() };
        let group = &cluster.spec.hosts[0].groups[0];
        assert_eq!(group.write_buffer.usable, group.cache.capacity);
        assert_eq!(family.members[0].capacity, "dc1500m-960");
    }

    #[test]
    fn all_problems_are_told_at_once() {
        let found = family(
            "kingston-nvme-vsan",
            &["hosts=3", "hosts=4", "cache-device=nothing", "capacity-device=nowhere"],
        )
        .expect_err("refused");
        assert_eq!(
            found,
            [
                FamilyProblem::Twice(Varied::Hosts),
                FamilyProblem::NoDevice("nothing".to_string()),
                FamilyProblem::NoDevice("nowhere".to_string()),
            ]
        );
        assert!(matches!(
            family("kingston-nvme", &[]).expect_err("refused")[..],
            [FamilyProblem::NoCluster(_)]
        ));
    }
}
