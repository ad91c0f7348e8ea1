//! Short programs that start others, as `initdb` starts servers: what they leave running is killed.
//!
//! It deliberately runs nothing itself: that is [`run_program_with`].

use crate::error::HostError;
use crate::process_table::MARKER_VARIABLE;
use crate::program::{ProgramSpec, run_program_with};
use crate::teardown::{Resource, Teardown};
use crate::unique_name::new_marker;

/// [`run_program_with`] for a program that starts others. They are on the teardown stack, together with the shared memory
/// that they map, while the program runs; what it leaves running is killed.
pub fn run_program_tree(teardown: &Teardown, spec: &ProgramSpec<'_>) -> Result<String, HostError> {
    let name = spec.program.file_name().unwrap_or(spec.program.as_os_str()).to_string_lossy();
    let marker = new_marker(&name);
    let ticket = teardown
        .register(Resource::Process { marker: marker.clone(), name: name.clone().into_owned() })?;
    let mut env = spec.env.clone();
    env.push((MARKER_VARIABLE.into(), marker.into()));
    let outcome = run_program_with(&ProgramSpec { env, ..spec.clone() });
    teardown.release(ticket)?;
    outcome
}
