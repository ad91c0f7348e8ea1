//! A back end that is nothing but memory, behind the whole server: what is above the line between them needs no device and no
//! cluster.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;

use rustix::io::Errno;
use underlay_core::{Dilation, Nanos, Operation};

use crate::back_end::{Answer, Asked, BackEnd, BlockRequest, Exchange, Extent, Modelled, Zeroing};
use crate::client::Client;
use crate::clock::Clock;
use crate::nbd::listener::NbdListener;
use crate::path_cost::PathCost;
use crate::server::{Exports, Server, Volume};
use crate::task_queue::task_queue;

/// After how long reads are answered; everything else is at once.
const READ_TIME: Nanos = Nanos::from_millis(3);
/// The same for reads of the beginning: longer than the test.
const STUCK_TIME: Nanos = Nanos::from_secs(3_600);
const CAPACITY: usize = 1 << 20;

/// One volume in memory.
struct Memory<C> {
    bytes: Vec<u8>,
    waiting: Vec<Answer<C>>,
    is_powered: bool,
}

impl<C> Memory<C> {
    fn power_off(&mut self) -> Vec<C> {
        self.is_powered = false;
        self.waiting.drain(..).filter_map(|answer| answer.client).collect()
    }
}

impl<C> BackEnd<C> for Memory<C> {
    fn is_powered(&self) -> bool {
        self.is_powered
    }

    fn is_durable(&self) -> bool {
        false
    }

    fn submit(
        &mut self,
        request: BlockRequest<'_, C>,
        exchange: &mut Exchange<C>,
    ) -> Result<(), Errno> {
        let BlockRequest { client, volume, arrived, asked } = request;
        let mut answer = Answer {
            client: Some(client),
            volume,
            operation: Operation::Flush,
            bytes: 0,
            arrived,
            modelled: None,
            early: Nanos::ZERO,
            failed: false,
            buffer: Vec::new(),
            wanted: 0..0,
        };
        match asked {
            Asked::Read { offset, length } => {
                let (from, length) = (offset as usize, length as usize);
                // Two bytes in front of what is wanted, as of a back end that reads whole blocks.
                answer.buffer = exchange.buffers.take(length + 2);
                answer.wanted = 2..2 + length;
                answer.buffer[2..2 + length].copy_from_slice(&self.bytes[from..from + length]);
                (answer.operation, answer.bytes) = (Operation::Read, length as u32);
                let time = if offset == 0 { STUCK_TIME } else { READ_TIME };
                let (deadline, queue) = (arrived + time, Nanos::ZERO);
                answer.modelled = Some(Modelled { deadline, queue, delayed: true });
                self.waiting.push(answer);
                return Ok(());
            }
            Asked::Write { offset, data, .. } => {
                self.bytes[offset as usize..offset as usize + data.len()].copy_from_slice(data);
                (answer.operation, answer.bytes) = (Operation::Write, data.len() as u32);
            }
            Asked::Discard { zeroing: Zeroing::KeepsSpace, .. } => return Err(Errno::OPNOTSUPP),
            Asked::Discard { offset, length, zeroing: Zeroing::FreesSpace } => {
                let (from, to) = (offset as usize, (offset + length) as usize);
                self.bytes[from..to].fill(0);
                (answer.operation, answer.bytes) = (Operation::Discard, length as u32);
            }
            Asked::Flush => {}
        }
        exchange.answers.push(answer);
        Ok(())
    }

    fn take_due(&mut self, now: Nanos, exchange: &mut Exchange<C>) {
        exchange.answers.extend(self.waiting.extract_if(.., |answer| answer.deadline() <= now));
    }

    fn next_answer(&self, _path: &PathCost) -> Option<Nanos> {
        self.waiting.iter().map(Answer::deadline).min()
    }

    fn keeps_time(&self) -> bool {
        true
    }

    fn extents(&mut self, _volume: usize, _offset: u64, length: u32) -> Result<Vec<Extent>, Errno> {
        Ok(vec![Extent { length_bytes: length, holds_data: true }])
    }

    fn probe(&mut self, _volume: usize, _buffer: &mut [u8]) -> Result<(), Errno> {
        Ok(())
    }

    fn in_flight(&self, _volume: usize) -> u64 {
        self.waiting.len() as u64
    }

    fn remove_volume(&mut self, _now: Nanos, _volume: usize) {}
}

const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;
const WRITE_ZEROES: u16 = 6;
const NO_HOLE: u16 = 2;

/// A client that asks one thing at a time.
struct NbdClient(UnixStream);

impl NbdClient {
    /// Chooses the export, and returns it with its size.
    fn connect(path: &std::path::Path) -> (NbdClient, u64) {
        let mut stream = UnixStream::connect(path).unwrap();
        stream.read_exact(&mut [0; 18]).unwrap();
        // Without zeros behind the answer.
        stream.write_all(&3u32.to_be_bytes()).unwrap();
        let option = [&b"IHAVEOPT"[..], &1u32.to_be_bytes(), &4u32.to_be_bytes(), b"data"].concat();
        stream.write_all(&option).unwrap();
        let mut answer = [0; 10];
        stream.read_exact(&mut answer).unwrap();
        let size = u64::from_be_bytes(answer[..8].try_into().unwrap());
        (NbdClient(stream), size)
    }

