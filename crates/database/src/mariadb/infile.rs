//! `LOAD DATA LOCAL INFILE` from rows that are generated while the server reads them.
//!
//! The server asks its client for a file, and the client answers with what a generator sends; no file exists.

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tokio::sync::mpsc;

use crate::connection::Completed;

/// Messages that are ready before the server takes them.
const CHUNKS_READY: usize = 4;

/// Where a generator sends the file to. An error means that the server wants no more of it.
pub(crate) type Chunks = mpsc::Sender<Bytes>;

/// Carries out `sql`, a `LOAD DATA LOCAL INFILE`, with what `generate` sends as the file.
pub(crate) async fn load_data(
    conn: &mut Conn,
    sql: &str,
    generate: impl AsyncFnOnce(Chunks),
) -> Result<(), mysql_async::Error> {
    let (sender, receiver) = mpsc::channel::<Bytes>(CHUNKS_READY);
    conn.set_infile_handler(async move {
        let chunks = stream::unfold(receiver, |mut receiver| async move {
            receiver.recv().await.map(|chunk| (Ok(chunk), receiver))
        });
        Ok(chunks.boxed())
    });
    // Dropping the sender ends the file; a server that refuses drops the receiver, which ends the rows.
    let (loaded, ()) = futures_util::future::join(conn.query_drop(sql), generate(sender)).await;
    loaded?;
    let warnings = conn.get_warnings();
    if warnings > 0 {
        // Strict mode makes errors of what would change data; what is left is worth a look.
        tracing::warn!(warnings, sql, "the server warned while loading");
    }
    Ok(())
}

/// Carries out `sql`, a `LOAD DATA LOCAL INFILE`, with what `next` appends as the file, until it says that there is no more.
pub(crate) async fn load_rows(
    conn: &mut Conn,
    sql: &str,
    next: &mut dyn FnMut(&mut BytesMut) -> bool,
) -> Result<Completed, mysql_async::Error> {
    load_data(conn, sql, async |chunks| {
        let mut has_more = true;
        while has_more {
            let mut rows = BytesMut::new();
            has_more = next(&mut rows);
            // A server that refuses says why itself.
            if chunks.send(rows.freeze()).await.is_err() {
                return;
            }
        }
    })
    .await?;
    Ok(Completed { changed: conn.affected_rows(), ..Completed::default() })
}
