//! What users do: workloads as pure state machines, their data generators and invariants.
