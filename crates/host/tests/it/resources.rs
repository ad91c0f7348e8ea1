//! Each kind of resource on this host: created, in force, and gone after the unwind.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::geteuid;
use tempfile::TempDir;
use underlay_core::Bytes;
use underlay_host::mount::is_mount_point;
use underlay_host::{
    Cgroup, CgroupLimits, FileSystem, HostError, LoopDevice, Mount, Process, ProcessExit,
    ProcessSpec, Resource, Signal, StateDir, Teardown, User, free_space, make_file_system, skip,
    unprivileged_user,
};

struct Place {
    _dir: TempDir,
    path: PathBuf,
    teardown: Teardown,
}

fn place() -> Place {
    let dir = tempfile::Builder::new().prefix("underlay-host").tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711)).unwrap();
    let path = dir.path().canonicalize().unwrap();
    let state = StateDir::at(path.join("state")).unwrap();
    let teardown = Teardown::create(&state, "test").unwrap();
    Place { _dir: dir, path, teardown }
}

fn shell<'a>(
    place: &Place,
    script: &str,
    user: Option<&'a User>,
    cgroup: Option<&'a Cgroup>,
) -> Process {
    let spec = ProcessSpec {
        name: "shell",
        program: Path::new("/bin/sh"),
        args: vec!["-c".into(), script.into()],
        env: vec![("GIVEN".into(), "1".into())],
        run_as: user,
        cgroup,
        working_dir: Path::new("/"),
        output: place.path.join("log"),
    };
    Process::spawn(&place.teardown, &spec).unwrap()
}

#[test]
fn what_exists_is_not_registered() {
    let place = place();
    let mine = place.path.join("mine");
    fs::write(&mine, b"precious").unwrap();
    let check = |resource: Resource| place.teardown.register(resource).unwrap_err();
    assert!(matches!(check(Resource::File { path: mine.clone() }), HostError::AlreadyExists(_)));
    assert!(matches!(
        check(Resource::Directory { path: place.path.clone() }),
        HostError::AlreadyExists(_)
    ));
    assert!(matches!(
        check(Resource::Mount { target: PathBuf::from("/proc") }),
        HostError::AlreadyMounted(_)
    ));
    assert!(matches!(
        check(Resource::File { path: PathBuf::from("relative") }),
        HostError::NotAbsolute(_)
    ));
    assert!(place.teardown.unwind().is_empty());
    assert_eq!(fs::read(mine).unwrap(), b"precious");
    let late = place.teardown.register(Resource::File { path: place.path.join("late") });
    assert!(matches!(late, Err(HostError::TornDown)));
}

#[test]
fn the_last_clone_unwinds() {
    let place = place();
    let dir = place.path.join("dir");
    place.teardown.create_directory(&dir).unwrap();
    fs::write(dir.join("file"), b"x").unwrap();
    let clone = place.teardown.clone();
    drop(place.teardown);
    assert!(dir.exists());
    drop(clone);
    assert!(!dir.exists());
    assert_eq!(fs::read_dir(place.path.join("state/teardown")).unwrap().count(), 0);
}

#[test]
fn a_directory_with_a_mount_inside_is_left_alone() {
    if !geteuid().is_root() {
        skip!("mounting needs root");
    }
    let place = place();
    let dir = place.path.join("dir");
    let ticket = place.teardown.create_directory(&dir).unwrap();
    fs::create_dir(dir.join("mnt")).unwrap();
    rustix::mount::mount(
        "tmpfs",
        dir.join("mnt"),
        "tmpfs",
        rustix::mount::MountFlags::empty(),
        None::<&std::ffi::CStr>,
    )
    .unwrap();
    fs::write(dir.join("mnt/precious"), b"x").unwrap();
    let refused = place.teardown.release(ticket);
    let kept = dir.join("mnt/precious").exists();
    rustix::mount::unmount(dir.join("mnt"), rustix::mount::UnmountFlags::empty()).unwrap();
    assert!(matches!(refused, Err(HostError::AlreadyMounted(_))), "{refused:?}");
    assert!(kept);
    assert!(place.teardown.unwind().is_empty());
    assert!(!dir.exists());
}

/// What is kept by something further down the stack comes loose in a later pass.
#[test]
fn unwinding_goes_on_as_long_as_something_yields() {
    if !geteuid().is_root() {
        skip!("mounting needs root");
    }
    let place = place();
    let dir = place.path.join("dir");
    // The wrong way round: the directory is removed first, and cannot be.
    place.teardown.register(Resource::Mount { target: dir.join("mnt") }).unwrap();
    place.teardown.create_directory(&dir).unwrap();
    fs::create_dir(dir.join("mnt")).unwrap();
    rustix::mount::mount(
        "tmpfs",
        dir.join("mnt"),
        "tmpfs",
        rustix::mount::MountFlags::empty(),
        None::<&std::ffi::CStr>,
    )
    .unwrap();
    assert_eq!(place.teardown.unwind(), []);
    assert!(!dir.exists());
}

