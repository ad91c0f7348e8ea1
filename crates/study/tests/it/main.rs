//! Studies as their authors write them: shipped, malformed, mutated, overridden.

mod axes;
mod block;
mod databases;
mod fuzz;
mod malformed;
mod mutations;
mod options;
mod plan_page;
mod planned;
mod shipped;
