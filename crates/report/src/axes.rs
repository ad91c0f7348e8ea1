//! The axes of a study: what was varied besides designs and users, and which of its variants are compared.
//!
//! A variant is a design at one point of every axis; records know variants as designs. Without axes each design is its own
//! only variant.

use serde_json::Value;
use underlay_record::Design;

use crate::analysis::{Axis, AxisPoint};

/// The axes of a record and the variants on them.
#[derive(Clone, Debug)]
pub(crate) struct Axes {
    /// In the order of the study.
    pub(crate) list: Vec<Axis>,
    variants: Vec<Variant>,
}

/// Where a variant lies.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Variant {
    /// Name of its design.
    design: String,
    /// Title of its design.
    title: String,
    /// The point of each axis.
    coordinates: Vec<usize>,
}

/// What two variants differ in, if it is one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Apart {
    /// Their designs.
    Design,
    /// Their points of the axis of that position.
    Axis(usize),
}

impl Axes {
    /// Those of a plan, whose variants are these. What is not understood is absent.
    pub(crate) fn of(plan: &Value, designs: &[Design]) -> Axes {
        let list: Vec<Axis> =
            plan["axes"].as_array().into_iter().flatten().filter_map(axis).collect();
        let variants = designs.iter().map(|design| {
            let said = &design.detail["variant"];
            let coordinate = |axis: &Axis| {
                let at = said["at"][&axis.name].as_str()?;
                axis.points.iter().position(|point| point.name == at)
            };
            let title = if design.title.is_empty() { &design.name } else { &design.title };
            Variant {
                design: said["design"].as_str().unwrap_or(&design.name).to_string(),
                title: said["design_title"].as_str().unwrap_or(title).to_string(),
                coordinates: list.iter().map(|axis| coordinate(axis).unwrap_or(0)).collect(),
            }
        });
        Axes { variants: variants.collect(), list }
    }

    /// Whether nothing is varied besides designs and users.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The point of each axis; empty without axes.
    pub(crate) fn coordinates(&self, variant: usize) -> &[usize] {
        self.variants.get(variant).map_or(&[], |variant| &variant.coordinates)
    }

    /// Name of the design of a variant.
    pub(crate) fn design(&self, variant: usize) -> &str {
        self.variants.get(variant).map_or("", |variant| &variant.design)
    }

    /// Title of the design of a variant.
    pub(crate) fn design_title(&self, variant: usize) -> &str {
        self.variants.get(variant).map_or("", |variant| &variant.title)
    }

    /// How sentences call the point of a variant on an axis.
    pub(crate) fn phrase(&self, variant: usize, axis: usize) -> &str {
        let point = self.coordinates(variant).get(axis).copied().unwrap_or(0);
        self.list.get(axis).and_then(|axis| axis.points.get(point)).map_or("", |it| &it.phrase)
    }

    /// Whether there are designs besides the points of axes.
    pub(crate) fn has_several_designs(&self) -> bool {
        self.variants.windows(2).any(|two| two[0].design != two[1].design)
    }

    /// Where a variant lies apart from an axis: its design, and its points of the other axes.
    pub(crate) fn other_points(&self, variant: usize, axis: usize) -> String {
        let others = (0..self.list.len()).filter(|other| *other != axis);
        let phrases = others.map(|other| self.phrase(variant, other));
        let words: Vec<&str> = [self.design_title(variant)].into_iter().chain(phrases).collect();
        words.join(", ")
    }

    /// What two variants differ in; `None` where it is nothing or more than one thing.
    pub(crate) fn apart(&self, a: usize, b: usize) -> Option<Apart> {
        let (a, b) = (self.variants.get(a)?, self.variants.get(b)?);
        let axes: Vec<usize> = (0..self.list.len())
            .filter(|axis| a.coordinates[*axis] != b.coordinates[*axis])
            .collect();
        match (a.design != b.design, &axes[..]) {
            (true, []) => Some(Apart::Design),
            (false, [axis]) => Some(Apart::Axis(*axis)),
            _ => None,
        }
    }

