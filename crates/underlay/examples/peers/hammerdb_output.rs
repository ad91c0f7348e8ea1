//! What HammerDB prints and logs, read: the line of the result, how its virtual users ended, and the report of its
//! time profiler xtprof.
//!
//! Its other profiler, etprof, writes percentiles of ten seconds each. They cannot be merged to those of a run, so
//! xtprof is asked for.

/// The result of a timed run, as its monitor prints it.
#[derive(Debug, PartialEq, Eq)]
pub struct TestResult {
    /// New orders per minute by the districts' sequence; a quotient of integers.
    pub nopm: u64,
    /// The engine's transactions per minute.
    pub tpm: u64,
    /// Of which engine, in HammerDB's word.
    pub engine: String,
}

/// One stored procedure in the summary of all virtual users.
#[derive(Debug, PartialEq)]
pub struct Timing {
    /// `NEWORD`, `PAYMENT`, `DELIVERY`, `OSTAT`, `SLEV`.
    pub procedure: String,
    pub calls: u64,
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
}

/// Finds `TEST RESULT : System achieved 10815 NOPM from 24662 PostgreSQL TPM`, or the same the other way round
/// (`... achieved 24662 PostgreSQL TPM at 10815 NOPM`), as its settings say.
pub fn test_result(output: &str) -> Option<TestResult> {
    let line = output.lines().find_map(|line| line.split_once("TEST RESULT : System achieved "))?.1;
    let words: Vec<&str> = line.split_whitespace().collect();
    let (nopm, tpm, engine) = match words.as_slice() {
        [nopm, "NOPM", "from", tpm, engine @ .., "TPM"] => (nopm, tpm, engine),
        [tpm, engine @ .., "TPM", "at", nopm, "NOPM"] => (nopm, tpm, engine),
        _ => return None,
    };
    Some(TestResult { nopm: nopm.parse().ok()?, tpm: tpm.parse().ok()?, engine: engine.join(" ") })
}

/// The lines that tell of trouble: its program ends well whatever its virtual users met.
pub fn troubles(output: &str) -> Vec<&str> {
    output
        .lines()
        .map(str::trim)
        .filter(|line| {
            line.contains("FINISHED FAILED")
                || line.starts_with("Error")
                || line.split_once(':').is_some_and(|(user, said)| {
                    user.starts_with("Vuser ") && said.trim_start().starts_with("Error")
                })
        })
        .collect()
}

/// The summary of the last report in a log of xtprof; empty where there is none.
pub fn summary(log: &str) -> Vec<Timing> {
    let Some((_, summary)) = log.rsplit_once(">>>>> SUMMARY OF ") else { return Vec::new() };
    summary.split(">>>>> PROC: ").skip(1).filter_map(timing).collect()
}

/// One procedure: its name, then `CALLS: 7104<tab>MIN: 0.391ms<tab>...` on two lines.
fn timing(text: &str) -> Option<Timing> {
    let (procedure, values) = text.split_once('\n')?;
    let of = |name: &str| {
        let value = values
            .split(['\t', '\n'])
            .find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix(": "))?;
        value.trim_end_matches("ms").parse::<f64>().ok()
    };
    Some(Timing {
        procedure: procedure.trim().to_string(),
        calls: of("CALLS")? as u64,
        p50_ms: of("P50")?,
        p95_ms: of("P95")?,
        p99_ms: of("P99")?,
    })
}

#[cfg(test)]
mod tests {
    use super::{TestResult, Timing, summary, test_result, troubles};

    const RUN: &str = "\
Vuser 1:RUNNING
Vuser 1:DBVersion:15.18
Vuser 1:Beginning rampup time of 0 minutes
Vuser 1:Rampup complete, Taking start Transaction Count.
Vuser 1:Timing test period of 1 in minutes
Vuser 2:RUNNING
Vuser 2:Processing 10000000 transactions with output suppressed...
Vuser 1:1  ...,
Vuser 1:Test complete, Taking end Transaction Count.
Vuser 1:2 Active Virtual Users configured
Vuser 1:TEST RESULT : System achieved 10815 NOPM from 24662 PostgreSQL TPM
Vuser 1:Gathering timing data from Active Virtual Users...Calculating timings...
Vuser 1:FINISHED SUCCESS
ALL VIRTUAL USERS COMPLETE
";

