//! The PostgreSQL server programs that this host has.

use std::path::{Path, PathBuf};

/// One set of server programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Install {
    /// 15 of 15.18.
    pub major: u32,
    /// As the server names it, without the distribution's remark: `15.18`.
    pub version: String,
    /// The real directory of `postgres`, `initdb`, `pg_basebackup`, ...
    pub bin_dir: PathBuf,
}

/// All installs, newest first; only the given directory when one is given.
pub fn find_installs(_server_bin: Option<&Path>) -> Vec<Install> {
    Vec::new()
}

impl Install {
    /// One of its programs.
    pub fn program(&self, name: &str) -> PathBuf {
        self.bin_dir.join(name)
    }
}
