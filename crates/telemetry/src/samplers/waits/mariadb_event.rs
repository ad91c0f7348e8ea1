//! Wait events of MariaDB's performance schema in the classes and words that records know. Pure.
//!
//! Classes are PostgreSQL's: `IO` on files, `LWLock` for latches, `Lock` for what transactions and statements
//! hold, `Client`, `IPC` for conditions. Files of InnoDB get PostgreSQL's words for what is done to them, so that
//! reports put them into the same classes of time; everything else keeps the last part of the server's name.

/// Class and event of a wait such as `wait/io/file/innodb/innodb_data_file` for an operation such as `read`.
pub(super) fn words(event: &str, operation: &str) -> (String, String) {
    let name = event.rsplit('/').next().unwrap_or(event);
    let kind = event.strip_prefix("wait/").unwrap_or(event);
    let (class, event) = if let Some(file) = kind.strip_prefix("io/file/") {
        ("IO", of_file(file, name, operation))
    } else if kind.starts_with("io/socket/") {
        ("Client", name.to_string())
    } else if kind.starts_with("lock/") || name.starts_with("MDL_context") {
        ("Lock", "table".to_string())
    } else if kind.starts_with("synch/cond/") {
        ("IPC", name.to_string())
    } else if kind.starts_with("synch/") {
        ("LWLock", name.to_string())
    } else {
        ("Other", name.to_string())
    };
    (class.to_string(), event)
}

fn of_file(file: &str, name: &str, operation: &str) -> String {
    let done = match operation {
        "read" => "Read",
        "write" => "Write",
        "sync" => "Sync",
        _ => "Other",
    };
    match file {
        "innodb/innodb_log_file" => format!("InnodbLog{done}"),
        "innodb/innodb_data_file" | "innodb/innodb_dblwr_file" => format!("DataFile{done}"),
        "innodb/innodb_temp_file" => format!("BufFile{done}"),
        _ => name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn events_get_the_words_that_reports_know() {
        let of = |event, operation| {
            let (class, event) = words(event, operation);
            format!("{class}:{event}")
        };
        assert_eq!(of("wait/io/file/innodb/innodb_data_file", "read"), "IO:DataFileRead");
        assert_eq!(of("wait/io/file/innodb/innodb_data_file", "sync"), "IO:DataFileSync");
        assert_eq!(of("wait/io/file/innodb/innodb_log_file", "write"), "IO:InnodbLogWrite");
        assert_eq!(of("wait/io/file/innodb/innodb_temp_file", "read"), "IO:BufFileRead");
        assert_eq!(of("wait/io/file/sql/binlog", "sync"), "IO:binlog");
        assert_eq!(
            of("wait/synch/rwlock/innodb/index_tree_rw_lock", "shared"),
            "LWLock:index_tree_rw_lock"
        );
        assert_eq!(
            of("wait/synch/cond/sql/MDL_context::COND_wait_status", "timed_wait"),
            "Lock:table"
        );
        assert_eq!(
            of("wait/synch/cond/mysys/my_thread_var::suspend", "wait"),
            "IPC:my_thread_var::suspend"
        );
        assert_eq!(of("wait/lock/metadata/sql/mdl", "metadata lock"), "Lock:table");
        assert_eq!(of("wait/io/socket/sql/client_connection", "send"), "Client:client_connection");
    }
}
