//! Data that passes a network arrives completely, in order, and not too early. Times are judged by the fastest of
//! many, which a busy machine does not change.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::{ClientNetwork, NetworkSpec, WINDOW_BYTES};

const PATIENCE: Duration = Duration::from_secs(20);

fn network(server: SocketAddr, round_trip_us: u64, rate: Option<u64>) -> ClientNetwork {
    let round_trip = Duration::from_micros(round_trip_us);
    ClientNetwork::start(server, NetworkSpec { round_trip, bytes_per_second: rate }).unwrap()
}

/// A server that handles each connection on a thread of its own, for as long as the test runs.
fn server(handle: impl Fn(TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let handle = handle.clone();
            thread::spawn(move || handle(stream));
        }
    });
    address
}

fn echo() -> SocketAddr {
    server(|mut stream| {
        stream.set_nodelay(true).unwrap();
        let mut buffer = vec![0; 64 << 10];
        while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
            if stream.write_all(&buffer[..bytes]).is_err() {
                return;
            }
        }
    })
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The fastest of so many round trips of a byte.
fn fastest(address: SocketAddr, count: usize) -> Duration {
    let mut stream = connect(address);
    let mut times = (0..count).map(|_| {
        let began = Instant::now();
        stream.write_all(b"x").unwrap();
        stream.read_exact(&mut [0]).unwrap();
        began.elapsed()
    });
    times.by_ref().min().unwrap()
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|index| (index * 7 + index / 251) as u8).collect()
}

#[test]
fn a_round_trip_takes_what_was_asked_for() {
    let server = echo();
    for asked_us in [500, 2_000, 10_000] {
        let asked = Duration::from_micros(asked_us);
        let network = network(server, asked_us, None);
        let found = fastest(network.address(), 40);
        assert!(found >= asked, "{found:?} is shorter than {asked:?}");
        assert!(found < asked + Duration::from_millis(1), "{found:?} is not {asked:?}");
    }
}

#[test]
fn a_network_without_delay_adds_little() {
    let server = echo();
    let network = network(server, 0, None);
    let (direct, relayed) = (fastest(server, 300), fastest(network.address(), 300));
    println!("direct {direct:?}, relayed {relayed:?}, prompt {}", network.is_prompt());
    assert!(relayed < direct + Duration::from_millis(1), "{direct:?} {relayed:?}");
}

