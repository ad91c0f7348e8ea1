//! Statistics views of a PostgreSQL server, all numeric columns, raw.
//!
//! * **Reads** `pg_stat_database` (the connected database), `pg_stat_wal`, `pg_stat_bgwriter`,
//!   `pg_stat_checkpointer`, `pg_stat_slru` (added up), `pg_stat_user_tables` (added up), `pg_stat_io` (per
//!   kind of process and object), and the position of the log. One round trip with all queries.
//! * **Emits** `<view>.<column>` for the columns that the server's own catalogue lists.
//! * **Costs** about 0.2 ms of CPU here and 0.6 ms in the server per tick.
//! * **Needs** a login; `track_io_timing` for times, `pg_read_all_stats` for nothing here.
//!
//! Columns are discovered when connecting, so that no version is built in. The server's end is
//! missing values; after it comes back the columns are discovered again. The counters of a server that
//! crashed start again at zero: that is a reset for the reader, and nothing is hidden here.

mod views;

use crate::declare::{SamplerDoc, SeriesDoc};
use crate::identity::{Identity, identify};
use crate::source::{SampleError, Sampler, Status};
use crate::sql_session::{SqlSession, explain};
use tokio_postgres::{Client, Error, Statement};
use underlay_core::series::{Layer, SeriesSpec};
use underlay_database::Target;
use views::{Discovered, FIND_COLUMNS, LOG_POSITION, Places, Shape, VIEWS, discover, part_of};

const POSITION: SeriesDoc = SeriesDoc::counter(
    "wal.position",
    "bytes",
    "position of the write-ahead log since the cluster began (replay position on a standby)",
);
const OWN_TRANSACTIONS: SeriesDoc = SeriesDoc::counter(
    "observer.transactions",
    "transactions",
    "queries of this source, each a transaction that the server counts in database.xact_commit",
);

/// The declaration.
pub(crate) const DOC: SamplerDoc = SamplerDoc {
    name: "postgres",
    layer: Layer::Database,
    reads: "pg_stat_database, pg_stat_wal, pg_stat_bgwriter, pg_stat_checkpointer, pg_stat_slru, pg_stat_user_tables, pg_stat_io, pg_current_wal_lsn(); columns as the catalogue lists them",
    costs: "one round trip: 0.2 ms of CPU here, 0.6 ms in the server",
    needs: "a login to the server; track_io_timing for the times",
    traps: &[
        "sessions report their counts at most once per second, at the end of a transaction. A difference over 1 s may be off by one report; take totals from the edges of a window",
        "before version 15 the views show a snapshot up to 0.5 s old",
        "counters restart at zero after a crash of the server (not after a clean stop): a reset, see stats_reset",
        "write_time and read_time are zero, not missing, while track_io_timing is off: the status says so",
        "wal.position and wal.wal_bytes differ: the position also counts page headers and the unused end of segments",
    ],
    series: &[
        POSITION,
        OWN_TRANSACTIONS,
        SeriesDoc::gauge(
            "database.numbackends",
            "sessions",
            "sessions in the database, the collector's own included (one; two if there is no maintenance database to sample from)",
        ),
        SeriesDoc::gauge("user_tables.n_live_tup", "rows", "estimated live rows"),
        SeriesDoc::gauge("user_tables.n_dead_tup", "rows", "estimated dead rows"),
        SeriesDoc::gauge(
            "user_tables.n_mod_since_analyze",
            "rows",
            "rows changed since the last analyze",
        ),
        SeriesDoc::gauge(
            "user_tables.n_ins_since_vacuum",
            "rows",
            "rows inserted since the last vacuum",
        ),
        SeriesDoc::gauge(
            "io.<actor>.<object>.op_bytes",
            "bytes",
            "unit size of pg_stat_io before version 18, times its rows",
        ),
        SeriesDoc::gauge(
            "<view>.stats_reset",
            "s",
            "when the view's counters were last reset, seconds of the epoch",
        ),
        SeriesDoc::counter(
            "database.<column>",
            "<by name>",
            "every other numeric column of pg_stat_database for the connected database",
        ),
        SeriesDoc::counter(
            "wal.<column>",
            "<by name>",
            "every numeric column of pg_stat_wal (14+)",
        ),
        SeriesDoc::counter(
            "bgwriter.<column>",
            "<by name>",
            "every numeric column of pg_stat_bgwriter",
        ),
        SeriesDoc::counter(
            "checkpointer.<column>",
            "<by name>",
            "every numeric column of pg_stat_checkpointer (17+)",
        ),
        SeriesDoc::counter(
            "slru.<column>",
            "<by name>",
            "every numeric column of pg_stat_slru, added up",
        ),
        SeriesDoc::counter(
            "user_tables.<column>",
            "<by name>",
            "every other numeric column of pg_stat_user_tables, added up",
        ),
        SeriesDoc::counter(
            "io.<actor>.<object>.<column>",
            "<by name>",
            "every other numeric column of pg_stat_io (16+), added up over contexts, per kind of process (client_backend, checkpointer, background_writer, autovacuum_worker, walwriter, other) and object",
        ),
    ],
};

