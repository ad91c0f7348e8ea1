//! Feeding damaged inputs to a parser. For tests only.
//!
//! [`fuzz`] takes valid inputs, damages them in ways that have broken parsers before, and passes them to a check, which
//! panics when something is wrong. Input number k depends on the seed, the corpus and k alone, so the command that is
//! printed for a failing input repeats exactly that input.
//!
//! ```text
//! UNDERLAY_FUZZ_SEED=7        the seed (1, when not set)
//! UNDERLAY_FUZZ_SECONDS=600   run for this time, all targets together, instead of a fixed number of inputs
//! UNDERLAY_FUZZ_CASE=123      this input alone
//! ```
//!
//! What it deliberately does not do: follow the code's coverage. That takes an instrumented build and a toolchain that
//! offers it; the inputs here are close enough to valid ones to get past the first check.

mod mutation;

use std::env;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand_pcg::Pcg64;

use mutation::{Dictionary, mutated};

/// Targets of the workspace that share the time: calls of [`fuzz`].
const TARGETS: u32 = 9;
/// Inputs per target unless a time is given: a test run is the same each time, and short.
const INPUTS_DEFAULT: u64 = 400;
/// Unless `UNDERLAY_FUZZ_SEED` is set.
const SEED_DEFAULT: u64 = 1;
/// A parser that takes longer for one input has lost its way.
const CASE_LIMIT: Duration = Duration::from_secs(10);
/// What is shown of a failing input.
const SHOWN_BYTES: usize = 600;

/// Passes damaged versions of `corpus` to `check`: a fixed number, or until the target's share of the time is over.
/// Returns how many.
///
/// # Panics
/// With the command that repeats it, when `check` panics or takes too long; and when the corpus is empty.
pub fn fuzz(corpus: &[Vec<u8>], check: impl Fn(&[u8])) -> u64 {
    assert!(!corpus.is_empty(), "fuzzing needs something to damage");
    let seed = number("UNDERLAY_FUZZ_SEED").unwrap_or(SEED_DEFAULT);
    let dictionary = Dictionary::of(corpus);
    let run = |case: u64| {
        let input = mutated(corpus, &dictionary, &mut random(seed, case));
        let repeat = Repeat { seed, case, input: &input };
        let began = Instant::now();
        check(&input);
        assert!(began.elapsed() < CASE_LIMIT, "one input took {:?}", began.elapsed());
        drop(repeat);
    };
    if let Some(case) = number("UNDERLAY_FUZZ_CASE") {
        run(case);
        return 1;
    }
    let began = Instant::now();
    let share = number("UNDERLAY_FUZZ_SECONDS").map(|all| Duration::from_secs(all) / TARGETS);
    // What is valid must be accepted as it is, too.
    for valid in corpus {
        let repeat = Repeat { seed, case: 0, input: valid };
        check(valid);
        drop(repeat);
    }
    let mut case = 0;
    while share.map_or(case < INPUTS_DEFAULT, |share| began.elapsed() < share) {
        run(case);
        case += 1;
    }
    println!("{case} inputs in {:?} with UNDERLAY_FUZZ_SEED={seed}", began.elapsed());
    case
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.trim().parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

fn random(seed: u64, case: u64) -> Pcg64 {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&case.to_le_bytes());
    Pcg64::from_seed(bytes)
}

/// Says how to repeat an input if it is dropped by a panic.
struct Repeat<'i> {
    seed: u64,
    case: u64,
    input: &'i [u8],
}

impl Drop for Repeat<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let package = env::var("CARGO_PKG_NAME").unwrap_or_else(|_| "PACKAGE".to_string());
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("");
        let shown = &self.input[..self.input.len().min(SHOWN_BYTES)];
        eprintln!(
            "\nthis input failed ({} bytes): \"{}\"{}\nrepeat it with: UNDERLAY_FUZZ_SEED={} UNDERLAY_FUZZ_CASE={} \
             cargo test -p {package} {test}\n",
            self.input.len(),
            shown.escape_ascii(),
            if shown.len() < self.input.len() { " ..." } else { "" },
            self.seed,
            self.case,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::{Dictionary, mutated, random};

    #[test]
    fn an_input_depends_on_seed_and_number_alone() {
        let corpus = [b"key = \"value\"\n".to_vec(), vec![0, 1, 2, 3]];
        let dictionary = Dictionary::of(&corpus);
        let input = |seed, case| mutated(&corpus, &dictionary, &mut random(seed, case));
        assert_eq!(input(1, 5), input(1, 5));
        let different = (0..50).filter(|case| input(1, *case) != input(2, *case)).count();
        assert!(different > 40, "{different} of 50 differ between seeds");
        // Not so damaged that nothing is left.
        let near = (0..200).filter(|case| input(3, *case).starts_with(b"key")).count();
        assert!((20..190).contains(&near), "{near}");
    }
}
