//! What a volume or a device is asked to do.

pub use underlay_core::Operation;

/// One request to a volume or device. Flush ignores the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// What is asked.
    pub operation: Operation,
    /// First byte.
    pub offset_bytes: u64,
    /// Number of bytes; 0 for a flush.
    pub length_bytes: u32,
    /// A write that completes only when it is durable (FUA). Ignored by other operations.
    pub force_unit_access: bool,
}

impl Request {
    /// A read.
    pub const fn read(offset_bytes: u64, length_bytes: u32) -> Request {
        Request { operation: Operation::Read, offset_bytes, length_bytes, force_unit_access: false }
    }

    /// A write that may stay volatile until the next flush.
    pub const fn write(offset_bytes: u64, length_bytes: u32) -> Request {
        Request {
            operation: Operation::Write,
            offset_bytes,
            length_bytes,
            force_unit_access: false,
        }
    }

    /// A flush of everything completed so far.
    pub const fn flush() -> Request {
        Request {
            operation: Operation::Flush,
            offset_bytes: 0,
            length_bytes: 0,
            force_unit_access: false,
        }
    }

    /// A discard.
    pub const fn discard(offset_bytes: u64, length_bytes: u32) -> Request {
        Request {
            operation: Operation::Discard,
            offset_bytes,
            length_bytes,
            force_unit_access: false,
        }
    }
}
