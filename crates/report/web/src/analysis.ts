// The data in the page: what `underlay_report::Analysis` serialises to. Its Rust source
// (src/analysis.rs) documents each field; here are only the shapes.
//
// Times are seconds since the begin of their run, latencies nanoseconds, shares lie in 0..1. A value
// that could not be computed is null, never zero. Designs, runs and series are referred to by position.

export type Evidence = "measured" | "emulated" | "simulated" | "mixed";
export type Confidence = "none" | "low" | "medium" | "high";
export type Severity = "invalid" | "warning" | "information";
export type Answer =
  | "winner" | "no-difference-shown" | "equivalent" | "not-repeated" | "not-comparable" | "invalid"
  | "single-design" | "no-data";
export type Outcome = "better" | "worse" | "equivalent" | "undecided" | "single" | "missing";

export interface Analysis {
  format: number;
  study: Study;
  verdict: Verdict;
  designs: Design[];
  comparisons: Comparison[];
  rungs: Rung[];
  peaks: Peak[];
  bottlenecks: Bottleneck[];
  /** Absent in analyses of before searches were parts of studies. */
  searches?: RateSearch[];
  /** Absent in analyses of before block loads were told of. */
  block_loads?: BlockLoads[];
  distributions: Distribution[];
  runs: Run[];
  windows: Window[];
  timelines: Timelines;
  checks: Check[];
  findings: Finding[];
  confounds: Confound[];
  settings: Setting[];
  sources: Source[];
  emulation: Emulation[];
  driver: DriverLoad[];
  published: Published[];
  workload: Workload;
  host: unknown;
  software: unknown;
  method: Method;
}

/** The search of one run for the highest rate that meets a latency target. */
export interface RateSearch {
  run: number;
  design: number;
  repeat: number;
  slo: string;
  quantile: number | null;
  limit_ns: number | null;
  found: string;
  holds_per_second: number | null;
  fails_per_second: number | null;
  steps: RateStep[];
}

/** One rate that was tried. */
export interface RateStep {
  rate_per_second: number;
  delivered_per_second: number | null;
  observed_ns: number | null;
  late_share: number | null;
  late_share_low: number | null;
  late_share_high: number | null;
  verdict: string;
  holds: boolean | null;
  by_point_estimate: boolean;
  purpose: string;
  begin_s: number | null;
  end_s: number | null;
}

export interface Study {
  name: string;
  title: string;
  question: string;
  evidence: Evidence;
  seed: string;
  identity: string;
  started_wall_ns: number;
  finished_wall_ns: number | null;
  status: string;
  sessions: number;
}

export interface Verdict {
  headline: string;
  answer: Answer;
  support: string[];
  confidence: Confidence;
  confidence_reasons: string[];
  winner: number | null;
  against: number | null;
  ratio: Ratio | null;
  users: number | null;
}

export interface Ratio {
  value: number;
  low: number | null;
  high: number | null;
}

/** What an interval covers. */
export type Basis = "runs" | "within-run" | "bootstrap" | "none";

export interface Estimate {
  value: number | null;
  low: number | null;
  high: number | null;
  basis: Basis;
  runs: (number | null)[];
}

export interface Design {
  name: string;
  title: string;
  description: string;
  evidence: Evidence;
  facts: [string, string][];
}

/** Design `b` over design `a`. */
export interface Comparison {
  a: number;
  b: number;
  scope: "rung" | "peak";
  users: number | null;
  metric: string;
  ratio: number | null;
  low: number | null;
  high: number | null;
  pairs: number;
  method: "paired-log-ratio" | "welch" | "single";
  p: number | null;
  p_adjusted: number | null;
  p_permutation: number | null;
  p_equivalence: number | null;
  outcome: Outcome;
  text: string;
}

/** The loads of block I/O of one run. */
export interface BlockLoads {
  run: number;
  design: number;
  steady: boolean | null;
  steady_state: { rounds: number; rounds_max: number | null; range_share: number | null; excursion_share: number | null } | null;
  /** Of a curve. */
  planned: number | null;
  interrupted: boolean;
  delivery: { due: number; undelivered: number } | null;
  errors: number;
  generator_busy: boolean;
  loads: BlockLoad[];
}

/** One load; response times from the intended start, nanoseconds. */
export interface BlockLoad {
  label: string;
  in_flight: number;
  counts: boolean;
  offered_per_second: number | null;
  done_per_second: number;
  bytes_per_second: number;
  mean_ns: number | null;
  p50_ns: number | null;
  p95_ns: number | null;
  p99_ns: number | null;
  p999_ns: number | null;
  /** Null of a load that ended before its time. */
  saturated: boolean | null;
  ended_early: boolean;
}