/// Settings recorded as notes; a server omits those it does not have.
const SETTINGS: &str = "\
    SELECT name::text, setting::text FROM pg_catalog.pg_settings
     WHERE name IN ('server_version', 'track_io_timing', 'track_wal_io_timing', 'track_counts',
                    'track_activities', 'stats_fetch_consistency')
     ORDER BY name";

/// The sampler.
struct Statistics {
    identity: Identity,
    session: Option<SqlSession>,
    places: Places,
    plan: Plan,
    transactions: u64,
    facts: Vec<String>,
}

/// What is asked on the present connection.
#[derive(Default)]
struct Plan {
    /// Number of the connection that it was made on.
    generation: u64,
    queries: Vec<Query>,
    /// Place of the sampler's own transactions.
    own_place: usize,
}

/// One prepared statement and where its numbers go.
struct Query {
    statement: Statement,
    /// Part of the series names (empty for queries of one row), and the place of each number.
    rows: Vec<(String, Vec<Option<usize>>)>,
}

/// What a new connection says.
struct Introduction {
    settings: Vec<(String, String)>,
    found: Vec<Found>,
    refused: Vec<String>,
}

/// A query that works, and the series of its first answer.
struct Found {
    statement: Statement,
    /// Part of the series names, and the series of each number that is of use.
    rows: Vec<(String, Vec<Option<SeriesSpec>>)>,
}

/// One thing to ask.
enum Question {
    LogPosition,
    View(Discovered),
}

impl Question {
    fn name(&self) -> &'static str {
        match self {
            Question::LogPosition => "pg_current_wal_lsn",
            Question::View(discovered) => discovered.view.name,
        }
    }

    fn sql(&self) -> String {
        match self {
            Question::LogPosition => LOG_POSITION.to_string(),
            Question::View(discovered) => discovered.sql(),
        }
    }

    /// The series of one row of the answer. A number that a kind of process never has is null for
    /// good and is no series; elsewhere a null may come and go.
    fn series(&self, part: &str, numbers: &[Option<f64>]) -> Vec<Option<SeriesSpec>> {
        match self {
            Question::LogPosition => vec![Some(POSITION.spec())],
            Question::View(discovered) => {
                let per_actor = discovered.view.shape == Shape::PerActor;
                let series = discovered.series(part).into_iter().zip(numbers);
                series
                    .map(|(spec, number)| (!per_actor || number.is_some()).then_some(spec))
                    .collect()
            }
        }
    }
}

/// The sampler of this server.
pub(crate) fn statistics(target: Option<&Target>) -> Box<dyn Sampler> {
    let mut identity = Identity::available(&DOC, Vec::new());
    let session = match target.map(SqlSession::new) {
        Some(Ok(session)) => {
            identity.status = Status::Absent("not connected yet".to_string());
            Some(session)
        }
        Some(Err(error)) => {
            identity.status = Status::Absent(format!("could not make a runtime: {error}"));
            None
        }
        None => {
            identity.status = Status::Absent("no database to observe was configured".to_string());
            None
        }
    };
    let (places, plan) = (Places::default(), Plan::default());
    let (transactions, facts) = (0, Vec::new());
    Box::new(Statistics { identity, session, places, plan, transactions, facts })
}

impl Statistics {
    /// The values of one tick; makes a new plan on a new connection.
    fn read(&mut self, values: &mut Vec<f64>) -> Result<(), SampleError> {
        let Some(session) = &mut self.session else {
            return Err(self.identity.absence());
        };
        let generation = session.connected()?;
        if generation != self.plan.generation {
            let introduction = session.run(introduce)?;
            self.adopt(generation, introduction);
        }
        let (Some(session), plan) = (&mut self.session, &self.plan) else {
            return Err(self.identity.absence());
        };
        let answers = session.run(async |client| ask(client, &plan.queries).await)?;
        self.transactions += self.plan.queries.len() as u64;
        values.resize(self.identity.series.len(), f64::NAN);
        values[self.plan.own_place] = self.transactions as f64;
        for (query, rows) in self.plan.queries.iter().zip(answers) {
            for (name, numbers) in rows {
                let places = query.rows.iter().find(|(part, _)| *part == name);
                for (place, number) in places.iter().flat_map(|(_, p)| p).zip(numbers) {
                    if let (Some(place), Some(number)) = (place, number) {
                        values[*place] = number;
                    }
                }
            }
        }
        Ok(())
    }

