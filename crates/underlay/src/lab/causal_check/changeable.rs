//! Whether a resource can be changed where a run takes place. Nothing is changed here.

use underlay_core::Resource;

/// Whether a resource can be changed where a run takes place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changeable {
    /// The resource.
    pub resource: Resource,
    /// Whether it can also be made faster.
    pub can_be_faster: bool,
    /// Why it cannot be changed at all, if it cannot.
    pub obstacle: Option<String>,
}

impl Changeable {
    /// Can be slowed.
    pub fn slower(resource: Resource) -> Changeable {
        Changeable { resource, can_be_faster: false, obstacle: None }
    }

    /// Can be slowed and made faster.
    pub fn both(resource: Resource) -> Changeable {
        Changeable { resource, can_be_faster: true, obstacle: None }
    }

    /// Cannot be changed.
    pub fn fixed(resource: Resource, obstacle: impl Into<String>) -> Changeable {
        Changeable { resource, can_be_faster: false, obstacle: Some(obstacle.into()) }
    }
}
