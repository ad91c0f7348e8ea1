//! Statements on a server of either engine, and their answers as text.

use std::fmt::Display;
use std::thread;

use mysql_async::prelude::Queryable;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::SimpleQueryMessage;
use underlay_database::{Engine, Target, mariadb};

/// A runtime for the calling thread.
pub fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Carries out a statement (of PostgreSQL also several) in a session of its own. The first column of all rows as text;
/// NULL is `null`. May be called within a runtime.
pub fn query(target: &Target, sql: &str) -> Result<Vec<String>, String> {
    let work = async {
        match target.engine {
            Engine::Postgresql => query_postgresql(target, sql).await,
            Engine::Mariadb => query_mariadb(target, sql).await,
        }
    };
    let answer = thread::scope(|scope| scope.spawn(|| runtime().block_on(work)).join());
    let texts = answer.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    Ok(texts.into_iter().map(|text| text.unwrap_or_else(|| "null".to_string())).collect())
}

async fn query_postgresql(target: &Target, sql: &str) -> Result<Vec<Option<String>>, String> {
    let client = target.connect().await.map_err(text_of)?;
    let messages = client.simple_query(sql).await.map_err(text_of)?;
    let text = |message: &SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).map(str::to_string)),
        _ => None,
    };
    Ok(messages.iter().filter_map(text).collect())
}

async fn query_mariadb(target: &Target, sql: &str) -> Result<Vec<Option<String>>, String> {
    let mut client = mariadb::connect(target).await.map_err(text_of)?;
    let rows: Vec<mysql_async::Row> = client.query(sql).await.map_err(text_of)?;
    client.disconnect().await.map_err(text_of)?;
    Ok(rows.into_iter().map(|row| row.get::<Option<String>, _>(0).flatten()).collect())
}

fn text_of(error: impl Display) -> String {
    error.to_string()
}

/// Carries out a statement, of PostgreSQL also several, that must succeed.
pub fn execute(target: &Target, sql: &str) {
    texts(target, sql);
}

/// The first column of all rows of a statement that must succeed, as [`query`] returns it.
pub fn texts(target: &Target, sql: &str) -> Vec<String> {
    query(target, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// The only value of a query.
pub fn text(target: &Target, sql: &str) -> String {
    let texts = texts(target, sql);
    assert_eq!(texts.len(), 1, "{sql}: {texts:?}");
    texts.into_iter().next().unwrap()
}

/// The only value of a query, an integer.
pub fn number(target: &Target, sql: &str) -> i64 {
    let text = text(target, sql);
    text.parse().unwrap_or_else(|error| panic!("{sql}: {text}: {error}"))
}
