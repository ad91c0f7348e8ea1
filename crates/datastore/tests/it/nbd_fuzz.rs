//! The NBD server under clients that talk nonsense: it goes on serving those that do not.

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::common::Site;
use crate::common::nbd_client::NbdClient;
use crate::common::raw_server::{RawServer, RawSpec, Ways, instant};
use crate::common::storage::Storage;
use underlay_fuzz::fuzz;

const CAPACITY: u64 = 1 << 20;

fn option(kind: u32, data: &[u8]) -> Vec<u8> {
    [b"IHAVEOPT", &kind.to_be_bytes()[..], &(data.len() as u32).to_be_bytes(), data].concat()
}

fn request(kind: u16, offset: u64, length: u32, data: &[u8]) -> Vec<u8> {
    [
        &0x2560_9513u32.to_be_bytes()[..],
        &[0, 0],
        &kind.to_be_bytes(),
        &9u64.to_be_bytes(),
        &offset.to_be_bytes(),
        &length.to_be_bytes(),
        data,
    ]
    .concat()
}

fn conversations() -> Vec<Vec<u8>> {
    let go = option(7, &[&4u32.to_be_bytes()[..], b"data", &[0, 0]].concat());
    let requests = [
        request(0, 0, 4096, &[]),
        request(1, 8192, 512, &[3; 512]),
        request(4, 4096, 4096, &[]),
        request(6, 0, 512, &[]),
        request(3, 0, 0, &[]),
    ]
    .concat();
    let flags = 3u32.to_be_bytes();
    let contexts = |queries: &[&[u8]]| {
        let mut data = [&4u32.to_be_bytes()[..], b"data"].concat();
        data.extend((queries.len() as u32).to_be_bytes());
        for query in queries {
            data.extend((query.len() as u32).to_be_bytes());
            data.extend(*query);
        }
        data
    };
    let lists = [option(9, &contexts(&[])), option(9, &contexts(&[b"base:"]))].concat();
    let sets = option(10, &contexts(&[b"base:allocation", b"other:context"]));
    let statuses = [request(7, 0, 1 << 20, &[]), request(7, 4096, 4096, &[])].concat();
    vec![
        [&flags[..], &option(8, &[]), &lists, &sets, &go, &statuses, &requests].concat(),
        [&flags[..], &sets, &option(8, &[]), &sets, &option(1, b"data"), &statuses].concat(),
        [&flags[..], &go, &requests, &request(2, 0, 0, &[])].concat(),
        [&flags[..], &option(8, &[]), &option(3, &[]), &go, &requests].concat(),
        [&flags[..], &option(1, b"data"), &requests].concat(),
    ]
}

#[test]
fn nonsense_hurts_nobody_else() {
    let site = Site::new();
    let spec =
        RawSpec { profile: instant(), durability: "profile", capacity_bytes: CAPACITY, seed: 1 };
    let mut server = RawServer::start_with(&site, &spec, Ways::NbdAndTcp);
    let good = NbdClient::connect(&server.nbd_socket, "data", true).unwrap();
    let socket = server.nbd_socket.clone();
    let asked = Cell::new(0u64);
    fuzz(&conversations(), |bytes| {
        let mut bad = UnixStream::connect(&socket).expect("the server accepts");
        bad.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        // It may have hung up before everything was said.
        let _ = bad.write_all(bytes);
        let _ = bad.shutdown(Shutdown::Write);
        let mut heard = Vec::new();
        if let Err(error) = bad.take(64 << 20).read_to_end(&mut heard) {
            assert!(
                error.kind() == std::io::ErrorKind::ConnectionReset,
                "the server neither answers nor hangs up: {error}"
            );
        }
        asked.set(asked.get() + 1);
        if asked.get().is_multiple_of(16) {
            let value = asked.get() as u8;
            good.write(CAPACITY - 4096, &[value; 4096]).expect("the good client is served");
            let mut found = [0; 4096];
            good.read(CAPACITY - 4096, &mut found).expect("the good client is served");
            assert_eq!(found, [value; 4096]);
        }
    });
    // Nothing of all that is still in flight, and the server obeys.
    let stat = server.ask("stat".into());
    assert_eq!(stat["stat"]["volumes"][0]["in-flight"], 0, "{stat}");
}
