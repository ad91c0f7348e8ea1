//! What a cluster does again and again at regular intervals: rebalancing, and policy changes that were given up.
//!
//! What is not here: what is moved, and where (`repair`).

use super::cluster::Cluster;
use super::ids::VolumeId;
use super::object::Layout;
use super::timers::Timer;

impl Cluster {
    /// The regular look.
    pub(super) fn rebalance_tick(&mut self) {
        self.repair.rebalance_now(&mut self.storage, &mut self.requests);
        self.retry_policy_changes();
        let at = self.storage.clock.now() + self.storage.settings.rebalance_interval;
        self.storage.clock.schedule(at, Timer::Rebalance);
    }

    /// Tries policy changes again that were given up.
    fn retry_policy_changes(&mut self) {
        let wanted: Vec<VolumeId> = self
            .storage
            .objects
            .volumes()
            .filter(|volume| volume.wanted.is_some() && volume.reshape.is_none())
            .map(|volume| volume.id)
            .collect();
        for volume in wanted {
            let policy = self.storage.objects.volume(volume).and_then(|state| state.wanted);
            if let (true, Some(policy)) =
                (self.storage.objects.is_whole(volume, Layout::Present), policy)
            {
                // A refusal leaves the wish; the next look tries again.
                let _refused = self.set_policy(self.storage.clock.now(), volume, policy);
            }
        }
    }
}
