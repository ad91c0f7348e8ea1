//! What our export is compared with: nbdkit's memory plug-in behind nbdfuse, a loop device with direct I/O, ext4.

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use underlay_core::Bytes;
use underlay_host::{
    FileSystem, LoopDevice, Mount, Process, ProcessSpec, Resource, find_program, make_file_system,
};

use super::site::{Failure, Site};

/// nbdkit's memory plug-in behind nbdfuse.
pub struct Peer {
    servers: Vec<Process>,
    /// A file on it.
    pub file: PathBuf,
}

impl Peer {
    /// Starts it with a file system; none where it is not installed.
    pub fn start(site: &Site, capacity: Bytes) -> Result<Option<Peer>, Failure> {
        let (Some(nbdkit), Some(nbdfuse)) = (find_program("nbdkit"), find_program("nbdfuse"))
        else {
            return Ok(None);
        };
        let base = site.scratch.join("peer");
        site.teardown.create_directory(&base)?;
        let (socket, export, target) = (base.join("s"), base.join("export"), base.join("mnt"));
        std::fs::create_dir(&export)?;
        std::fs::create_dir(&target)?;
        let size = capacity.0.to_string();
        let socket_text = socket.display().to_string();
        let server = spawn(site, "nbdkit", &nbdkit, &["-f", "-U", &socket_text, "memory", &size])?;
        wait_for(|| socket.exists())?;
        site.teardown.register(Resource::Mount { target: export.clone() })?;
        let file = export.join("nbd");
        let uri = format!("nbd+unix:///?socket={socket_text}");
        let file_text = file.display().to_string();
        let bridge = spawn(site, "nbdfuse", &nbdfuse, &["-C", "4", &file_text, &uri])?;
        wait_for(|| file.exists())?;
        let device = LoopDevice::attach(&site.teardown, &file, 4096)?;
        make_file_system(device.device(), FileSystem::Ext4)?;
        Mount::make(&site.teardown, device.device(), &target, FileSystem::Ext4, "noatime")?;
        Ok(Some(Peer { servers: vec![server, bridge], file: target.join("file") }))
    }

    /// The processes whose CPU time is the peer's.
    pub fn servers(&self) -> Vec<u32> {
        self.servers.iter().map(Process::pid).collect()
    }
}

fn spawn(site: &Site, name: &str, program: &Path, arguments: &[&str]) -> Result<Process, Failure> {
    Ok(Process::spawn(
        &site.teardown,
        &ProcessSpec {
            name,
            program,
            args: arguments.iter().map(Into::into).collect(),
            env: Vec::new(),
            run_as: None,
            cgroup: None,
            working_dir: Path::new("/"),
            output: site.scratch.join(format!("{name}.log")),
        },
    )?)
}

fn wait_for(ready: impl Fn() -> bool) -> Result<(), Failure> {
    let begin = Instant::now();
    while !ready() {
        if begin.elapsed() > Duration::from_secs(10) {
            return Err("the peer did not start within 10 s".into());
        }
        sleep(Duration::from_millis(10));
    }
    Ok(())
}