    /// Lays out the series of a connection; former ones keep their places.
    fn adopt(&mut self, generation: u64, introduction: Introduction) {
        let Introduction { settings, found, refused } = introduction;
        let mut queries = Vec::new();
        for Found { statement, rows } in found {
            let mut place = |spec: &SeriesSpec| self.places.of(spec, &mut self.identity.series);
            let mut placed = |series: Vec<Option<SeriesSpec>>| {
                series.iter().map(|spec| spec.as_ref().map(&mut place)).collect()
            };
            let rows = rows.into_iter().map(|(part, series)| (part, placed(series))).collect();
            queries.push(Query { statement, rows });
        }
        // Logging in, two questions and each query once, all but the login also prepared.
        self.transactions += 5 + 2 * (queries.len() + refused.len()) as u64;
        let own_place = self.places.of(&OWN_TRANSACTIONS.spec(), &mut self.identity.series);
        self.plan = Plan { generation, queries, own_place };
        self.identity.status = judge(&settings, &refused);
        self.facts = settings.iter().map(|(name, setting)| format!("{name} = {setting}")).collect();
    }
}

/// A server without timing answers zero where it does not know.
fn judge(settings: &[(String, String)], refused: &[String]) -> Status {
    let mut gaps = refused.to_vec();
    for name in ["track_io_timing", "track_counts"] {
        if settings.iter().any(|(known, setting)| known == name && setting == "off") {
            gaps.push(format!("{name} is off: its columns stay zero; set it to on"));
        }
    }
    match gaps.is_empty() {
        true => Status::Available,
        false => Status::Degraded(gaps.join("; ")),
    }
}

/// Looks at the catalogue, prepares what can be asked, and tries each query once, so that one that
/// is refused does not take the others with it.
async fn introduce(client: &Client) -> Result<Introduction, Error> {
    let settings = client.query(SETTINGS, &[]).await?;
    let settings = settings.iter().map(|row| (row.get(0), row.get(1))).collect();
    let names: Vec<&str> = VIEWS.iter().map(|view| view.name).collect();
    let columns = client.query(FIND_COLUMNS, &[&names]).await?;
    let columns: Vec<(String, String, String)> =
        columns.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
    let (mut found, mut refused) = (Vec::new(), Vec::new());
    let views = discover(&columns).into_iter().map(Question::View);
    for question in std::iter::once(Question::LogPosition).chain(views) {
        match attempt(client, &question).await {
            Ok(query) => found.push(query),
            Err(error) if client.is_closed() => return Err(error),
            Err(error) => refused.push(format!("{}: {}", question.name(), explain(&error))),
        }
    }
    Ok(Introduction { settings, found, refused })
}

async fn attempt(client: &Client, question: &Question) -> Result<Found, Error> {
    let statement = client.prepare(&question.sql()).await?;
    let rows = answer(client, &statement).await?.into_iter().map(|(part, numbers)| {
        let series = question.series(&part, &numbers);
        (part, series)
    });
    let rows = rows.collect();
    Ok(Found { statement, rows })
}

/// Rows of an answer: part of the series name, numbers.
type Rows = Vec<(String, Vec<Option<f64>>)>;

async fn answer(client: &Client, statement: &Statement) -> Result<Rows, Error> {
    let rows = client.query(statement, &[]).await?;
    let of_row = |row: &tokio_postgres::Row| match row.len() {
        1 => Ok((String::new(), row.try_get(0)?)),
        _ => Ok((part_of(row.try_get(0)?, row.try_get(1)?), row.try_get(2)?)),
    };
    rows.iter().map(of_row).collect()
}

/// Asks everything at once: the queries travel together and are answered in their order.
async fn ask(client: &Client, queries: &[Query]) -> Result<Vec<Rows>, Error> {
    let answers = queries.iter().map(|query| answer(client, &query.statement));
    futures_util::future::try_join_all(answers).await
}

impl Sampler for Statistics {
    identify!();

    fn sample(&mut self, values: &mut Vec<f64>) -> Result<(), SampleError> {
        let outcome = self.read(values);
        if let Err(error) = &outcome {
            self.identity.status.still_absent_because(error);
        }
        outcome
    }

    fn facts(&self) -> Vec<String> {
        self.facts.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::{judge, statistics};
    use crate::source::Status;
    use underlay_database::Target;

    #[test]
    fn a_missing_server_is_an_absence_that_says_why() {
        let mut none = statistics(None);
        assert!(matches!(none.status(), Status::Absent(why) if why.contains("no database")));
        for _ in 0..2 {
            assert!(none.sample(&mut Vec::new()).is_err());
            assert_eq!(none.status().reason(), Some("no database to observe was configured"));
        }
        let target = Target::unix_socket("/nonexistent/socket".into(), 5999, "nobody");
        let mut nowhere = statistics(Some(&target));
        assert!(nowhere.sample(&mut Vec::new()).is_err());
        assert!(matches!(nowhere.status(), Status::Absent(why) if why.contains("nonexistent")));
    }

    #[test]
    fn silent_zeros_are_named() {
        let settings = [("track_io_timing".to_string(), "off".to_string())];
        assert!(matches!(judge(&settings, &[]), Status::Degraded(why) if why.contains("track_io")));
        let settings = [("track_io_timing".to_string(), "on".to_string())];
        assert_eq!(judge(&settings, &[]), Status::Available);
        assert!(matches!(judge(&[], &["no".to_string()]), Status::Degraded(_)));
    }
}
