// DRAFT, until the struct exists: the shape of the data in the page, what `underlay_report::Analysis`
// serialises to.
// Times are seconds since the start of their run, latencies are nanoseconds, shares lie in 0..1. A
// value that could not be computed is null, never zero.

export type Evidence = "measured" | "emulated" | "simulated";
export type Confidence = "high" | "medium" | "low" | "none";
export type Severity = "information" | "warning" | "invalid";

/** A number over the repeats of a design: mean, 95 % interval and the runs themselves. */
export interface Estimate {
  value: number | null;
  low: number | null;
  high: number | null;
  runs: number[];
}

export interface Analysis {
  format: number;
  study: Study;
  verdict: Verdict;
  designs: Design[];
  comparisons: Comparison[];
  /** One per design and rung of the ladder. */
  rungs: Rung[];
  bottlenecks: Bottleneck[];
  distributions: Distribution[];
  runs: Run[];
  timelines: Timelines;
  checks: Check[];
  findings: Finding[];
  confounds: Confound[];
  settings: Setting[];
  sources: Source[];
  host: Record<string, unknown>;
  software: Record<string, unknown>;
  method: Method;
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
}

export interface Verdict {
  /** The answer, in one sentence of plain words. */
  headline: string;
  /** Sentences that support it: by how much, how sure, why. */
  support: string[];
  confidence: Confidence;
  /** Index of the winning design; null when no difference was shown. */
  winner: number | null;
}

export interface Design {
  name: string;
  title: string;
  description: string;
  evidence: Evidence;
  /** Facts for readers, name and value. */
  facts: [string, string][];
}

/** Design `b` against design `a` at one rung: the ratio b / a of a metric. */
export interface Comparison {
  a: number;
  b: number;
  users: number;
  metric: string;
  ratio: number;
  low: number | null;
  high: number | null;
  pairs: number;
  outcome: "better" | "worse" | "equivalent" | "undecided" | "single";
  text: string;
}

export interface Rung {
  design: number;
  users: number;
  metrics: Record<string, Estimate>;
  latencies: LatencyRow[];
  volumes: VolumeRow[];
}

export interface LatencyRow {
  transaction: string;
  count: number;
  p50: Estimate;
  p95: Estimate;
  p99: Estimate;
  max_ns: number | null;
}

export interface VolumeRow {
  volume: string;
  metrics: Record<string, Estimate>;
}

export interface Bottleneck {
  design: number;
  users: number;
  class: string;
  sentence: string;
  confidence: Confidence;
  /** Seconds of session time per second, by class. */
  budget: { class: string; share: number; per_transaction_ns: number | null }[];
  ruled_out: { class: string; reason: string }[];
  gates: { id: string; title: string; passed: boolean | null; text: string }[];
}

export interface Distribution {
  design: number;
  users: number;
  transaction: string;
  count: number;
  /** At most this share took at most this long; ascending. */
  shares: number[];
  nanos: number[];
}

export interface Run {
  design: number;
  repeat: number;
  order: number;
  status: string;
  reason: string | null;
  begin_s: number;
  end_s: number | null;
  phases: { kind: string; label: string; users: number | null; begin_s: number; end_s: number; status: string }[];
  events: { at_s: number; kind: string; text: string }[];
}

export interface Timelines {
  series: { name: string; title: string; layer: string; unit: string; source: string }[];
  lines: TimelineLine[];
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
  moment: "before" | "after";
  id: string;
  title: string;
  outcome: "ok" | "violated" | "failed";
  rows: number | null;
  detail: string | null;
}

export interface Finding {
  run: number | null;
  severity: Severity;
  code: string;
  text: string;
}

export interface Confound {
  path: string;
  values: string[];
  asked: boolean;
}

export interface Setting {
  path: string;
  value: string;
  origin: string;
}

export interface Source {
  run: number;
  name: string;
  layer: string;
  status: "available" | "degraded" | "absent";
  reason: string | null;
  series: number;
}

export interface Method {
  definitions: [string, string][];
  disclaimer: string;
  deviations: string[];
}
