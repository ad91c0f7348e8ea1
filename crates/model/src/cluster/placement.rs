//! Where components go: on fault domains that do not fail together, and where there is room.
//!
//! Every member of an object (replica, data or parity member, witness) gets fault domains of its own, so that any `n`
//! domains can fail. The stripes of one member lie on different capacity devices. Among what is possible the emptiest
//! is chosen: by used space first, by promised space (thin volumes) where usage is alike, of the device and then of its
//! host. The parts of an object without redundancy may lie anywhere.

use super::geometry::Geometry;
use super::ids::{GroupId, HostId};
use super::inventory::Inventory;
use super::membership::Membership;
use super::policy::{Policy, PolicyProblem};
use std::collections::BTreeSet;
use underlay_core::Bytes;

/// A place for a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) group: GroupId,
    pub(super) disk: u8,
}

/// Places for all parts of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    /// `set * members + slot`.
    pub(super) places: Vec<Place>,
    pub(super) witnesses: Vec<HostId>,
}

/// Why something cannot be placed, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementRefusal {
    /// The policy itself is wrong.
    #[error("the policy cannot be used: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Policy(Vec<PolicyProblem>),
    /// The volume's size is wrong.
    #[error("a volume of {0} is not possible: use a multiple of 4 KiB above 0")]
    Capacity(Bytes),
    /// A volume of that name exists.
    #[error("a volume named `{0}` exists: choose another name or remove it first")]
    NameTaken(String),
    /// No such volume.
    #[error("no volume of that number exists: list the volumes")]
    NoVolume,
    /// Not enough fault domains.
    #[error("needs {needed} fault domains for {policy}, the cluster has {present}: {remedy}")]
    FaultDomains {
        /// The policy in words.
        policy: String,
        /// Domains that must be there.
        needed: usize,
        /// Domains that are there and reachable.
        present: usize,
        /// What to do.
        remedy: String,
    },
    /// Not enough capacity devices for the stripe width.
    #[error(
        "needs {needed} capacity devices with free space in separate fault domains for stripe width {width}, but only \
         {present} are available: use a smaller stripe width or add devices"
    )]
    Devices {
        /// Stripe width asked for.
        width: u8,
        /// Devices needed per member.
        needed: usize,
        /// Devices found for the member that failed.
        present: usize,
    },
    /// Not enough room.
    #[error(
        "needs {needed} on one capacity device outside the fault domains already used, the emptiest has \
         {free} free: add devices or hosts, or remove volumes"
    )]
    Space {
        /// Bytes needed on one device.
        needed: Bytes,
        /// The most that is free on one device.
        free: Bytes,
    },
    /// Too many components.
    #[error("every host that could hold a component has reached {limit} components: add a host")]
    Components {
        /// The limit per host.
        limit: u32,
    },
}

/// What placement looks at.
pub(super) struct Map<'a> {
    pub(super) inventory: &'a Inventory,
    pub(super) membership: &'a Membership,
    pub(super) components_per_host: u32,
}

/// The rank of a device for one more component: see [`Map::score`].
type Score = (u64, u64, u64, u8, Place);

/// What must be known about the parts of an object.
pub(super) struct Demand<'a> {
    pub(super) geometry: &'a Geometry,
    pub(super) policy: &'a Policy,
    /// Bytes each component needs at once.
    pub(super) component_bytes: u64,
}

impl Map<'_> {
    fn host_usable(&self, host: HostId) -> bool {
        self.membership.is_member(host)
            && self.inventory.host(host).components < self.components_per_host
    }

    fn domain(&self, host: HostId) -> &str {
        &self.inventory.host(host).fault_domain
    }

    /// All working devices on reachable hosts.
    fn places(&self) -> impl Iterator<Item = Place> + '_ {
        self.inventory.groups().iter().filter(|group| self.host_usable(group.host)).flat_map(
            |group| {
                (0..group.disks.len() as u8)
                    .filter(|disk| group.works(*disk))
                    .map(|disk| Place { group: group.id, disk })
            },
        )
    }

    fn free(&self, place: Place) -> u64 {
        self.inventory.group(place.group).disks[usize::from(place.disk)].free()
    }

    /// Smaller is better: used whole percents, then promised bytes per capacity, then what the whole host has promised: on
    /// empty devices, volumes that were created one after the other lie on different hosts.
    fn score(&self, place: Place) -> Score {
        let group = self.inventory.group(place.group);
        let disk = &group.disks[usize::from(place.disk)];
        let promised = u128::from(disk.promised) * 1_000_000 / u128::from(disk.capacity);
        let on_host = self.inventory.groups().iter().filter(|other| other.host == group.host);
        let on_host = on_host.flat_map(|other| &other.disks).map(|disk| disk.promised).sum();
        // Devices of several groups before several of one, which share a cache device.
        (disk.fullness() / 100, promised as u64, on_host, place.disk, place)
    }
}

