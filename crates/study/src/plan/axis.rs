//! Axes of a plan: what is varied in addition to designs and users.

/// What a study varies besides its designs and users.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisPlan {
    /// Unique in the study.
    pub name: String,
    /// The keys of the study that its points set, by their dotted paths.
    pub keys: Vec<String>,
    /// What its points are on a numeric axis; `None` where they are only names.
    pub unit: Option<AxisUnit>,
    /// Its points, at least two; the others are compared with the first one.
    pub points: Vec<AxisPoint>,
}

/// A point of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisPoint {
    /// As the study has it: a value, or a name.
    pub name: String,
    /// What tables and charts call it: at the scale of the plan, where that changes it.
    pub label: String,
    /// What sentences call it: `32 GiB of memory`.
    pub phrase: String,
    /// Its place on a numeric axis, at the scale of the plan.
    pub number: Option<f64>,
    /// The keys that it sets, with their values as the study has them.
    pub set: Vec<(String, String)>,
}

impl AxisPoint {
    /// Whether it is a value of its axis' only key, not a named point.
    pub fn is_value(&self) -> bool {
        matches!(&self.set[..], [(_, value)] if *value == self.name)
    }
}

underlay_core::words! {
    /// The unit of the numbers of an axis.
    pub enum AxisUnit: "unit of an axis" {
        /// Sizes.
        Bytes = "bytes",
        /// Lengths of time.
        Nanoseconds = "ns",
        /// Plain numbers.
        Number = "number",
    }
}

/// Where a variant, which is a design at one point of every axis, lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariantPlan {
    /// Name of the design.
    pub design: String,
    /// Its title.
    pub design_title: String,
    /// The point of each axis, by position.
    pub coordinates: Vec<usize>,
    /// The combination of points, by position in [`crate::Plan::points`].
    pub point: usize,
}
