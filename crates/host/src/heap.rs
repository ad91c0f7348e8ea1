//! The heap of this process: how it returns freed memory to the system.
//!
//! Not here: limits on memory, which are those of control groups.

/// From which size a block is a mapping of its own, which returns to the system when it is freed.
#[cfg(target_env = "gnu")]
const MAPPED_FROM_BYTES: libc::c_int = 1 << 20;

/// Lets freed blocks of 1 MiB and more return to the system at once, for programs whose tables grow
/// while they work. By default the C library raises that size up to 32 MiB, and grown tables leave
/// holes: `kingston/k5` in virtual time took 4.4 GB with them, and 3.3 GB without.
///
/// A process that allocates such blocks per request should not ask for it: each would be mapped.
/// Changes nothing with C libraries other than glibc.
pub fn return_large_blocks() {
    // SAFETY: `mallopt` takes two numbers, and locks what it changes.
    #[cfg(target_env = "gnu")]
    let is_set = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_FROM_BYTES) };
    #[cfg(target_env = "gnu")]
    debug_assert_eq!(is_set, 1, "the size is within the limits of the C library");
}

#[cfg(test)]
mod tests {
    use super::return_large_blocks;

    /// Resident memory of this process, in bytes.
    fn resident_bytes() -> u64 {
        let status = std::fs::read_to_string("/proc/self/statm").expect("Linux");
        let pages = status.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
        pages.expect("a number") * crate::page_cache::page_size() as u64
    }

    #[test]
    #[cfg(target_env = "gnu")]
    fn freed_blocks_return_although_a_later_one_is_still_used() {
        const BLOCK: usize = 8 << 20;
        return_large_blocks();
        // Without the setting the first free raises the size from which blocks are mapped.
        drop(std::hint::black_box(vec![1_u8; BLOCK]));
        let before = resident_bytes();
        let freed: Vec<Vec<u8>> = (0..8).map(|_| std::hint::black_box(vec![1; BLOCK])).collect();
        let kept = std::hint::black_box(vec![1_u8; BLOCK]);
        drop(freed);
        let grown = resident_bytes().saturating_sub(before);
        assert!(grown < 2 * kept.len() as u64, "{grown} bytes more than before");
    }
}