#[test]
fn a_process_is_started_as_said() {
    let place = place();
    let user = unprivileged_user().unwrap();
    let script = "echo $GIVEN $HOME. $(id -u) $(id -G) $(umask) $(pwd); cat /proc/self/stat | cut -d' ' -f6; exit 7";
    let process = shell(&place, script, user.as_ref(), None);
    let pid = process.pid();
    let ended = process.wait_for(Duration::from_secs(10)).unwrap();
    assert_eq!(ended, Some(ProcessExit::Code(7)));
    let log = fs::read_to_string(place.path.join("log")).unwrap();
    let mut lines = log.lines();
    let identity = match &user {
        Some(user) => format!("{} {}", user.uid, user.gid),
        None => "".to_string(),
    };
    assert!(lines.next().unwrap().starts_with(&format!("1 . {identity}")), "{log}");
    // Its session is its own.
    assert_eq!(lines.next().unwrap(), pid.to_string());
    assert_eq!(process.collect(ended).unwrap(), ProcessExit::Code(7));
    assert!(place.teardown.registered().is_empty());
}

#[test]
fn a_process_that_does_not_listen_is_killed_with_its_children() {
    let place = place();
    let process = shell(
        &place,
        "trap '' TERM; (trap '' TERM; sleep 61.5) & while :; do sleep 0.05; done",
        None,
        None,
    );
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(process.try_wait().unwrap(), None);
    process.signal(Signal::Stop).unwrap();
    process.signal(Signal::Continue).unwrap();
    let ended = process.terminate(Duration::from_millis(50)).unwrap();
    assert!(matches!(ended, ProcessExit::Signal(9) | ProcessExit::Unknown), "{ended:?}");
    assert!(place.teardown.unwind().is_empty());
}

#[test]
fn a_program_that_cannot_start_leaves_nothing_registered() {
    let place = place();
    let spec = ProcessSpec {
        name: "missing",
        program: Path::new("/no/such/program"),
        args: Vec::new(),
        env: Vec::new(),
        run_as: None,
        cgroup: None,
        working_dir: Path::new("/"),
        output: place.path.join("log"),
    };
    let error = Process::spawn(&place.teardown, &spec).unwrap_err();
    assert!(error.to_string().contains("/no/such/program"), "{error}");
    assert!(place.teardown.registered().is_empty());
}

#[test]
fn a_cgroup_limits_memory_with_the_page_cache() {
    if !geteuid().is_root() {
        skip!("control groups need root");
    }
    let place = place();
    let limits = CgroupLimits { memory: Some(Bytes::from_mib(32)), cpus: Some(0.5) };
    let (cgroup, unenforced) = Cgroup::create(&place.teardown, "test", &limits).unwrap();
    let Some(cgroup) = cgroup else { skip!("no control groups: {unenforced:?}") };
    if unenforced.iter().any(|limit| limit.limit.starts_with("memory")) {
        skip!("no memory controller: {unenforced:?}");
    }
    fs::write(place.path.join("big"), vec![1; 96 << 20]).unwrap();
    underlay_host::page_cache::drop_cached(&place.path.join("big")).unwrap();
    let user = unprivileged_user().unwrap();
    let script = format!("cat {}/big > /dev/null; cat /proc/self/cgroup", place.path.display());
    let process = shell(&place, &script, user.as_ref(), Some(&cgroup));
    let ended = process.wait_for(Duration::from_secs(30)).unwrap();
    assert_eq!(ended, Some(ProcessExit::Code(0)));
    let log = fs::read_to_string(place.path.join("log")).unwrap();
    let name = cgroup.paths().memory.as_ref().unwrap().file_name().unwrap().to_str().unwrap();
    assert!(log.contains(name), "{log}");
    // What the group read stayed within its limit; without the limit all 96 MiB would be cached.
    let cached = underlay_host::page_cache::cached(&place.path.join("big")).unwrap();
    assert!(cached <= Bytes::from_mib(32) && cached > Bytes::from_mib(4), "{cached}");
    let paths = cgroup.paths().all();
    cgroup.release().unwrap();
    assert!(paths.iter().all(|path| !path.exists()));
}

