//! Volumes of ours are known as such however they are reached on this host, and what is not ours is not.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::harness::{Store, io, json, text, wait_for};

/// A remote disk as a file of this host, by a program that is not ours; gone at the end.
struct FuseOfNbd<'a> {
    child: Child,
    folder: &'a Path,
}

impl FuseOfNbd<'_> {
    /// None where the program is missing.
    fn start<'a>(folder: &'a Path, uri: &str) -> Option<FuseOfNbd<'a>> {
        fs::create_dir_all(folder).expect("a folder");
        let disk = folder.join("disk");
        let quiet = || Stdio::null();
        let started =
            Command::new("nbdfuse").arg(&disk).arg(uri).stdout(quiet()).stderr(quiet()).spawn();
        let Ok(child) = started else {
            eprintln!("skip: nbdfuse is not installed");
            return None;
        };
        let mounted = FuseOfNbd { child, folder };
        wait_for("the file", || disk.exists());
        Some(mounted)
    }
}

impl Drop for FuseOfNbd<'_> {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("--lazy").arg(self.folder).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            eprintln!("{} stays mounted", self.folder.display());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_volume_is_emulated_over_nbd_too() {
    let Some((store, device)) = Store::with_device("profile") else { return };
    let evidence = |target: &Path| {
        let arguments = ["4k-random-write", text(target), "--destroy", text(target), "--size"];
        let brief = ["16MiB", "--duration", "1s", "--warm-up", "0s", "--json"];
        let ended = io(&store.bench, &[&arguments[..], &brief].concat()).expect_ok();
        json(&ended)["targets"][0]["evidence"].clone()
    };
    assert_eq!(evidence(&device), "emulated");
    let socket = store.directory.join("run/nbd.sock");
    let ours = store.bench.path().join("ours");
    let uri = format!("nbd+unix:///data?socket={}", text(&socket));
    let Some(_ours) = FuseOfNbd::start(&ours, &uri) else { return };
    assert_eq!(evidence(&ours.join("disk")), "emulated");
    // Of another server, beside it.
    let plain = store.bench.path().join("plain");
    fs::File::create(&plain).and_then(|file| file.set_len(64 << 20)).expect("a file");
    let socket = store.bench.path().join("other.sock");
    let mut server = Command::new("qemu-nbd");
    let server = server.args(["--format", "raw", "--socket", text(&socket), text(&plain)]);
    let Ok(mut server) = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
        eprintln!("skip: qemu-nbd is not installed");
        return;
    };
    wait_for("the server", || socket.exists());
    let other = store.bench.path().join("other");
    let reached = FuseOfNbd::start(&other, &format!("nbd+unix:///?socket={}", text(&socket)));
    assert_eq!(evidence(&other.join("disk")), "measured");
    drop(reached);
    let _ = server.kill();
    let _ = server.wait();
}
