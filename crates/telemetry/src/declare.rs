//! How a sampler declares itself: what it reads, emits, costs and needs, and what to beware of.
//!
//! The declarations are data, not prose, so that the reference page (`docs/telemetry.md`) is written
//! from them and a test compares what samplers really emit with what they promise.
//! A declaration may contain `<placeholders>` where the host decides how many series exist
//! (`cpu<n>.user`). It does not read or measure anything.

use underlay_core::series::{Layer, SeriesKind, SeriesSpec};

/// A series, or a family of series, that a sampler can emit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesDoc {
    /// Dotted name; parts in angle brackets are replaced, one series per instance.
    pub name: &'static str,
    /// Unit of the raw value.
    pub unit: &'static str,
    /// Counter or gauge.
    pub kind: SeriesKind,
    /// Smallest step the kernel or server counts in, when it is coarser than the unit; else empty.
    pub quantum: &'static str,
    /// What the value means, in one sentence.
    pub meaning: &'static str,
}

/// The header of a sampler as data.
#[derive(Clone, Copy, Debug)]
pub struct SamplerDoc {
    /// Name of the source.
    pub name: &'static str,
    /// Layer its series belong to.
    pub layer: Layer,
    /// Files or queries it reads each tick.
    pub reads: &'static str,
    /// What one tick costs.
    pub costs: &'static str,
    /// What must be there, and what happens when it is not.
    pub needs: &'static str,
    /// How its numbers mislead.
    pub traps: &'static [&'static str],
    /// All series it can emit.
    pub series: &'static [SeriesDoc],
}

impl SeriesDoc {
    /// A cumulative counter.
    pub const fn counter(
        name: &'static str,
        unit: &'static str,
        meaning: &'static str,
    ) -> SeriesDoc {
        SeriesDoc { name, unit, kind: SeriesKind::Counter, quantum: "", meaning }
    }

    /// A value at an instant.
    pub const fn gauge(name: &'static str, unit: &'static str, meaning: &'static str) -> SeriesDoc {
        SeriesDoc { name, unit, kind: SeriesKind::Gauge, quantum: "", meaning }
    }

    /// The same series with the step it is counted in.
    pub const fn quantum(self, quantum: &'static str) -> SeriesDoc {
        SeriesDoc { quantum, ..self }
    }

    /// The series under its declared name.
    pub fn spec(&self) -> SeriesSpec {
        self.named(self.name)
    }

    /// The series of one instance, under the name with placeholders replaced.
    pub fn named(&self, name: impl Into<String>) -> SeriesSpec {
        SeriesSpec { name: name.into(), unit: self.unit.to_string(), kind: self.kind }
    }

    /// Whether `spec` is this series or one instance of it: the names agree outside the placeholders,
    /// and unit and kind agree (a placeholder unit `<...>` agrees with every unit).
    pub fn declares(&self, spec: &SeriesSpec) -> bool {
        let unit_agrees = self.unit.starts_with('<') || self.unit == spec.unit;
        unit_agrees && self.kind == spec.kind && name_matches(self.name, &spec.name)
    }
}

/// Matches a name against a pattern whose `<placeholders>` stand for one or more characters.
fn name_matches(pattern: &str, name: &str) -> bool {
    let Some((literal, rest)) = pattern.split_once('<') else {
        return pattern == name;
    };
    let Some(remaining) = name.strip_prefix(literal) else {
        return false;
    };
    let Some((_, pattern_rest)) = rest.split_once('>') else {
        return pattern == name;
    };
    (1..=remaining.len())
        .filter(|end| remaining.is_char_boundary(*end))
        .any(|end| name_matches(pattern_rest, &remaining[end..]))
}

#[cfg(test)]
mod tests {
    use super::{SeriesDoc, name_matches};

    #[test]
    fn placeholders_stand_for_something() {
        assert!(name_matches("cpu<n>.user", "cpu12.user"));
        assert!(name_matches("volume.<volume>.read.ios", "volume.wal.read.ios"));
        assert!(name_matches("io.<type>.<object>.<column>", "io.client.relation.reads"));
        assert!(!name_matches("cpu<n>.user", "cpu.user"), "an empty instance is no instance");
        assert!(!name_matches("cpu<n>.user", "cpu0.nice"));
        assert!(!name_matches("cpu.user", "cpu.user2"));
    }

    #[test]
    fn unit_and_kind_must_agree() {
        let doc = SeriesDoc::counter("cpu<n>.user", "ns", "");
        assert!(doc.declares(&doc.named("cpu0.user")));
        assert!(!SeriesDoc::gauge("cpu<n>.user", "ns", "").declares(&doc.named("cpu0.user")));
        assert!(!SeriesDoc::counter("cpu<n>.user", "ms", "").declares(&doc.named("cpu0.user")));
    }
}