/** The workload, and what its headline counts. */
export interface Workload {
  /** The word of the file format: `tpcc`. */
  name: string;
  /** In the plural: `new orders`. */
  counted: string;
  /** As it is printed: `NOPM`. */
  unit: string;
  /** The types that the headline counts. */
  types: string[];
  /** In words: `new orders per minute`. */
  rate: string;
  /** `1/min` or `1/s`. */
  rate_unit: string;
  notice: string;
  /** It has a begin and an end: then it has sessions, and no users. */
  is_job: boolean;
}

export interface Rung {
  design: number;
  users: number;
  metrics: Record<string, Estimate>;
  latencies: LatencyRow[];
  volumes: VolumeRow[];
}

export interface Peak {
  design: number;
  users: number;
  headline: Estimate;
  exceeds_limit: string | null;
}

export interface LatencyRow {
  transaction: string;
  count: number;
  p50: Estimate;
  p95: Estimate;
  p99: Estimate;
  mean_ns: number | null;
  max_ns: number | null;
  service_p99_ns: number | null;
  errors: number;
}

export interface VolumeRow {
  volume: string;
  /** Volumes on a device that is not one volume's alone; empty where the numbers are the volume's. */
  shared_by: string[];
  metrics: Record<string, Estimate>;
}

export interface Bottleneck {
  design: number;
  users: number;
  class: string;
  sentence: string;
  mode: "latency" | "capacity" | "unknown";
  confidence: Confidence;
  budget: BudgetPart[];
  closure: number | null;
  lock_holders: BudgetPart[];
  ruled_out: { class: string; reason: string }[];
  gates: Gate[];
}

export interface BudgetPart {
  class: string;
  sessions: number;
  share: number;
  per_transaction_ns: number | null;
}

export interface Gate {
  id: string;
  title: string;
  state: "passed" | "soft" | "failed" | "not-judged";
  text: string;
}

export interface Distribution {
  design: number;
  users: number;
  transaction: string;
  count: number;
  shares: number[];
  nanos: number[];
}

export interface Run {
  id: number;
  design: number;
  repeat: number;
  order: number;
  status: string;
  reason: string | null;
  counted: boolean;
  superseded_by: number | null;
  begin_wall_ns: number;
  seconds: number | null;
  phases: Phase[];
  events: RunEvent[];
  notes: RunEvent[];
}

export interface Phase {
  kind: string;
  label: string;
  users: number | null;
  begin_s: number;
  end_s: number | null;
  status: string;
}

export interface RunEvent {
  at_s: number;
  until_s: number | null;
  kind: string;
  text: string;
}

export interface Window {
  run: number;
  design: number;
  users: number;
  begin_s: number;
  end_s: number;
  headline: Estimate;
  metrics: Record<string, number | null>;
  steady: {
    state: "steady" | "not-steady" | "too-short";
    text: string;
    trimmed_s: number | null;
    drift: number | null;
    change_points_s: number[];
    effective_samples: number | null;
  };
}

export interface Timelines {
  series: TimelineSeries[];
  lines: TimelineLine[];
}

export interface TimelineSeries {
  name: string;
  title: string;
  layer: string;
  unit: string;
  group: string;
  entity: string | null;
}

export interface TimelineLine {
  run: number;
  series: number;
  begin_s: number;
  step_s: number;
  mean: (number | null)[];
  min: (number | null)[] | null;
  max: (number | null)[] | null;
}

export interface Check {
  run: number;
  moment: string;
  id: string;
  title: string;
  outcome: string;
  rows: number | null;
  detail: string | null;
}

export interface Finding {
  severity: Severity;
  code: string;
  text: string;
  design: number | null;
  run: number | null;
  users: number | null;
}

export interface Confound {
  path: string;
  values: (string | null)[];
  asked: boolean;
}

export interface Setting {
  group: string;
  path: string;
  value: string;
  origin: string;
  design: number | null;
}

export interface Source {
  run: number;
  name: string;
  layer: string;
  status: string;
  reason: string | null;
  series: number;
  ticks: number;
  longest_gap_s: number | null;
}

export interface Emulation {
  run: number;
  valid: boolean | null;
  reason: string | null;
  host_limited_share: number | null;
  modelled_p50_ns: number | null;
  modelled_p99_ns: number | null;
  lateness_p50_ns: number | null;
  lateness_p99_ns: number | null;
}

export interface DriverLoad {
  design: number;
  users: number;
  cores: number | null;
  share_of_host: number | null;
  cpu_seconds_per_10000: number | null;
  dispatch_lag_p99_ns: number | null;
  saturated: boolean | null;
}

export interface Published {
  design: number;
  metric: string;
  users: number[];
  values: number[];
  source: string;
  note: string;
}

export interface Method {
  metrics: Metric[];
  definitions: [string, string][];
  disclaimer: string;
  deviations: string[];
}

export interface Metric {
  name: string;
  title: string;
  unit: string;
  better: "higher" | "lower" | "neither";
  definition: string;
}