    fn send(&mut self, kind: u16, flags: u16, offset: u64, length: u32, data: &[u8]) {
        let request = [
            &0x2560_9513u32.to_be_bytes()[..],
            &flags.to_be_bytes(),
            &kind.to_be_bytes(),
            &7u64.to_be_bytes(),
            &offset.to_be_bytes(),
            &length.to_be_bytes(),
            data,
        ];
        self.0.write_all(&request.concat()).unwrap();
    }

    /// The error, and the data if there is none.
    fn receive(&mut self, data_bytes: usize) -> (u32, Vec<u8>) {
        let mut header = [0; 16];
        self.0.read_exact(&mut header).unwrap();
        assert_eq!(header[8..], 7u64.to_be_bytes());
        let error = u32::from_be_bytes(header[4..8].try_into().unwrap());
        let mut data = vec![0; if error == 0 { data_bytes } else { 0 }];
        self.0.read_exact(&mut data).unwrap();
        (error, data)
    }

    fn ask(&mut self, kind: u16, flags: u16, offset: u64, length: u32, data: &[u8]) -> u32 {
        self.send(kind, flags, offset, length, data);
        self.receive(0).0
    }

    fn read(&mut self, offset: u64, length: u32) -> (u32, Vec<u8>) {
        self.send(READ, 0, offset, length, &[]);
        self.receive(length as usize)
    }
}

#[test]
fn any_back_end_is_served() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nbd");
    let (sender, tasks) = task_queue::<Server<Memory<Client>>>().unwrap();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let socket = path.clone();
    let server = thread::spawn(move || {
        let nbd = NbdListener::bind(Some(&socket), None).unwrap();
        ready.send(()).unwrap();
        let memory = Memory { bytes: vec![0; CAPACITY], waiting: Vec::new(), is_powered: true };
        let exports = Exports { device: None, nbd };
        let mut server = Server::new(Clock::start(Dilation::NONE), exports, memory);
        let volume = Volume { name: "data".to_string(), capacity_bytes: CAPACITY as u64 };
        server.add_volume(0, volume);
        server.run(&tasks).unwrap();
        assert!(server.remove_volume(0).is_some() && server.present().next().is_none());
        server.statistics
    });
    is_ready.recv().unwrap();
    let (mut client, size) = NbdClient::connect(&path);
    assert_eq!(size, CAPACITY as u64);
    assert_eq!(client.ask(WRITE, 0, 1_000, 5_000, &[9; 5_000]), 0);
    assert_eq!(client.ask(FLUSH, 0, 0, 0, &[]), 0);
    let asked = std::time::Instant::now();
    let (error, data) = client.read(999, 5_002);
    assert!(asked.elapsed().as_nanos() >= u128::from(READ_TIME.0), "answered when it is due");
    assert_eq!((error, data[0], data[5_001]), (0, 0, 0));
    assert!(data[1..5_001].iter().all(|byte| *byte == 9));
    assert_eq!(client.ask(TRIM, 0, 2_000, 1_000, &[]), 0);
    assert_eq!(client.read(1_999, 3), (0, vec![9, 0, 0]));
    assert_eq!(client.ask(WRITE_ZEROES, NO_HOLE, 0, 512, &[]), 22, "what it refuses");
    assert_eq!(client.ask(WRITE, 0, size - 1, 2, &[1; 2]), 28, "beyond the end");
    // A read in flight when the power fails gets an error, and so does everything afterwards.
    let (gate, is_read) = std::sync::mpsc::channel();
    client.send(READ, 0, 0, 4096, &[]);
    let fail = move |server: &mut Server<Memory<Client>>| {
        let clients = server.back_end.power_off();
        gate.send(clients.len()).unwrap();
        server.fail(clients);
    };
    // The serving thread takes the request before the task, or the task before the request: either way it fails.
    sender.send(fail).unwrap();
    assert_eq!(client.receive(4096).0, 5);
    assert!(is_read.recv().unwrap() <= 1);
    assert_eq!(client.ask(FLUSH, 0, 0, 0, &[]), 5);
    sender.send(Server::end).unwrap();
    let statistics = server.join().unwrap();
    let counted = &statistics.volumes[0].operations;
    let ios = Operation::ALL.map(|operation| counted[operation.index()].ios);
    assert_eq!(ios, [2, 1, 1, 1], "reads, writes, flushes, discards");
    assert_eq!(counted[Operation::Read.index()].modelled.ios, 2);
    assert_eq!(statistics.delayed.total, 2);
    assert_eq!(statistics.volumes[0].errors, 0, "no error but for want of power");
}