    /// The pairs that are compared: designs at each point, and along each axis of a design the first point with each other. What
    /// differs in two things answers nothing.
    pub(crate) fn pairs(&self) -> Vec<(usize, usize)> {
        let all = (0..self.variants.len())
            .flat_map(|a| (a + 1..self.variants.len()).map(move |b| (a, b)));
        let compared = |(a, b): &(usize, usize)| match self.apart(*a, *b) {
            _ if self.is_empty() => true,
            Some(Apart::Design) => true,
            Some(Apart::Axis(axis)) => [*a, *b].iter().any(|v| self.coordinates(*v)[axis] == 0),
            None => false,
        };
        all.filter(compared).collect()
    }

    /// The variant that lies at another point of an axis.
    pub(crate) fn at(&self, variant: usize, axis: usize, point: usize) -> Option<usize> {
        let mut wanted = self.variants.get(variant)?.clone();
        *wanted.coordinates.get_mut(axis)? = point;
        self.variants.iter().position(|known| *known == wanted)
    }

    /// The variants of the same design that differ from this one on this axis alone, and itself; by their points.
    pub(crate) fn along(&self, variant: usize, axis: usize) -> Vec<usize> {
        let points = self.list.get(axis).map_or(0, |axis| axis.points.len());
        (0..points).filter_map(|point| self.at(variant, axis, point)).collect()
    }
}

fn axis(said: &Value) -> Option<Axis> {
    let texts = |value: &Value| -> Vec<String> {
        value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|it| Some(it.as_str()?.to_string()))
            .collect()
    };
    let point = |said: &Value| {
        let name = said["name"].as_str()?.to_string();
        Some(AxisPoint {
            label: said["label"].as_str().unwrap_or(&name).to_string(),
            phrase: said["phrase"].as_str().unwrap_or(&name).to_string(),
            number: said["number"].as_f64(),
            name,
        })
    };
    Some(Axis {
        name: said["name"].as_str()?.to_string(),
        keys: texts(&said["keys"]),
        unit: said["unit"].as_str().map(str::to_string),
        points: said["points"].as_array()?.iter().filter_map(point).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::{Apart, Axes};
    use serde_json::{Value, json};
    use underlay_core::Evidence;
    use underlay_record::Design;

    fn design(index: u32, name: &str, detail: Value) -> Design {
        Design {
            index,
            name: name.to_string(),
            title: String::new(),
            description: String::new(),
            evidence: Evidence::Emulated,
            detail,
        }
    }

    /// Two designs on an axis of three points and one of two.
    fn axes() -> Axes {
        let plan = json!({ "axes": [
            { "name": "memory", "points": [{ "name": "1" }, { "name": "2" }, { "name": "3" }] },
            { "name": "mode", "points": [{ "name": "x" }, { "name": "y" }] },
        ] });
        let mut designs = Vec::new();
        for name in ["a", "b"] {
            for memory in ["1", "2", "3"] {
                for mode in ["x", "y"] {
                    let at = json!({ "memory": memory, "mode": mode });
                    let variant = json!({ "variant": { "design": name, "at": at } });
                    designs.push(design(designs.len() as u32, "v", variant));
                }
            }
        }
        Axes::of(&plan, &designs)
    }

    #[test]
    fn pairs_differ_in_one_thing() {
        let axes = axes();
        let pairs = axes.pairs();
        // Designs at 6 points; along memory 2 of 3 for 2 designs and 2 modes; along mode 1 for 2 designs and 3 sizes.
        assert_eq!(pairs.len(), 6 + 8 + 6);
        let of =
            |apart: Apart| pairs.iter().filter(|(a, b)| axes.apart(*a, *b) == Some(apart)).count();
        assert_eq!((of(Apart::Design), of(Apart::Axis(0)), of(Apart::Axis(1))), (6, 8, 6));
        assert_eq!(axes.apart(0, 3), None);
        assert_eq!(axes.along(9, 0), [7, 9, 11]);
        assert_eq!(axes.at(0, 1, 1), Some(1));
    }

    #[test]
    fn without_axes_all_designs_are_compared() {
        let designs = [0, 1, 2].map(|index| design(index, &format!("d{index}"), json!({})));
        let axes = Axes::of(&json!({}), &designs);
        assert!(axes.is_empty());
        assert_eq!(axes.pairs(), [(0, 1), (0, 2), (1, 2)]);
        assert_eq!(axes.apart(0, 2), Some(Apart::Design));
    }
}
