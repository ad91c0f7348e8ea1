//! Reading records: statistics, verdicts, terminal summaries and the HTML report.
