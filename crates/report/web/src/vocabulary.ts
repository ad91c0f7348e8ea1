// The words for who loads and what is asked: users and transactions of a database, sessions and steps of a job, or
// requests to storage. Set once, from the record's workload, before anything is drawn.

import type { StageKind, Workload } from "./analysis";

export interface Vocabulary {
  /** Who or what is at work at once: "user", "users". */
  one: string;
  many: string;
  /** The same as the title of an axis. */
  axis: string;
  /** What a response time is of. */
  request: string;
  /** What puts the load on the storage. */
  load: string;
  /** What a mean of the tables is over, and what its interval says. */
  means: string;
}

const DATABASE: Vocabulary = {
  one: "user", many: "users", axis: "virtual users", request: "transaction", load: "a real database",
  means: "Means over the repeats with their 95 % confidence interval.",
};

const JOB: Vocabulary = {
  one: "session", many: "sessions", axis: "sessions", request: "step", load: "a real database",
  means: "Means over the repeats with their 95 % confidence interval.",
};

const BLOCKS: Vocabulary = {
  one: "request in flight", many: "requests in flight", axis: "requests in flight", request: "request", load: "real requests",
  means: "One run, including its rounds: the 95 % interval covers variation within the run, not between runs.",
};

/** A study repeats its block loads, and counts requests in flight on each volume. */
const STUDY_BLOCKS: Vocabulary = {
  ...BLOCKS, axis: "requests in flight per volume",
  means: DATABASE.means,
};

/** The stages of copies beside a load. */
export const STAGES: Record<StageKind, string> = {
  "resync-alone": "resync alone",
  "load-starts": "load starts",
  "load-stable": "load stable",
  "load-stopped": "load stopped",
};

let spoken = DATABASE;

/** Whether the record is one of block I/O: of the command, or of a study. */
export function isBlockLoad(workload: Workload | undefined): boolean {
  return workload?.name === "io" || isBlockStudy(workload);
}

/** Whether it is one of a study. */
export function isBlockStudy(workload: Workload | undefined): boolean {
  return workload?.name === "block";
}

/** Chooses the words for a workload. */
export function speakOf(workload: Workload | undefined): void {
  if (isBlockStudy(workload)) spoken = STUDY_BLOCKS;
  else spoken = isBlockLoad(workload) ? BLOCKS : workload?.is_job ? JOB : DATABASE;
}

/** The words in use. */
export function vocabulary(): Vocabulary {
  return spoken;
}
