//! Where transactions spend their time at a load, in words of resources: what a larger design would
//! have to have more of.
//!
//! Time in the queue of an open loop, before a session takes a transaction up, is a consequence and
//! no bottleneck. A wait for a lock counts as the wait of the lock's holder, which is named with
//! it. Deliberately not here: single devices and hosts.

use underlay_engine::result::Place;

/// Busy share of the processors from which they are called saturated.
const SATURATED: f64 = 0.9;

/// The largest part of the time in the database.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bottleneck {
    /// Where.
    pub place: Place,
    /// Its share of the time of all places, 0 to 1.
    pub share: f64,
    /// Of row locks: where their holders spend most of their time.
    pub held_over: Option<Place>,
    /// Busy share of the threads of the busiest host, 0 to 1.
    pub cpu_busy: f64,
}

impl Bottleneck {
    /// From the time of all transactions in each place, by its index, and the busy share of the
    /// processors; `None` where no time was spent.
    pub fn of(present: &[f64; Place::COUNT], cpu_busy: f64) -> Option<Bottleneck> {
        let all: f64 = present.iter().sum();
        let largest = |among: &dyn Fn(Place) -> bool| {
            Place::ALL
                .into_iter()
                .filter(|place| among(*place) && present[*place as usize] > 0.0)
                .max_by(|a, b| present[*a as usize].total_cmp(&present[*b as usize]))
        };
        let place = largest(&|_| true)?;
        let holders = |it| !matches!(it, Place::Lock | Place::Connection | Place::Client);
        let held_over = (place == Place::Lock).then(|| largest(&holders)).flatten();
        Some(Bottleneck { place, share: present[place as usize] / all, held_over, cpu_busy })
    }

    /// The resource, for people.
    pub fn name(&self) -> String {
        let name = resource(self.place);
        match self.held_over {
            Some(over) => format!("{name} (held over {})", resource(over)),
            None if self.place == Place::Cpu && self.cpu_busy < SATURATED => {
                format!("{name} (service time)")
            }
            None => name.to_string(),
        }
    }
}

fn resource(place: Place) -> &'static str {
    match place {
        Place::Connection => "connections",
        Place::Client => "client",
        Place::Network => "client network",
        Place::Cpu => "processors",
        Place::Lock => "row locks",
        Place::Read => "page reads",
        Place::Log => "log writes",
        Place::Throttle => "page writes",
    }
}

#[cfg(test)]
mod tests {
    use super::Bottleneck;
    use underlay_engine::result::Place;

    fn of(times: &[(Place, f64)], busy: f64) -> Option<Bottleneck> {
        let mut present = [0.0; Place::COUNT];
        times.iter().for_each(|(place, time)| present[*place as usize] = *time);
        Bottleneck::of(&present, busy)
    }

    #[test]
    fn the_largest_part_of_the_time_is_named() {
        assert_eq!(of(&[], 0.5), None);
        let reads = of(&[(Place::Read, 3.0), (Place::Log, 1.0)], 0.2).expect("time was spent");
        assert_eq!((reads.name().as_str(), reads.share), ("page reads", 0.75));
        let locks = of(&[(Place::Lock, 3.0), (Place::Cpu, 1.0), (Place::Log, 2.0)], 0.2);
        assert_eq!(locks.expect("time was spent").name(), "row locks (held over log writes)");
    }

    #[test]
    fn idle_processors_are_no_saturated_ones() {
        let busy = |share| of(&[(Place::Cpu, 1.0)], share).expect("time was spent").name();
        assert_eq!(busy(0.95), "processors");
        assert_eq!(busy(0.3), "processors (service time)");
    }
}
