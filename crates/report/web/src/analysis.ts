// Generated from the Rust types in crates/report/src/analysis. Do not edit: after a change there run
// `UPDATE=1 cargo test -p underlay-report --lib types_of_the_page`.
//
// Times are seconds since the start of their run, latencies nanoseconds, shares lie in 0..1. A value
// that could not be computed is null, never zero. Designs, runs and series are referred to by position.

export type Agreement = "confirmed" | "not-confirmed" | "too-short" | "observed" | "by-experiment";

export type Analysis = {
format: number,
study: Study,
workload: Workload,
verdict: Verdict,
axes: Array<Axis>,
designs: Array<Design>,
comparisons: Array<Comparison>,
rungs: Array<Rung>,
databases: Array<Database>,
peaks: Array<Peak>,
bottlenecks: Array<Bottleneck>,
validity: Array<RungValidity>,
causal_checks: Array<CausalCheck>,
searches: Array<RateSearch>,
block_loads: Array<BlockLoads>,
curves: Array<RateCurve>,
operations: Array<Operation>,
distributions: Array<Distribution>,
runs: Array<Run>,
windows: Array<Window>,
timelines: Timelines,
checks: Array<Check>,
findings: Array<Finding>,
confounds: Array<Confound>,
settings: Array<Setting>,
sources: Array<Source>,
emulation: Array<Emulation>,
driver: Array<DriverLoad>,
published: Array<Published>,
host: unknown,
software: unknown,
method: Method, };

export type Answer = "winner" | "no-difference-shown" | "equivalent" | "not-repeated" | "host-limited" | "not-comparable" | "invalid" | "single-design" | "no-data";

export type Aspect = "how-much" | "why" | "how-sure" | "savings" | "published";

export type Atlas = {
format: number,
experiments: Array<AtlasExperiment>,
median_error: number | null,
median_error_not_host_limited: number | null,
simulated_median_error: number | null, };

export type AtlasAgreement = "within" | "close" | "same-direction" | "no-difference" | "opposite" | "unknown";

export type AtlasCurve = {
design: number,
title: string,
origin: LineOrigin,
points: Array<AtlasCurvePoint>, };

export type AtlasCurvePoint = {
label: string,
is_maximum: boolean,
rate: number,
multiple: number | null,
latency_ns: number, };

export type AtlasCurves = {
limit_ns: number,
reference: string,
lines: Array<AtlasCurve>, };

export type AtlasExperiment = {
name: string,
title: string,
question: string,
evidence: Evidence | null,
workload: Workload | null,
scale: string,
problem: string | null,
record: string,
answer: string,
reasons: Array<string>,
deviations: Array<string>,
sources: Array<string>,
ratios: Array<AtlasRatio>,
figures: Array<AtlasFigure>,
curves: AtlasCurves | null,
disagreements: Array<string>, };

export type AtlasFigure = {
title: string,
unit: string,
users: Array<number>,
reference: string,
published_unit: string,
lines: Array<AtlasLine>, };

export type AtlasLine = {
design: number,
title: string,
origin: LineOrigin,
values: Array<number | null>,
shape: Array<number | null>, };

export type AtlasRatio = {
is_headline: boolean,
is_given: boolean,
is_host_limited: boolean,
text: string,
metric: string,
published: number,
ours: number | null,
low: number | null,
high: number | null,
simulated: number | null,
error: number | null,
simulated_error: number | null,
agreement: AtlasAgreement, };

export type Axis = {
name: string,
keys: Array<string>,
unit: string | null,
points: Array<AxisPoint>, };

export type AxisPoint = {
name: string,
label: string,
phrase: string,
number: number | null, };

export type Basis = "runs" | "within-run" | "bootstrap" | "none";

export type BlockLoad = {
label: string,
in_flight: number,
counts: boolean,
offered_per_second: number | null,
done_per_second: number,
bytes_per_second: number,
mean_ns: number | null,
p50_ns: number | null,
p95_ns: number | null,
p99_ns: number | null,
p999_ns: number | null,
saturated: boolean | null,
ended_early: boolean, };

export type BlockLoads = {
run: number,
design: number,
steady: boolean | null,
steady_state: SteadyRounds | null,
planned: number | null,
interrupted: boolean,
delivery: Delivery | null,
errors: number,
generator_busy: boolean,
loads: Array<BlockLoad>, };

export type Bottleneck = {
design: number,
users: number,
class: string,
sentence: string,
mode: LimitMode,
confidence: Confidence,
budget: Array<BudgetPart>,
closure: number | null,
lock_holders: Array<BudgetPart>,
ruled_out: Array<RuledOut>,
gates: Array<Gate>, };

export type BudgetPart = {
class: TimeClass,
sessions: number,
share: number,
per_transaction_ns: number | null, };

export type BusyPart = {
kind: string,
host: string,
share: number, };