#[test]
fn bytes_arrive_complete_and_in_order_at_the_rate_of_the_link() {
    const RATE: u64 = 20_000_000;
    let sent = bytes(3 << 20);
    let network = network(echo(), 2_000, Some(RATE));
    let began = Instant::now();
    let mut stream = connect(network.address());
    let mut writer = stream.try_clone().unwrap();
    let to_send = sent.clone();
    let writing = thread::spawn(move || {
        writer.write_all(&to_send).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut got = Vec::new();
    stream.read_to_end(&mut got).unwrap();
    writing.join().unwrap();
    assert!(got == sent, "{} of {} bytes, or others", got.len(), sent.len());
    let least = Duration::from_secs_f64(sent.len() as f64 / RATE as f64);
    assert!(began.elapsed() >= least, "{:?} instead of {least:?}", began.elapsed());
    let counts = network.counts();
    assert_eq!((counts.bytes_to_server, counts.bytes_to_client), (3 << 20, 3 << 20));
    assert!(counts.cpu_ns > 0);
}

#[test]
fn connections_share_the_link() {
    const RATE: u64 = 10_000_000;
    const EACH: usize = 1_000_000;
    let network = network(echo(), 0, Some(RATE));
    let began = Instant::now();
    let users: Vec<_> = (0..3)
        .map(|_| {
            let mut stream = connect(network.address());
            thread::spawn(move || {
                let sent = bytes(EACH);
                let mut writer = stream.try_clone().unwrap();
                let to_send = sent.clone();
                let writing = thread::spawn(move || writer.write_all(&to_send).unwrap());
                let mut got = vec![0; EACH];
                stream.read_exact(&mut got).unwrap();
                writing.join().unwrap();
                assert!(got == sent);
            })
        })
        .collect();
    users.into_iter().for_each(|user| user.join().unwrap());
    let least = Duration::from_secs_f64(3.0 * EACH as f64 / RATE as f64);
    assert!(began.elapsed() >= least, "{:?} instead of {least:?}", began.elapsed());
}

#[test]
fn a_sender_is_held_up_by_a_receiver_that_does_not_read() {
    // What the kernel's buffers of both sockets on both sides hold.
    const BUFFERS: usize = 64 << 20;
    let (go, may_read) = std::sync::mpsc::channel::<()>();
    let may_read = std::sync::Arc::new(std::sync::Mutex::new(may_read));
    let (tell, told) = std::sync::mpsc::channel();
    let server = server(move |mut stream| {
        may_read.lock().unwrap().recv().unwrap();
        let mut got = Vec::new();
        stream.read_to_end(&mut got).unwrap();
        tell.send(got.len()).unwrap();
    });
    let network = network(server, 0, None);
    let mut stream = connect(network.address());
    stream.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let piece = bytes(64 << 10);
    let mut sent = 0;
    let refused = loop {
        match stream.write(&piece) {
            Ok(bytes) => sent += bytes,
            Err(error) => break error,
        }
        assert!(sent < WINDOW_BYTES + BUFFERS, "nothing holds the sender up");
    };
    assert_eq!(refused.kind(), ErrorKind::WouldBlock);
    go.send(()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(told.recv_timeout(PATIENCE).unwrap(), sent);
}

#[test]
fn ends_are_passed_on_in_each_direction() {
    // Answers only when it has been told that there is no more to come.
    let counting = server(|mut stream| {
        let mut got = Vec::new();
        stream.read_to_end(&mut got).unwrap();
        stream.write_all(&(got.len() as u32).to_be_bytes()).unwrap();
    });
    let network = network(counting, 1_000, None);
    let mut stream = connect(network.address());
    stream.write_all(&bytes(100_000)).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, 100_000u32.to_be_bytes());
    let deadline = Instant::now() + PATIENCE;
    while network.counts().connections > 0 {
        assert!(Instant::now() < deadline, "a connection that is over stays");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_server_that_hangs_up_or_is_not_there_ends_the_connection() {
    let rude = server(|mut stream| {
        // Closed with something unread, which resets the connection.
        stream.read_exact(&mut [0]).unwrap();
    });
    let absent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    for server in [rude, absent] {
        let network = network(server, 500, None);
        let mut stream = connect(network.address());
        // May fail already.
        let _ = stream.write_all(&bytes(1_000));
        let mut rest = Vec::new();
        match stream.read_to_end(&mut rest) {
            Ok(_) => assert!(rest.is_empty()),
            Err(error) => assert!(
                matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe),
                "{error}"
            ),
        }
    }
}

#[test]
fn its_end_ends_all_connections() {
    let network = network(echo(), 0, None);
    let mut stream = connect(network.address());
    stream.write_all(b"x").unwrap();
    stream.read_exact(&mut [0]).unwrap();
    let address = network.address();
    drop(network);
    assert!(!matches!(stream.read(&mut [0]), Ok(1..)));
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn round_trips_and_their_time_are_counted() {
    let network = network(echo(), 2_000, None);
    let mut stream = connect(network.address());
    for _ in 0..5 {
        stream.write_all(b"request").unwrap();
        stream.read_exact(&mut [0; 7]).unwrap();
    }
    let counts = network.counts();
    assert_eq!((counts.round_trips, counts.connections), (5, 1));
    assert_eq!(counts.delay_ns, 5 * 2_000_000);
    assert_eq!((counts.pieces, counts.bytes_to_server, counts.bytes_to_client), (10, 35, 35));
}
