//! The documented exit codes. Only `main` exits.
//!
//! A script must be able to tell "your study is wrong" from "this host cannot" from "the run failed"
//! from "the run finished but its data is wrong". docs/reference.md repeats this table.

/// Success.
pub const OK: u8 = 0;
/// A bug in Underlay, or an unforeseen error. The message asks for a report.
pub const INTERNAL: u8 = 1;
/// Bad input: an invalid study, argument or file. Nothing was changed.
pub const BAD_INPUT: u8 = 2;
/// This host lacks something that is needed: privilege, a program, a kernel feature, space.
pub const HOST: u8 = 3;
/// A run ended early: the database crashed, a volume filled up, a mount was lost.
pub const RUN_FAILED: u8 = 4;
/// A consistency check found a violation: the results are not valid.
pub const CHECK_VIOLATED: u8 = 5;
/// The requested load was not delivered: the results are those of a lighter load.
pub const LOAD_NOT_DELIVERED: u8 = 6;
/// The two records cannot be compared.
pub const NOT_COMPARABLE: u8 = 7;
/// A resource that Underlay created could not be removed.
pub const LEFT_BEHIND: u8 = 8;
/// `compare --fail-if-worse`: the second record is worse than allowed.
pub const WORSE: u8 = 9;
/// `compare --fail-if-worse`: the records do not tell whether it is.
pub const UNDECIDED: u8 = 10;
/// `size`: no design of the family meets the target.
pub const TARGET_MISSED: u8 = 11;
/// Stopped by Ctrl-C or SIGTERM, cleanly.
pub const INTERRUPTED: u8 = 130;

/// The table for `--help` and the reference.
pub const TABLE: [(u8, &str); 13] = [
    (OK, "done"),
    (INTERNAL, "internal error (a bug: please report it)"),
    (BAD_INPUT, "bad input: study, argument or file; nothing was changed"),
    (HOST, "this host lacks something: privilege, program, kernel feature, space"),
    (RUN_FAILED, "a run ended early: crashed database, full volume, lost mount"),
    (CHECK_VIOLATED, "a consistency check found a violation: the results are invalid"),
    (LOAD_NOT_DELIVERED, "the requested load was not delivered"),
    (NOT_COMPARABLE, "the records cannot be compared"),
    (LEFT_BEHIND, "a resource that Underlay created could not be removed"),
    (WORSE, "compare --fail-if-worse: the second record is worse than allowed"),
    (UNDECIDED, "compare --fail-if-worse: the records do not allow an answer; use more repeats"),
    (TARGET_MISSED, "size: no design of the family meets the target"),
    (INTERRUPTED, "interrupted; shut down cleanly"),
];