#[test]
fn a_cgroup_limits_cpu() {
    if !geteuid().is_root() {
        skip!("control groups need root");
    }
    let place = place();
    let limits = CgroupLimits { memory: None, cpus: Some(0.25) };
    let (cgroup, unenforced) = Cgroup::create(&place.teardown, "test-cpu", &limits).unwrap();
    let Some(cgroup) = cgroup.filter(|_| unenforced.is_empty()) else {
        skip!("no cpu controller: {unenforced:?}")
    };
    let process = shell(&place, "while :; do :; done", None, Some(&cgroup));
    std::thread::sleep(Duration::from_millis(800));
    let stat = fs::read_to_string(format!("/proc/{}/schedstat", process.pid()));
    process.kill_tree().unwrap();
    let Ok(stat) = stat else { skip!("no /proc/PID/schedstat") };
    let on_cpu_ns: u64 = stat.split(' ').next().unwrap().parse().unwrap();
    // A quarter of 0.8 s is 0.2 s; a whole CPU would be four times as much. Other load can only
    // lower it.
    assert!(on_cpu_ns < 320_000_000, "{on_cpu_ns}");
}

#[test]
fn groups_within_a_group_share_its_limits_and_go_before_it() {
    if !geteuid().is_root() {
        skip!("control groups need root");
    }
    let place = place();
    let limits = CgroupLimits { memory: Some(Bytes::from_mib(256)), cpus: Some(0.25) };
    let (host, unenforced) = Cgroup::create(&place.teardown, "test-host", &limits).unwrap();
    let Some(host) = host.filter(|_| unenforced.is_empty()) else {
        skip!("no cpu or memory controller: {unenforced:?}")
    };
    let own = CgroupLimits { memory: Some(Bytes::from_mib(64)), cpus: Some(0.25) };
    let within = |name: &str| {
        let (cgroup, unenforced) = host.create_within(name, &own).unwrap();
        assert_eq!(unenforced, []);
        cgroup.expect("a group within a group")
    };
    let groups = [within("test-a"), within("test-b")];
    let inside = |cgroup: &Cgroup| {
        let (own, host) = (cgroup.paths(), host.paths());
        own.cpu.as_ref().and_then(|path| path.parent()) == host.cpu.as_deref()
    };
    assert!(groups.iter().all(inside), "{groups:?}");
    let processes =
        groups.each_ref().map(|group| shell(&place, "while :; do :; done", None, Some(group)));
    let used = || groups.iter().map(|group| group.cpu_time().unwrap()).sum::<Duration>();
    let before = used();
    std::thread::sleep(Duration::from_millis(800));
    let together = used() - before;
    processes.iter().for_each(|process| process.kill_tree().unwrap());
    // A quarter of 0.8 s is 0.2 s; each has as much by itself, so that both would have 0.4 s.
    assert!(together < Duration::from_millis(300), "{together:?}");
    let paths: Vec<_> = groups.iter().flat_map(|group| group.paths().all()).collect();
    for group in groups {
        group.release().unwrap();
    }
    assert!(paths.iter().all(|path| !path.exists()));
    host.release().unwrap();
}

#[test]
fn releasing_a_cgroup_kills_what_is_inside() {
    if !geteuid().is_root() {
        skip!("control groups need root");
    }
    let place = place();
    let (cgroup, unenforced) =
        Cgroup::create(&place.teardown, "test-kill", &CgroupLimits::default()).unwrap();
    let Some(cgroup) = cgroup else { skip!("no control groups: {unenforced:?}") };
    let process = shell(&place, "sleep 61.5", None, Some(&cgroup));
    cgroup.release().unwrap();
    let ended = process.wait_for(Duration::from_secs(1)).unwrap();
    assert!(ended.is_some());
}

