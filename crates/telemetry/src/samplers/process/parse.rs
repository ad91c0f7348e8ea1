//! The texts of `/proc/<pid>/{stat,schedstat,io}` and of `children`. Pure.

/// The state of a process, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It runs or sleeps.
    Lives,
    /// It has ended but was not reaped yet (a zombie): its counters count, itself does not.
    Ended,
    /// It is being waited for at this moment: its parent has its I/O already, or will in an instant.
    Inherited,
}

/// What is kept of a stat text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) state: State,
    pub(super) parent: u32,
    pub(super) major_faults: u64,
    /// User and system time in ticks of 10 ms.
    pub(super) cpu_ticks: u64,
    pub(super) threads: u64,
    /// Ticks after boot: together with the pid it names a process for good.
    pub(super) start: u64,
    pub(super) resident_pages: u64,
}

/// Bytes moved and calls made, of a whole process including its threads that ended, and, once it has
/// waited for them, including its children that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Io(pub(super) [u64; Io::KEYS.len()]);

impl Io {
    /// Order of the numbers.
    pub(super) const KEYS: [&'static str; 7] =
        ["rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes", "cancelled_write_bytes"];
}

/// Reads a stat text. The name in parentheses may contain anything, even parentheses.
pub(super) fn stat(bytes: &[u8]) -> Option<Stat> {
    let end_of_name = bytes.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&bytes[end_of_name + 1..]).ok()?;
    // Field 3 of the manual page (state) is column 0 here.
    let columns: Vec<&str> = rest.split_ascii_whitespace().take(22).collect();
    let number = |field: usize| columns.get(field - 3)?.parse::<u64>().ok();
    Some(Stat {
        state: match *columns.first()? {
            "Z" => State::Ended,
            "X" | "x" => State::Inherited,
            _ => State::Lives,
        },
        parent: columns.get(1)?.parse().ok()?,
        major_faults: number(12)?,
        cpu_ticks: number(14)?.checked_add(number(15)?)?,
        threads: number(20)?,
        start: number(22)?,
        resident_pages: number(24)?,
    })
}

/// Nanoseconds on a CPU and nanoseconds waiting for one.
pub(super) fn schedstat(bytes: &[u8]) -> Option<(u64, u64)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut columns = text.split_ascii_whitespace().map(|column| column.parse().ok());
    Some((columns.next()??, columns.next()??))
}

/// Reads an io text; all keys must be there.
pub(super) fn io(bytes: &[u8]) -> Option<Io> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut numbers = [None; Io::KEYS.len()];
    for line in text.lines() {
        let (key, value) = line.split_once(':')?;
        if let Some(index) = Io::KEYS.iter().position(|wanted| *wanted == key) {
            numbers[index] = Some(value.trim().parse::<u64>().ok()?);
        }
    }
    let mut io = Io::default();
    for (slot, number) in io.0.iter_mut().zip(numbers) {
        *slot = number?;
    }
    Some(io)
}

/// Pids in a children text.
pub(super) fn children(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes
        .split(u8::is_ascii_whitespace)
        .filter_map(|word| std::str::from_utf8(word).ok()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::{Io, State, children, io, schedstat, stat};
    use proptest::prelude::{any, proptest};

    const STAT: &[u8] = b"4711 (postgres: a) b (x) S 12 4711 4711 0 -1 4194304 100 200 7 300 50 25 0 0 20 0 3 0 987654 123456789 555 18446744073709551615 1 1 0 0";

    #[test]
    fn names_with_parentheses_do_not_confuse() {
        let stat = stat(STAT).expect("a sound text");
        assert_eq!((stat.parent, stat.major_faults, stat.cpu_ticks), (12, 7, 75));
        assert_eq!(stat.state, State::Lives);
        assert_eq!((stat.threads, stat.start, stat.resident_pages), (3, 987654, 555));
    }

    #[test]
    fn a_zombie_has_ended() {
        let state = |state: &str| {
            let text = String::from_utf8(STAT.to_vec()).expect("text").replace(") S ", state);
            stat(text.as_bytes()).expect("a sound text").state
        };
        assert_eq!((state(") Z "), state(") X ")), (State::Ended, State::Inherited));
    }

    #[test]
    fn cut_off_texts_are_refused() {
        assert_eq!(stat(b""), None);
        assert_eq!(stat(b"1 (x) S 1 2 3"), None);
        assert_eq!(stat(&STAT[..60]), None);
        assert_eq!(schedstat(b"12"), None);
        assert_eq!(schedstat(b"12 x 3"), None);
        assert_eq!(io(b"rchar: 1\nwchar: 2\n"), None);
    }

    #[test]
    fn schedstat_io_and_children_are_read() {
        assert_eq!(schedstat(b"208699228 15676010 425\n"), Some((208699228, 15676010)));
        let text = b"rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 7\n";
        assert_eq!(io(text), Some(Io([1, 2, 3, 4, 5, 6, 7])));
        assert_eq!(children(b"12 13 junk 14 \n").collect::<Vec<_>>(), [12, 13, 14]);
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _any = (stat(&bytes), schedstat(&bytes), io(&bytes), children(&bytes).count());
        }

        #[test]
        fn never_panics_on_almost_sound_texts(text in "[0-9]{1,5} \\(.{0,9}\\) [SRZ]( -?[0-9]{1,22}){0,30}") {
            let _any = stat(text.as_bytes());
        }
    }
}
