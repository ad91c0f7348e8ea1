//! The software path of a host: what the hypervisor's storage stack costs per I/O.
//!
//! One serial stage per host, charged once for each I/O on a component: once for a read, once per copy for a mirrored
//! write, four times for a write under RAID-5 (two reads, two writes), six under RAID-6. Devices and network have
//! published figures, the stack has none, so its one parameter is what is fitted per test bed. Charging copies is
//! supported by VMware's first two configurations, whose rates differ as 1.3 : 1.1 copies do.

use underlay_core::Nanos;
use underlay_model::cluster::{Method, Policy};
use underlay_model::{Operation, Request};

/// What a host's storage stack costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Time that a host's stack is occupied per I/O on a component.
    pub per_io: Nanos,
}

impl Stack {
    /// A stack that costs nothing.
    pub const NONE: Stack = Stack { per_io: Nanos::ZERO };

    /// Time that a request occupies the stack of its host.
    pub fn cost(self, request: &Request, policy: &Policy) -> Nanos {
        let ios = match request.operation {
            Operation::Write => write_ios(policy),
            Operation::Read | Operation::Flush | Operation::Discard => 1,
        };
        Nanos(self.per_io.0 * ios)
    }
}

/// I/Os on components per small write.
fn write_ios(policy: &Policy) -> u64 {
    match (policy.method, policy.failures_to_tolerate) {
        (Method::Mirror, failures) => u64::from(failures) + 1,
        (Method::ErasureCoding, 1) => 4,
        (Method::ErasureCoding, _) => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::Stack;
    use underlay_core::Nanos;
    use underlay_model::Request;
    use underlay_model::cluster::{Method, Policy};

    #[test]
    fn writes_cost_what_their_copies_cost() {
        let stack = Stack { per_io: Nanos(100) };
        let cost = |failures_to_tolerate, method| {
            let policy = Policy { failures_to_tolerate, method, ..Policy::DEFAULT };
            stack.cost(&Request::write(0, 4096), &policy).0
        };
        assert_eq!(cost(0, Method::Mirror), 100);
        assert_eq!(cost(2, Method::Mirror), 300);
        assert_eq!(cost(1, Method::ErasureCoding), 400);
        assert_eq!(stack.cost(&Request::read(0, 4096), &Policy::DEFAULT), Nanos(100));
    }
}
