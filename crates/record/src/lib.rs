//! The evidence: one SQLite file with the plan, events, series, histograms and findings.
