//! The one way in which a test says that it cannot run here.

/// Prints `skip: <reason>` to stderr and returns from the test.
///
/// A test that cannot run must say so: the test entry point counts these lines, so that a
/// capability which disappears from the test machine is noticed.
#[macro_export]
macro_rules! skip {
    ($($reason:tt)*) => {{
        eprintln!("skip: {}", format_args!($($reason)*));
        return;
    }};
}
