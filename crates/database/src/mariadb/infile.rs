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

/// Carries out `sql`, a `LOAD DATA LOCAL INFILE`, with what `next` appends as the file, until it says that there is no more.
pub(super) async fn load_rows(
    conn: &mut Conn,
    sql: &str,
    next: &mut dyn FnMut(&mut BytesMut) -> bool,
) -> Result<Completed, mysql_async::Error> {
    let (sender, receiver) = mpsc::channel::<Bytes>(CHUNKS_READY);
    conn.set_infile_handler(async move {
        let chunks = stream::unfold(receiver, |mut receiver| async move {
            receiver.recv().await.map(|chunk| (Ok(chunk), receiver))
        });
        Ok(chunks.boxed())
    });
    // Dropping the sender ends the file; a server that refuses drops the receiver, which ends the rows, and says why itself.
    let generate = async move {
        let mut has_more = true;
        while has_more {
            let mut rows = BytesMut::new();
            has_more = next(&mut rows);
            if sender.send(rows.freeze()).await.is_err() {
                return;
            }
        }
    };
    let (loaded, ()) = futures_util::future::join(conn.query_drop(sql), generate).await;
    loaded?;
    let (changed, warnings) = (conn.affected_rows(), conn.get_warnings());
    Ok(Completed { changed, warnings, ..Completed::default() })
}