/// Places for a new object.
pub(super) fn place_object(map: &Map, demand: &Demand) -> Result<Placed, PlacementRefusal> {
    let domains: BTreeSet<&str> = map
        .inventory
        .hosts()
        .iter()
        .filter(|host| map.membership.is_member(host.id))
        .map(|host| host.fault_domain.as_str())
        .collect();
    let needed = demand.policy.fault_domains_needed();
    if domains.len() < needed {
        return Err(too_few_domains(demand.policy, needed, domains.len()));
    }
    let mut planner = Planner { map, demand, free_domains: domains };
    let members = usize::from(demand.geometry.kind.members());
    let sets = demand.geometry.sets as usize;
    let mut places = vec![Place { group: GroupId(0), disk: 0 }; members * sets];
    for member in 0..members {
        let still_needed = needed - member - 1;
        for (set, place) in planner.place_member(still_needed)?.into_iter().enumerate() {
            places[set * members + member] = place;
        }
    }
    let mut witnesses = Vec::new();
    for _ in 0..demand.policy.witnesses() {
        let host = place_witness(map, |domain| planner.free_domains.contains(domain))
            .ok_or(PlacementRefusal::Components { limit: map.components_per_host })?;
        planner.free_domains.remove(map.domain(host));
        witnesses.push(host);
    }
    debug_assert!(places.iter().all(|place| map.host_usable(map.inventory.host_of(place.group))));
    debug_assert!(
        witnesses.len() == usize::from(demand.policy.witnesses()),
        "one place per witness"
    );
    Ok(Placed { places, witnesses })
}

/// A host for a witness in one of the domains: the one with the fewest components.
pub(super) fn place_witness(map: &Map, allowed: impl Fn(&str) -> bool) -> Option<HostId> {
    map.inventory
        .hosts()
        .iter()
        .filter(|host| map.host_usable(host.id) && allowed(&host.fault_domain))
        .min_by_key(|host| (host.components, host.id))
        .map(|host| host.id)
}

/// A place for one component in an existing object.
pub(super) fn place_component(
    map: &Map,
    bytes: u64,
    allowed: impl Fn(&str) -> bool,
    avoid: &[Place],
    prefer_not: &[Place],
) -> Result<Place, PlacementRefusal> {
    let candidates: Vec<Place> = map
        .places()
        .filter(|place| {
            let host = map.inventory.host_of(place.group);
            allowed(map.domain(host)) && !avoid.contains(place)
        })
        .collect();
    candidates
        .iter()
        .copied()
        .filter(|place| map.free(*place) >= bytes)
        .min_by_key(|place| (prefer_not.contains(place), map.score(*place)))
        .ok_or_else(|| PlacementRefusal::Space {
            needed: Bytes(bytes),
            free: Bytes(candidates.iter().map(|place| map.free(*place)).max().unwrap_or(0)),
        })
}

fn too_few_domains(policy: &Policy, needed: usize, present: usize) -> PlacementRefusal {
    use super::policy::Method;
    let hosts = match needed.saturating_sub(present) {
        0 | 1 => "a host".to_string(),
        more => format!("{more} hosts"),
    };
    let remedy = match (policy.method, policy.failures_to_tolerate) {
        (Method::ErasureCoding, _) => format!("add {hosts} or use mirroring"),
        (Method::Mirror, 0) => format!("add or return {hosts}"),
        (Method::Mirror, _) => format!("add {hosts} or tolerate fewer failures"),
    };
    PlacementRefusal::FaultDomains { policy: policy.to_string(), needed, present, remedy }
}

struct Planner<'a> {
    map: &'a Map<'a>,
    demand: &'a Demand<'a>,
    free_domains: BTreeSet<&'a str>,
}

