//! What workloads that are jobs with an end have in common: they have neither users nor rates nor a mix.

use super::Arguments;

/// What is wrong with the options of the load generator for such a workload.
pub(super) fn meaningless_options(arguments: &Arguments, workload: &str) -> Vec<String> {
    [
        (arguments.users.is_some(), "--users"),
        (arguments.rate.is_some(), "--rate"),
        (arguments.slo.is_some(), "--slo"),
        (arguments.key_think != 0.0, "--key-think"),
        (arguments.weights.is_some(), "--weights"),
        (!arguments.weights_at.is_empty(), "--weights-at"),
        (arguments.connections.is_some(), "--connections"),
        (arguments.threads.is_some(), "--threads"),
        (arguments.noop, "--noop"),
    ]
    .into_iter()
    .filter(|(is_given, _)| *is_given)
    .map(|(_, option)| meaningless(option, workload))
    .collect()
}

/// That an option is one of the load generator.
pub(super) fn meaningless(option: &str, workload: &str) -> String {
    format!("{option} has no meaning for {workload}, which is a job with an end")
}
