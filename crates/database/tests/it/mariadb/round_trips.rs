//! How often a transaction asks the server, in both modes: counted between session and server, command by command.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use underlay_database::tpcc::{Mode, Session};
use underlay_database::{Address, Engine, Target};
use underlay_testbed::{Database, ONE_WAREHOUSE, or_skip};
use underlay_workload::tpcc::{
    CustomerSelector, Delivery, OrderStatus, StockLevel, Transaction, UNUSED_ITEM,
};

use super::tpcc::{order, payment};

/// A socket that leads to that of `target`, and how many commands went through it.
fn counting_relay(target: &Target, path: PathBuf) -> (Target, Arc<AtomicUsize>) {
    let Address::UnixSocket(server) = target.address.clone() else { panic!("a socket") };
    let listener = UnixListener::bind(&path).unwrap();
    let commands = Arc::new(AtomicUsize::new(0));
    let counted = commands.clone();
    // Ends with the process.
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut server) = (client.unwrap(), UnixStream::connect(&server).unwrap());
            let (mut answers, mut asker) =
                (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || io::copy(&mut answers, &mut asker));
            let counted = counted.clone();
            // Ends when somebody hangs up.
            std::thread::spawn(move || pass_on(&mut client, &mut server, &counted));
        }
    });
    (Target { address: Address::UnixSocket(path), ..target.clone() }, commands)
}

fn pass_on(from: &mut impl Read, to: &mut impl Write, commands: &AtomicUsize) -> io::Result<()> {
    loop {
        let mut packet = vec![0; 4];
        from.read_exact(&mut packet)?;
        // The first packet of a command has this number.
        if packet[3] == 0 {
            commands.fetch_add(1, Ordering::Relaxed);
        }
        let length = u32::from_le_bytes([packet[0], packet[1], packet[2], 0]) as usize;
        packet.resize(4 + length, 0);
        from.read_exact(&mut packet[4..])?;
        to.write_all(&packet)?;
    }
}

#[test]
fn a_statement_is_one_round_trip_however_many_rows_it_changes() {
    let database = or_skip!(Database::loaded(Engine::Mariadb, ONE_WAREHOUSE));
    if database.bed.install.product() != "mariadb" {
        underlay_host::skip!("MySQL takes no arrays");
    }
    let (target, commands) = counting_relay(&database.target, database.bed.path.join("counting"));
    let name = database.text("SELECT c_last FROM customer WHERE c_w_id = 1 AND c_d_id = 1 LIMIT 1");
    let by_id = CustomerSelector::ById(11);
    let by_name = CustomerSelector::ByLastName(name);
    let status = |customer| OrderStatus { warehouse: 1, district: 1, customer };
    let level = StockLevel { warehouse: 1, district: 1, threshold: 15 };
    let five = [(1, 1, 1), (2, 1, 1), (3, 1, 1), (3, 1, 2), (5, 1, 1)];
    let fifteen: Vec<(u32, u32, u32)> = (1..=15).map(|item| (item, 1, 1)).collect();
    let invalid = [(1, 1, 1), (2, 1, 1), (UNUSED_ITEM, 1, 1)];
    let expected = [
        (order(1, 1, &five), 9),
        (order(1, 1, &fifteen), 9),
        (order(1, 1, &invalid), 9),
        (Transaction::Payment(payment(1, 1, by_id.clone())), 6),
        (Transaction::Payment(payment(1, 1, by_name.clone())), 7),
        (Transaction::OrderStatus(status(by_id)), 5),
        (Transaction::OrderStatus(status(by_name)), 6),
        (Transaction::Delivery(Delivery { warehouse: 1, carrier: 1 }), 7),
        (Transaction::StockLevel(level), 3),
    ];
    for mode in Mode::ALL {
        let parameters = database.parameters();
        let connect = Session::connect(&target, &parameters, mode);
        let mut session = database.bed.runtime.block_on(connect).unwrap();
        for (transaction, statements) in &expected {
            let before = commands.load(Ordering::Relaxed);
            database.run(&mut session, transaction).unwrap();
            let asked = commands.load(Ordering::Relaxed) - before;
            let expected = if mode == Mode::Statements { *statements } else { 1 };
            assert_eq!(asked, expected, "{mode}: {transaction:?}");
        }
    }
    database.assert_consistent(None);
}