    #[test]
    fn both_forms_of_the_result_are_read() {
        let result = TestResult { nopm: 10815, tpm: 24662, engine: "PostgreSQL".to_string() };
        assert_eq!(test_result(RUN), Some(result));
        let turned = "Vuser 1:TEST RESULT : System achieved 35438 MariaDB TPM at 15451 NOPM";
        let result = TestResult { nopm: 15451, tpm: 35438, engine: "MariaDB".to_string() };
        assert_eq!(test_result(turned), Some(result));
        let two_words = "TEST RESULT : System achieved 1 NOPM from 2 SQL Server TPM";
        assert_eq!(test_result(two_words).unwrap().engine, "SQL Server");
        assert_eq!(test_result("Vuser 1:FINISHED SUCCESS"), None);
        assert_eq!(test_result("TEST RESULT : System achieved many NOPM from 2 X TPM"), None);
    }

    #[test]
    fn what_went_wrong_is_found_though_the_program_ends_well() {
        assert_eq!(troubles(RUN), Vec::<&str>::new());
        let failed = "\
Vuser 2:RUNNING
Error in Virtual User 2: Connection to database failed
Vuser 2:FINISHED FAILED
Vuser 1:FINISHED SUCCESS
Error: Database tpcc exists but is not empty
Vuser 3:Error: no such procedure
";
        let found = troubles(failed);
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found[0].ends_with("Connection to database failed"));
    }

    /// Of version 4.12; 6.0 also tells P75 and P25.
    const PROFILE: &str = "\
PostgreSQL Hammerdb Time Profile Report @ Sun Nov 22 09:00:00 UTC 2026
+-+-+-+-+-+-+-+-+-+
>>>>> VIRTUAL USER 2 : ELAPSED TIME : 59873ms
>>>>> PROC: NEWORD
CALLS: 5400\tMIN: 0.901ms\tAVG: 4.300ms\tMAX: 88.001ms\tTOTAL: 23220.100ms
P99: 20.100ms\tP95: 9.200ms\tP50: 3.300ms\tSD: 3000.1\tRATIO: 38.100%
+-+-+-+-+-+-+-+-+-+
>>>>> SUMMARY OF 2 ACTIVE VIRTUAL USERS : MEDIAN ELAPSED TIME : 59873ms
>>>>> PROC: NEWORD
CALLS: 10815\tMIN: 0.899ms\tAVG: 4.310ms\tMAX: 99.002ms\tTOTAL: 46612.650ms
P99: 21.345ms\tP95: 9.301ms\tP75: 5.100ms\tP50: 3.352ms\tP25: 2.222ms\tSD: 3012.4ms\tRATIO: 38.400%
>>>>> PROC: PAYMENT
CALLS: 10790\tMIN: 0.500ms\tAVG: 2.100ms\tMAX: 70.000ms\tTOTAL: 22659.000ms
P99: 11.000ms\tP95: 5.000ms\tP50: 1.700ms\tSD: 1500.0\tRATIO: 19.000%
+-+-+-+-+-+-+-+-+-+
";

    #[test]
    fn the_summary_of_all_users_is_read_and_no_single_user() {
        let timings = summary(PROFILE);
        assert_eq!(timings.len(), 2);
        assert_eq!(
            timings[0],
            Timing {
                procedure: "NEWORD".to_string(),
                calls: 10815,
                p50_ms: 3.352,
                p95_ms: 9.301,
                p99_ms: 21.345
            }
        );
        assert_eq!((timings[1].calls, timings[1].p50_ms), (10790, 1.7));
        assert_eq!(summary("no report"), []);
        // The log is appended to: the last report counts.
        let later = PROFILE.replace("CALLS: 10815", "CALLS: 20000");
        assert_eq!(summary(&format!("{PROFILE}{later}"))[0].calls, 20000);
    }
}