export type CausalCheck = {
design: number,
users: number,
run: number,
factor: number,
period_s: number,
resources: Array<Sensitivity>,
not_perturbed: Array<NotPerturbed>,
class: string | null,
tied: Array<string>,
agreement: Agreement,
named: Array<string>,
sentence: string, };

export type Ceiling = {
source: string,
headline: number | null,
reached: number | null, };

export type Check = {
run: number,
moment: string,
id: string,
title: string,
outcome: string,
rows: number | null,
detail: string | null, };

export type ClassExcess = {
class: string,
ios_per_second: number,
modelled_mean_ns: number | null,
actual_mean_ns: number | null,
excess_per_transaction_ns: number | null, };

export type Comparison = {
a: number,
b: number,
scope: Scope,
users: number | null,
metric: string,
ratio: number | null,
low: number | null,
high: number | null,
host_low: number | null,
host_high: number | null,
pairs: number,
method: RatioMethod,
p: number | null,
p_adjusted: number | null,
p_permutation: number | null,
p_equivalence: number | null,
repeats_needed: number | null,
published: number | null,
published_given: boolean,
outcome: Outcome,
text: string, };

export type Confidence = "none" | "low" | "medium" | "high";

export type Confound = {
path: string,
values: Array<string | null>,
asked: boolean, };

export type CurvePoint = {
label: string,
offered_per_second: Estimate,
done_per_second: Estimate,
bytes_per_second: Estimate,
mean_ns: Estimate,
p99_ns: Estimate,
saturated: boolean, };

export type CurveReading = "interpolated" | "at-least" | "never";

export type Database = {
name: string,
workload: Workload,
rungs: Array<Rung>, };

export type Delivery = {
due: number,
undelivered: number, };

export type Design = {
name: string,
title: string,
description: string,
of: string,
of_title: string,
coordinates: Array<number>,
evidence: Evidence,
facts: Array<[string, string]>, };

export type Direction = "higher" | "lower" | "neither";

export type Distribution = {
design: number,
users: number,
transaction: string,
count: number,
shares: Array<number>,
nanos: Array<number>, };

export type DriverLoad = {
design: number,
users: number,
cores: number | null,
share_of_host: number | null,
cpu_seconds_per_10000: number | null,
dispatch_lag_p99_ns: number | null,
saturated: boolean | null, };

export type Emulation = {
run: number,
valid: boolean | null,
reason: string | null,
host_limited_share: number | null,
modelled_p50_ns: number | null,
modelled_p99_ns: number | null,
lateness_p50_ns: number | null,
lateness_p99_ns: number | null, };

export type Estimate = {
value: number | null,
low: number | null,
high: number | null,
basis: Basis,
runs: Array<number | null>, };

export type Evidence = "measured" | "emulated" | "simulated" | "mixed";

export type Finding = {
severity: Severity,
code: string,
text: string,
design: number | null,
run: number | null,
users: number | null, };

export type Gate = {
id: string,
title: string,
state: GateState,
text: string, };

export type GateState = "passed" | "soft" | "failed" | "not-judged";

export type HostFactors = {
low: number,
high: number, };

export type LatencyRow = {
transaction: string,
count: number,
p50: Estimate,
p95: Estimate,
p99: Estimate,
mean_ns: number | null,
max_ns: number | null,
service_p99_ns: number | null,
errors: number, };

export type LimitMode = "latency" | "capacity" | "unknown";

export type LineOrigin = "published" | "ours" | "simulated";

export type Method = {
metrics: Array<Metric>,
definitions: Array<[string, string]>,
disclaimer: string,
deviations: Array<string>, };

export type Metric = {
name: string,
title: string,
unit: string,
better: Direction,
definition: string, };

export type NotPerturbed = {
resource: string,
reason: string, };

export type Operation = {
design: number,
kind: string,
cycle: number,
seconds: Estimate,
bytes_per_second: Estimate,
read_latency_ns: Estimate,
write_latency_ns: Estimate, };

export type Outcome = "better" | "worse" | "equivalent" | "undecided" | "suggested" | "single" | "missing";

export type Peak = {
design: number,
users: number,
headline: Estimate,
exceeds_limit: string | null, };

export type Phase = {
kind: string,
label: string,
users: number | null,
begin_s: number,
end_s: number | null,
status: string, };

export type Published = {
design: number,
database: string,
metric: string,
users: Array<number>,
values: Array<number>,
unit: string,
rungs: Array<number | null>,
ours: Array<number | null>,
given: boolean,
experiment: string,
source: string,
note: string, };

export type RateCurve = {
design: number,
limit_ns: number,
rate_at_limit: Estimate,
found: CurveReading,
points: Array<CurvePoint>, };

export type RateSearch = {
run: number,
design: number,
repeat: number,
slo: string,
quantile: number | null,
limit_ns: number | null,
found: string,
holds_per_second: number | null,
fails_per_second: number | null,
steps: Array<RateStep>, };

