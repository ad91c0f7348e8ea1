//! A private PostgreSQL server in a temporary folder, for tests of what observes a server.
//!
//! It does not use the managed server of the database crate: a test of the observer must be able to
//! kill and restart the observed at any moment without the owner's help.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use underlay_database::Target;

/// A running server; dropping it kills it and removes its folder.
pub struct TestServer {
    folder: tempfile::TempDir,
    programs: PathBuf,
    user: Option<(u32, u32)>,
    child: Option<Child>,
}

const PORT: u16 = 5432;

impl TestServer {
    /// A started server, or why there is none on this host.
    pub fn start() -> Result<TestServer, String> {
        let programs = programs().ok_or("no PostgreSQL server programs are installed")?;
        let user = unprivileged_user()?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))
            .map_err(|error| error.to_string())?;
        if let Some((uid, gid)) = user {
            chown(folder.path(), Some(uid), Some(gid)).map_err(|error| error.to_string())?;
        }
        let mut server = TestServer { folder, programs, user, child: None };
        let output = server
            .command("initdb")
            .args(["-D", "data", "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8"])
            .output()
            .map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        server.restart();
        Ok(server)
    }

    /// Starts the server again, after [`TestServer::kill`], and waits until it answers.
    pub fn restart(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while try_execute(&self.target(), "SELECT 1").is_err() {
            assert!(Instant::now() < deadline, "the server does not answer: {}", self.log());
            // A server refuses to start while sessions of the killed one still end.
            let ended = self
                .child
                .as_mut()
                .is_none_or(|child| child.try_wait().expect("a child can be asked").is_some());
            if ended {
                self.child = Some(self.spawn());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn spawn(&self) -> Child {
        let log = fs::File::create(self.folder.path().join("log")).expect("a log file");
        let mut command = self.command("postgres");
        command.args(["-D", "data", "-k"]).arg(self.folder.path());
        for setting in [
            "listen_addresses=",
            "fsync=off",
            "track_io_timing=on",
            "shared_buffers=32MB",
            "max_connections=50",
        ] {
            command.args(["-c", setting]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command.spawn().expect("the server program starts")
    }

    /// Ends the server as a crash would.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _already_gone = child.kill();
            child.wait().expect("a child can be waited for");
        }
    }

    /// Pid of the server's first process.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("the server runs").id()
    }

    /// Where it listens.
    pub fn target(&self) -> Target {
        Target::unix_socket(self.folder.path().to_path_buf(), PORT, "postgres")
    }

    /// Runs statements.
    pub fn execute(&self, sql: &str) {
        self.execute_at(&self.target(), sql);
    }

    /// Runs statements in another database.
    pub fn execute_at(&self, target: &Target, sql: &str) {
        try_execute(target, sql).expect("the statements run");
    }

    /// Databases of the sessions with this application name, in order; asked in another one.
    pub fn databases_of(&self, application: &str, target: &Target) -> Vec<String> {
        const SQL: &str =
            "SELECT datname::text FROM pg_stat_activity WHERE application_name = $1 ORDER BY 1";
        runtime().block_on(async {
            let client = target.connect().await.expect("the server answers");
            let rows = client.query(SQL, &[&application]).await.expect("an answer");
            rows.iter().map(|row| row.get(0)).collect()
        })
    }

    /// Pids of the sessions with this application name.
    pub fn sessions_named(&self, application: &str) -> Vec<i32> {
        const SQL: &str = "SELECT pid FROM pg_stat_activity WHERE application_name = $1";
        runtime().block_on(async {
            let client = self.target().connect().await.expect("the server answers");
            let rows = client.query(SQL, &[&application]).await.expect("an answer");
            rows.iter().map(|row| row.get(0)).collect()
        })
    }

    /// The answer to a question of yes or no.
    pub fn is_true(&self, sql: &str) -> bool {
        runtime().block_on(async {
            let client = self.target().connect().await.expect("the server answers");
            client.query_one(sql, &[]).await.expect("one row").get(0)
        })
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(self.folder.path()).env("LC_ALL", "C");
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        command
    }
}

impl Drop for TestServer {
    /// An immediate shutdown: unlike a kill it gives the server's shared memory back.
    fn drop(&mut self) {
        let Some(child) = &mut self.child else { return };
        let pid = Pid::from_child(child);
        let asked = kill_process(pid, Signal::QUIT).is_ok();
        let deadline = Instant::now() + Duration::from_secs(10);
        while asked && Instant::now() < deadline {
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.kill();
    }
}

fn try_execute(target: &Target, sql: &str) -> Result<(), String> {
    runtime().block_on(async {
        let client = target.connect().await.map_err(|error| error.to_string())?;
        client.batch_execute(sql).await.map_err(|error| format!("{error:?}"))
    })
}

/// A runtime for the calling thread.
pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// The newest installed server's programs.
fn programs() -> Option<PathBuf> {
    let mut folders: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .ok()?
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .map(|(version, path)| (version, path.join("bin")))
        .filter(|(_, path)| path.join("initdb").exists())
        .collect();
    folders.sort();
    folders.pop().map(|(_, path)| path)
}

/// The server refuses to run as root; then its package's user is borrowed.
fn unprivileged_user() -> Result<Option<(u32, u32)>, String> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let passwd = fs::read_to_string("/etc/passwd").map_err(|error| error.to_string())?;
    let fields = passwd
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find(|fields| fields.first() == Some(&"postgres"))
        .ok_or("there is no user postgres to run a server as")?;
    let number = |index: usize| fields.get(index).and_then(|text| text.parse().ok());
    match (number(2), number(3)) {
        (Some(uid), Some(gid)) => Ok(Some((uid, gid))),
        _ => Err("the user postgres has no numbers".to_string()),
    }
}