/// A file system of this kind over a loop device, written to, and gone after the unwind.
fn check_volume(system: FileSystem, size: Bytes) {
    if !geteuid().is_root() {
        skip!("loop devices and mounts need root");
    }
    if underlay_host::find_program(&format!("mkfs.{system}")).is_none() {
        skip!("mkfs.{system} is not installed");
    }
    let place = place();
    let backing = place.path.join("volume");
    place.teardown.register(Resource::File { path: backing.clone() }).unwrap();
    fs::File::create(&backing).unwrap().set_len(size.0).unwrap();
    let device = LoopDevice::attach(&place.teardown, &backing, 4096).unwrap();
    let sysfs = |file: &str| {
        let path = format!("/sys/block/{}/{file}", device.name());
        fs::read_to_string(path).unwrap().trim().to_string()
    };
    assert_eq!(sysfs("queue/logical_block_size"), "4096");
    assert_eq!(sysfs("loop/dio"), "1");
    // Also where the file is on a rotational disk.
    assert_eq!(sysfs("queue/read_ahead_kb"), "128");
    let again = LoopDevice::attach(&place.teardown, &backing, 4096);
    assert!(matches!(again, Err(HostError::AlreadyAttached(_))), "{again:?}");

    make_file_system(device.device(), system).unwrap();
    let target = place.path.join("mnt");
    place.teardown.create_directory(&target).unwrap();
    let mount = Mount::make(&place.teardown, device.device(), &target, system, "noatime").unwrap();
    let again = Mount::make(&place.teardown, device.device(), &target, system, "");
    assert!(matches!(again, Err(HostError::AlreadyMounted(_))), "{again:?}");
    let free = free_space(mount.target()).unwrap();
    assert!(free > Bytes(size.0 / 2) && free < size, "{free} of {size}");
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = text.lines().find(|line| line.contains(target.to_str().unwrap())).unwrap();
    assert!(line.contains("nosuid,nodev,noatime") && line.contains(system.as_str()), "{line}");

    // An open file keeps the mount busy; the unwind detaches it lazily all the same.
    let open = fs::File::create(target.join("open")).unwrap();
    assert!(place.teardown.unwind().is_empty());
    assert!(!is_mount_point(&target).unwrap());
    assert!(!target.exists() && !backing.exists());
    drop(open);
}

#[test]
fn an_ext4_volume() {
    check_volume(FileSystem::Ext4, Bytes::from_mib(64));
}

#[test]
fn an_xfs_volume() {
    check_volume(FileSystem::Xfs, Bytes::from_mib(320));
}

#[test]
fn a_volume_can_be_too_small() {
    if !geteuid().is_root() {
        skip!("loop devices need root");
    }
    let place = place();
    let backing = place.path.join("volume");
    fs::File::create(&backing).unwrap().set_len(64 << 20).unwrap();
    let device = LoopDevice::attach(&place.teardown, &backing, 4096).unwrap();
    let error = make_file_system(device.device(), FileSystem::Xfs).unwrap_err();
    assert!(error.to_string().contains("64 MiB of at least 300 MiB"), "{error}");
    device.detach().unwrap();
    fs::File::create(&backing).unwrap().set_len(1000).unwrap();
    let error = LoopDevice::attach(&place.teardown, &backing, 4096).unwrap_err();
    assert!(matches!(error, HostError::BadBackingSize { length_bytes: 1000, .. }), "{error}");
}

#[test]
fn a_group_counts_its_memory_deaths() {
    if !geteuid().is_root() {
        skip!("control groups need root");
    }
    let place = place();
    let limits = CgroupLimits { memory: Some(Bytes::from_mib(16)), cpus: None };
    let (cgroup, unenforced) = Cgroup::create(&place.teardown, "test-oom", &limits).unwrap();
    let Some(cgroup) = cgroup.filter(|_| unenforced.is_empty()) else {
        skip!("no memory controller: {unenforced:?}")
    };
    let Some(before) = cgroup.oom_kills() else { skip!("the kernel does not count") };
    // tail keeps the last line, which never ends.
    let process = shell(&place, "exec tail -n 1 /dev/zero", None, Some(&cgroup));
    let ended = process.wait_for(Duration::from_secs(20)).unwrap();
    assert_eq!(ended, Some(ProcessExit::Signal(9)));
    assert_eq!(cgroup.oom_kills(), Some(before + 1));
}

#[test]
fn without_root_limits_are_said_to_be_unenforced() {
    if geteuid().is_root() {
        skip!("is about users who are not root; run the tests as one");
    }
    let place = place();
    let limits = CgroupLimits { memory: Some(Bytes::from_mib(64)), cpus: Some(0.5) };
    let (cgroup, unenforced) = Cgroup::create(&place.teardown, "test", &limits).unwrap();
    // A delegated group is possible; then nothing needs to be said.
    assert!(cgroup.is_some() || unenforced.len() == 2, "{unenforced:?}");
    assert!(unenforced.iter().all(|limit| !limit.reason.is_empty() && !limit.remedy.is_empty()));
    eprintln!("{unenforced:?}");
    let file = place.path.join("volume");
    fs::File::create(&file).unwrap().set_len(1 << 26).unwrap();
    let refused = LoopDevice::attach(&place.teardown, &file, 4096).unwrap_err();
    assert!(matches!(refused, HostError::NeedsRoot { .. }), "{refused}");
    assert!(place.teardown.unwind().is_empty());
}
