//! One connection that inserts: a prepared statement per row, or `LOAD DATA LOCAL INFILE` without a file.

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params, Statement, Value};
use tokio::sync::mpsc;
use underlay_workload::batch::{Row, TEXT_COLUMNS};

use super::{columns, not_sent, open};
use crate::batch::Inserter;
use crate::error::{CommitState, SessionError};
use crate::target::Target;

/// Size of a message of a stream.
const CHUNK_BYTES: usize = 64 << 10;
/// Number, texts, bytes.
const COLUMNS: usize = TEXT_COLUMNS.len() + 2;

/// A connection and what is prepared on it.
pub(crate) struct MariadbInserter {
    conn: Conn,
    insert: Statement,
    /// Whether a transaction is open: then an `INSERT` commits nothing.
    is_open: bool,
}

impl Inserter for MariadbInserter {
    async fn connect(target: &Target) -> Result<MariadbInserter, SessionError> {
        let mut conn = open(target).await?;
        let values = vec!["?"; COLUMNS].join(", ");
        let sql = format!("INSERT INTO test ({}) VALUES ({values})", columns());
        let insert = conn.prep(sql).await.map_err(not_sent)?;
        Ok(MariadbInserter { conn, insert, is_open: false })
    }

    async fn begin(&mut self) -> Result<(), SessionError> {
        self.is_open = true;
        self.conn.query_drop("START TRANSACTION").await.map_err(not_sent)
    }

    async fn insert(&mut self, row: &Row) -> Result<(), SessionError> {
        let mut values = Vec::with_capacity(COLUMNS);
        values.push(Value::UInt(u64::from(row.rec_num)));
        values.extend(row.texts.iter().map(|text| Value::Bytes(text.as_bytes().to_vec())));
        values.push(Value::Bytes(row.checkord.to_vec()));
        let commit = if self.is_open { CommitState::NotSent } else { CommitState::InFlight };
        let done = self.conn.exec_drop(&self.insert, Params::Positional(values)).await;
        done.map_err(|error| SessionError::from_mariadb(&error, commit))
    }

    async fn commit(&mut self) -> Result<(), SessionError> {
        let done = self.conn.query_drop("COMMIT").await;
        done.map_err(|error| SessionError::from_mariadb(&error, CommitState::InFlight))
    }

    async fn rollback(&mut self) -> Result<(), SessionError> {
        self.conn.query_drop("ROLLBACK").await.map_err(not_sent)
    }

    async fn stream(
        &mut self,
        rows: &mut (dyn FnMut() -> Option<Row> + Send),
        sent: &mut (dyn FnMut(u64) + Send),
    ) -> Result<(), SessionError> {
        // One message is ready while the server takes another.
        let (sender, receiver) = mpsc::channel::<Bytes>(1);
        self.conn.set_infile_handler(async move {
            let chunks = stream::unfold(receiver, |mut receiver| async move {
                receiver.recv().await.map(|chunk| (Ok(chunk), receiver))
            });
            Ok(chunks.boxed())
        });
        let columns = columns().replace(", checkord", ", @checkord");
        let sql = format!(
            "LOAD DATA LOCAL INFILE 'rows' INTO TABLE test CHARACTER SET latin1 FIELDS TERMINATED BY '\\t' \
             LINES TERMINATED BY '\\n' ({columns}) SET checkord = unhex(@checkord)"
        );
        // Dropping the sender ends the file; a server that refuses drops the receiver, which ends the rows.
        let generate = async move {
            let mut buffer = BytesMut::new();
            let mut has_more = true;
            while has_more {
                let mut n = 0;
                buffer.reserve(CHUNK_BYTES + 1024);
                while buffer.len() < CHUNK_BYTES {
                    let Some(row) = rows() else {
                        has_more = false;
                        break;
                    };
                    put_row(&mut buffer, &row);
                    n += 1;
                }
                if sender.send(buffer.split().freeze()).await.is_err() {
                    return;
                }
                sent(n);
            }
        };
        let (loaded, ()) = futures_util::future::join(self.conn.query_drop(sql), generate).await;
        loaded.map_err(not_sent)
    }
}

/// A line of text. The generator's texts have neither tabs nor newlines nor backslashes; bytes are written as digits.
fn put_row(out: &mut BytesMut, row: &Row) {
    let mut digits = [0u8; 10];
    let mut rest = row.rec_num;
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.put_slice(&digits[at..]);
    for text in &row.texts {
        out.put_u8(b'\t');
        out.put_slice(text.as_bytes());
    }
    out.put_u8(b'\t');
    for byte in row.checkord {
        out.put_u8(b"0123456789ABCDEF"[usize::from(byte >> 4)]);
        out.put_u8(b"0123456789ABCDEF"[usize::from(byte & 15)]);
    }
    out.put_u8(b'\n');
}