impl<'a> Planner<'a> {
    /// Places for all stripes of one member, leaving `reserve` domains for the others.
    fn place_member(&mut self, reserve: usize) -> Result<Vec<Place>, PlacementRefusal> {
        let width = usize::from(self.demand.policy.stripe_width);
        let distinct = width.min(self.demand.geometry.sets as usize);
        if self.demand.policy.fault_domains_needed() == 1 {
            // Without redundancy nothing has to be kept apart, and so nothing together.
            let all: Vec<&str> = self.free_domains.iter().copied().collect();
            return self.spread(&all, distinct).ok_or_else(|| self.refusal(&all, distinct));
        }
        let mut domains: Vec<&str> = Vec::new();
        loop {
            let next = self.best_domain(&domains, distinct);
            let Some(domain) = next.filter(|_| self.free_domains.len() > domains.len() + reserve)
            else {
                return Err(self.refusal(&domains, distinct));
            };
            domains.push(domain);
            if let Some(places) = self.spread(&domains, distinct) {
                for domain in &domains {
                    self.free_domains.remove(domain);
                }
                return Ok(places);
            }
        }
    }

    /// Devices with room in these domains, best first.
    fn devices(&self, domains: &[&str]) -> Vec<Place> {
        let mut places: Vec<Place> = self
            .map
            .places()
            .filter(|place| {
                let host = self.map.inventory.host_of(place.group);
                domains.contains(&self.map.domain(host))
            })
            .filter(|place| self.room(*place) > 0)
            .collect();
        places.sort_by_cached_key(|place| self.score(*place));
        places
    }

    /// How many more components fit a device.
    fn room(&self, place: Place) -> u64 {
        if self.demand.component_bytes == 0 {
            // A thin component needs no room at once, but a full device is no place for it.
            return if self.map.free(place) > 0 { u64::MAX } else { 0 };
        }
        self.map.free(place) / self.demand.component_bytes
    }

    fn score(&self, place: Place) -> Score {
        self.map.score(place)
    }

    /// One place per stripe, different devices as long as the stripe width asks for them.
    fn spread(&self, domains: &[&str], distinct: usize) -> Option<Vec<Place>> {
        let devices = self.devices(domains);
        let sets = self.demand.geometry.sets as usize;
        if devices.len() < distinct {
            return None;
        }
        let mut left: Vec<u64> = devices.iter().map(|place| self.room(*place)).collect();
        let mut places = Vec::with_capacity(sets);
        while places.len() < sets {
            let before = places.len();
            for (place, left) in devices.iter().zip(&mut left) {
                if *left > 0 && places.len() < sets {
                    *left -= 1;
                    places.push(*place);
                }
            }
            if places.len() == before {
                return None;
            }
        }
        Some(places)
    }

    /// The domain to take next: one that suffices alone if there is one, then the emptiest.
    fn best_domain(&self, taken: &[&str], distinct: usize) -> Option<&'a str> {
        self.free_domains
            .iter()
            .copied()
            .filter(|domain| !taken.contains(domain))
            .filter_map(|domain| {
                let devices = self.devices(&[domain]);
                let best = devices.first()?;
                let suffices = self.spread(&[domain], distinct).is_some();
                Some(((!suffices, self.score(*best)), domain))
            })
            .min()
            .map(|(_, domain)| domain)
    }

    fn refusal(&self, domains: &[&str], distinct: usize) -> PlacementRefusal {
        let everywhere: Vec<&str> = self.free_domains.iter().copied().collect();
        let devices = self.devices(&everywhere).len();
        if devices > 0 && devices.min(self.devices(domains).len().max(1)) < distinct {
            return PlacementRefusal::Devices {
                width: self.demand.policy.stripe_width,
                needed: distinct,
                present: self.devices(domains).len().max(1),
            };
        }
        if self
            .map
            .inventory
            .hosts()
            .iter()
            .all(|host| host.components >= self.map.components_per_host)
        {
            return PlacementRefusal::Components { limit: self.map.components_per_host };
        }
        let free = self
            .map
            .places()
            .filter(|place| {
                everywhere.contains(&self.map.domain(self.map.inventory.host_of(place.group)))
            })
            .map(|place| self.map.free(place))
            .max()
            .unwrap_or(0);
        PlacementRefusal::Space { needed: Bytes(self.demand.component_bytes), free: Bytes(free) }
    }
}
