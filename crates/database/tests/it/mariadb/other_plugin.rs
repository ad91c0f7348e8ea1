//! A server that wants to be shown the password in a way that the direct connection does not know: the same transactions
//! go through the client library.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use underlay_database::tpcc::{Mode, Outcome, Session};
use underlay_database::{Address, Engine, Target};
use underlay_testbed::{Database, ONE_WAREHOUSE, or_skip};
use underlay_workload::tpcc::{
    CustomerSelector, Delivery, OrderStatus, StockLevel, Transaction, UNUSED_ITEM,
};

use super::tpcc::{order, payment};

/// What is told instead of the server's word: MySQL's usual plugin, and a nonce.
const SWITCH: &[u8] = b"\xfecaching_sha2_password\0abcdefghijklmnopqrst\0";

/// A socket that leads to that of `target`, but that every other connection is asked for another plugin there, which the
/// first one cannot have. Counts connections.
fn relay(target: &Target, path: PathBuf) -> (Target, Arc<AtomicUsize>) {
    let Address::UnixSocket(server) = target.address.clone() else { panic!("a socket") };
    let listener = UnixListener::bind(&path).unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    // Ends with the process.
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let number = counted.fetch_add(1, Ordering::Relaxed);
            let upstream = UnixStream::connect(&server).unwrap();
            let client = client.unwrap();
            match number % 2 {
                0 => ask_for_another_plugin(client, upstream).unwrap(),
                _ => pass_on(client, upstream),
            }
        }
    });
    (Target { address: Address::UnixSocket(path), ..target.clone() }, count)
}

fn ask_for_another_plugin(mut client: UnixStream, mut server: UnixStream) -> io::Result<()> {
    client.write_all(&packet(&mut server)?)?;
    let login = packet(&mut client)?;
    let mut switch = (SWITCH.len() as u32).to_le_bytes();
    switch[3] = login[3] + 1;
    client.write_all(&[&switch, SWITCH].concat())?;
    // Until it hangs up.
    let mut rest = Vec::new();
    client.read_to_end(&mut rest)?;
    Ok(())
}

/// A packet with its header.
fn packet(from: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut packet = vec![0; 4];
    from.read_exact(&mut packet)?;
    let length = u32::from_le_bytes([packet[0], packet[1], packet[2], 0]) as usize;
    packet.resize(4 + length, 0);
    from.read_exact(&mut packet[4..])?;
    Ok(packet)
}

fn pass_on(client: UnixStream, server: UnixStream) {
    for (mut from, mut to) in
        [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)]
    {
        std::thread::spawn(move || {
            // Whoever hangs up first.
            let _ended = io::copy(&mut from, &mut to);
            let _ended = to.shutdown(std::net::Shutdown::Both);
        });
    }
}

#[test]
fn transactions_through_the_library_do_the_same() {
    let database = or_skip!(Database::loaded(Engine::Mariadb, ONE_WAREHOUSE));
    let runtime = &database.bed.runtime;
    let (target, count) = relay(&database.target, database.bed.path.join("relay"));
    let name = database.text(
        "SELECT c_last FROM customer WHERE c_w_id = 1 AND c_d_id = 1 GROUP BY c_last \
         HAVING count(*) > 2 ORDER BY c_last LIMIT 1",
    );
    for (index, mode) in Mode::ALL.into_iter().enumerate() {
        let parameters = database.parameters();
        let connect = Session::connect(&target, &parameters, mode);
        let mut session = runtime.block_on(connect).unwrap();
        assert_eq!(count.load(Ordering::Relaxed), 2 * (index + 1), "not through the library");
        let mut run = |transaction| database.run(&mut session, &transaction).unwrap();
        let placed = run(order(1, 1, &[(1, 1, 1), (2, 1, 3), (1, 1, 5)]));
        assert_eq!(placed.order_id, Some(3001 + index as u32), "{mode}");
        assert_eq!(run(order(1, 1, &[(1, 1, 1), (UNUSED_ITEM, 1, 1)])), Outcome::ROLLED_BACK);
        let customer = CustomerSelector::ByLastName(name.clone());
        run(Transaction::Payment(payment(1, 1, customer.clone())));
        run(Transaction::OrderStatus(OrderStatus { warehouse: 1, district: 1, customer }));
        run(Transaction::StockLevel(StockLevel { warehouse: 1, district: 1, threshold: 15 }));
        let delivered = run(Transaction::Delivery(Delivery { warehouse: 1, carrier: 7 }));
        assert_eq!((delivered.committed, delivered.skipped_deliveries), (true, 0), "{mode}");
        let wrong = payment(9, 1, CustomerSelector::ById(1));
        let error = database.run(&mut session, &Transaction::Payment(wrong)).unwrap_err();
        assert!(!error.commit_unknown, "{mode}: {error}");
        database.run(&mut session, &order(1, 2, &[(1, 1, 1)])).unwrap();
    }
    assert_eq!(database.number("SELECT count(*) FROM history WHERE h_amount = 12.34"), 2);
    database.assert_consistent(None);
}
