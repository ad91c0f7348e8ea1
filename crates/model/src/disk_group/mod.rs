//! One disk group: a cache device that takes the writes, capacity devices that keep the data, and what
//! happens between them.
//!
//! ```text
//!  write --> room? --> log on the cache device --> acknowledged
//!                        |  elevator: in the order of addresses, merged, reduced
//!                        v
//!  read  --> buffered? --no--> capacity device
//! ```
//!
//! The write buffer is persistent: a write is finished when it is there, and it survives a power cut. An
//! elevator takes blocks to their capacity devices when the buffer is filled to a threshold. As the buffer
//! fills further, congestion makes writers wait at their clients, so that throughput falls to the pace of the
//! elevator without a cliff. Every device has the queues of the module [`crate::scheduler`] in front of it.
//!
//! Facts are those of vSAN 6.2 to 7.0 with all-flash groups, as far as they are public; thresholds and costs that
//! are not are settings with an assumed default, and say so.
//!
//! What is not here: data (the data plane applies it in the order of the answers), placement, replicas,
//! networks, a read cache (all-flash groups have none).

mod spec;

mod request;

mod chunk;

mod buffered;

mod log;

mod congestion;

mod slow_clock;

mod piece;

mod member;

mod operations;

mod admission;

mod sweeps;

mod flights;

mod reduction_costs;

mod counters;

mod latencies;

mod group;

mod dispatch;

mod answers;

mod write_path;

mod read_path;

mod elevator;

mod faults;

mod readings;

pub use counters::{
    ClassCounters, GroupCounters, MemberCounters, QueueCounters, ReductionCounters,
    WriteBufferCounters,
};
pub use group::DiskGroup;
pub use latencies::LatencyOf;
pub use log::LogAccount;
pub use request::{GroupFinished, GroupIo, GroupOutcome, GroupRequestId, MemberState};
pub use spec::{
    CongestionSpec, DiskGroupProblem, DiskGroupSpec, Reduction, ReductionCosts, WriteBufferSpec,
};