export type RateStep = {
rate_per_second: number,
delivered_per_second: number | null,
observed_ns: number | null,
late_share: number | null,
late_share_low: number | null,
late_share_high: number | null,
verdict: string,
holds: boolean | null,
by_point_estimate: boolean,
purpose: string,
begin_s: number | null,
end_s: number | null, };

export type Ratio = {
value: number,
low: number | null,
high: number | null,
host_low: number | null,
host_high: number | null, };

export type RatioMethod = "paired-log-ratio" | "welch" | "single";

export type Reaction = {
value: number,
low: number,
high: number, };

export type RuledOut = {
class: string,
reason: string, };

export type Run = {
id: number,
design: number,
repeat: number,
order: number,
status: string,
reason: string | null,
counted: boolean,
superseded_by: number | null,
begin_wall_ns: number,
seconds: number | null,
phases: Array<Phase>,
stages: Array<Stage>,
events: Array<RunEvent>,
notes: Array<RunEvent>, };

export type RunEvent = {
at_s: number,
until_s: number | null,
kind: string,
text: string, };

export type Rung = {
design: number,
users: number,
metrics: { [key in string]: Estimate },
latencies: Array<LatencyRow>,
volumes: Array<VolumeRow>,
working_set: WorkingSet | null,
busy_parts: Array<BusyPart>, };

export type RungValidity = {
design: number,
users: number,
outcome: Validity,
text: string,
no_device: boolean,
excess: Array<ClassExcess>,
late_share: number | null,
early_share: number | null,
throughput: HostFactors | null,
response: HostFactors | null,
ceiling: Ceiling | null, };

export type Scope = "rung" | "peak";

export type Sensitivity = {
resource: string,
periods: number,
throughput: Reaction,
p_adjusted: number,
p95: Reaction | null,
what_if: WhatIf | null, };

export type Setting = {
group: string,
path: string,
value: string,
origin: string,
design: number | null, };

export type Severity = "invalid" | "warning" | "information";

export type Source = {
run: number,
name: string,
layer: string,
status: string,
reason: string | null,
series: number,
ticks: number,
longest_gap_s: number | null, };

export type Stage = {
kind: StageKind,
begin_s: number,
end_s: number,
resync_per_second: number | null,
resync_bytes_per_second: number | null,
volumes_per_second: number | null,
volumes_bytes_per_second: number | null,
headline: number | null, };

export type StageKind = "resync-alone" | "load-starts" | "load-stable" | "load-stopped";

export type Steady = {
state: SteadyState,
text: string,
trimmed_s: number | null,
drift: number | null,
change_points_s: Array<number>,
effective_samples: number | null, };

export type SteadyRounds = {
rounds: number,
rounds_max: number | null,
range_share: number | null,
excursion_share: number | null, };

export type SteadyState = "steady" | "not-steady" | "too-short";

export type Study = {
name: string,
title: string,
question: string,
deviations: Array<string>,
scale: string,
evidence: Evidence,
seed: string,
identity: string,
started_wall_ns: number,
finished_wall_ns: number | null,
status: string,
sessions: number,
time_dilation: number, };

export type TimeClass = "driver" | "driver-limit" | "client" | "client-network" | "cpu" | "run-queue" | "cpu-limit" | "host-io" | "log" | "log-behind-data" | "data-read" | "data-write" | "lock" | "latch" | "other";

export type TimelineLine = {
run: number,
series: number,
begin_s: number,
step_s: number,
mean: Array<number | null>,
min: Array<number | null> | null,
max: Array<number | null> | null, };

export type TimelineSeries = {
name: string,
title: string,
layer: string,
unit: string,
group: string,
entity: string | null, };

export type Timelines = {
series: Array<TimelineSeries>,
lines: Array<TimelineLine>, };

export type Validity = "valid" | "bounded" | "unknown" | "host-limited";

export type Verdict = {
headline: string,
answer: Answer,
support: Array<string>,
support_aspects: Array<Aspect>,
confidence: Confidence,
confidence_reasons: Array<string>,
winner: number | null,
against: number | null,
ratio: Ratio | null,
validity: Validity | null,
users: number | null, };

export type VolumeRow = {
volume: string,
shared_by: Array<string>,
metrics: { [key in string]: Estimate }, };

export type WhatIf = {
predicted: Reaction,
measured: Reaction | null, };

export type Window = {
run: number,
design: number,
users: number,
begin_s: number,
end_s: number,
headline: Estimate,
metrics: { [key in string]: number | null },
steady: Steady, };

export type WorkingSet = {
share: number,
touched_bytes: number | null,
memory_bytes: number | null,
text: string, };

export type Workload = {
name: string,
counted: string,
unit: string,
types: Array<string>,
rate: string,
rate_unit: string,
notice: string,
is_job: boolean, };
