//! Transactions statement by statement: the steps depend on what an engine's statements can do, their texts on its SQL.

mod arrays;
mod arrays_new_order;
mod returning;

pub(super) use arrays::Arrays;
pub(super) use returning::Returning;

use crate::Engine;

/// The texts of all statements of an engine, for the workload's identity.
pub(super) fn texts(engine: Engine) -> Vec<&'static str> {
    match engine {
        Engine::Postgresql => returning::texts(),
        Engine::Mariadb => arrays::texts(),
    }
}
