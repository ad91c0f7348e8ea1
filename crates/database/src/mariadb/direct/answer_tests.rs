//! Answers as servers send them, cut and damaged.

use underlay_fuzz::fuzz;

use super::super::packet::server_error;
use super::super::row::tests::definition;
use super::{Agreed, Answer, Completed, Step};

const LONG: u8 = 0x03;
const NEW: Agreed = Agreed { has_eof: false, keeps_columns: false };
const OLD: Agreed = Agreed { has_eof: true, keeps_columns: false };
const KEEPING: Agreed = Agreed { has_eof: false, keeps_columns: true };

/// An OK: rows that changed, a number that was given, a status.
fn ok(head: u8, changed: u8, id: u8, status: u16) -> Vec<u8> {
    let [low, high] = status.to_le_bytes();
    vec![head, changed, id, low, high, 0, 0]
}

fn eof(status: u16) -> Vec<u8> {
    let [low, high] = status.to_le_bytes();
    vec![0xfe, 0, 0, low, high]
}

fn row(value: i32) -> Vec<u8> {
    [&[0, 0][..], &value.to_le_bytes()].concat()
}

/// What came of packets: the first column of the rows, and how it ended.
#[derive(Debug, Default, PartialEq, Eq)]
struct Came {
    rows: Vec<Option<i64>>,
    completed: Option<Completed>,
    prepared: Option<(u32, u16)>,
    refused: Option<u16>,
}

/// Gives packets to an answer up to its end. An error is one of the protocol.
fn give(answer: &mut Answer, packets: &[Vec<u8>]) -> Result<Came, mysql_async::Error> {
    let mut came = Came::default();
    for packet in packets {
        match answer.take(packet)? {
            Step::More | Step::File => {}
            Step::Row(row) => came.rows.push(row.integer(0)?),
            Step::Completed(completed) => came.completed = Some(completed),
            Step::Prepared(number, parameters) => came.prepared = Some((number, parameters)),
            Step::Refused(error) => came.refused = Some(error.code),
        }
        if answer.is_over() {
            break;
        }
    }
    Ok(came)
}

fn prepared(agreed: Agreed) -> Vec<Vec<u8>> {
    // Number 7, one column, two parameters.
    let mut packets = vec![vec![0, 7, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0]];
    packets.extend([definition(0xfd, 0), definition(0xfd, 0)]);
    packets.extend(agreed.has_eof.then(|| eof(2)));
    packets.push(definition(LONG, 0));
    packets.extend(agreed.has_eof.then(|| eof(2)));
    packets
}

fn selected(agreed: Agreed) -> Vec<Vec<u8>> {
    let mut packets = vec![if agreed.keeps_columns { vec![1, 1] } else { vec![1] }];
    packets.push(definition(LONG, 0));
    packets.extend(agreed.has_eof.then(|| eof(2)));
    packets.extend([row(5), vec![0, 4], row(-6)]);
    packets.push(if agreed.has_eof { eof(2) } else { ok(0xfe, 0, 0, 2) });
    packets
}

/// A result with one row, and the OK of the call itself.
fn called(agreed: Agreed) -> Vec<Vec<u8>> {
    let mut packets = selected(agreed);
    let end = packets.len() - 1;
    packets[end] = if agreed.has_eof { eof(2 | 8) } else { ok(0xfe, 0, 0, 2 | 8) };
    packets.push(ok(0, 3, 0, 2));
    packets
}

#[test]
fn every_kind_of_answer_is_taken_to_its_end_under_every_agreement() {
    for agreed in [NEW, OLD, KEEPING] {
        let mut answer = Answer::new(agreed);
        answer.expect_preparation();
        let came = give(&mut answer, &prepared(agreed)).unwrap();
        assert_eq!(came, Came { prepared: Some((7, 2)), ..Came::default() });
        let columns = answer.described().unwrap().to_vec();
        assert_eq!(columns.len(), 1);

        answer.expect_rows(&columns);
        let came = give(&mut answer, &selected(agreed)).unwrap();
        assert_eq!(came.rows, [Some(5), None, Some(-6)]);
        let completed = Completed { returned: 3, ..Completed::default() };
        assert_eq!(came.completed, Some(completed));
        assert!(answer.described().is_some());

        answer.expect_rows(&[]);
        let came = give(&mut answer, &called(agreed)).unwrap();
        assert_eq!(came.completed, Some(Completed { changed: 3, ..completed }));

        answer.expect_result();
        let came = give(&mut answer, &[ok(0, 1, 9, 2)]).unwrap();
        let completed = Completed { changed: 1, last_insert_id: 9, ..Completed::default() };
        assert_eq!(came.completed, Some(completed));
        assert!(answer.described().is_none());
    }
}

#[test]
fn columns_that_have_not_changed_are_not_described_again() {
    let mut answer = Answer::new(KEEPING);
    answer.expect_preparation();
    give(&mut answer, &prepared(KEEPING)).unwrap();
    let columns = answer.described().unwrap().to_vec();
    let packets = [vec![1, 0], row(5), ok(0xfe, 0, 0, 2)];
    answer.expect_rows(&columns);
    assert_eq!(give(&mut answer, &packets).unwrap().rows, [Some(5)]);
    assert!(answer.described().is_none());
    // Another number of columns than are known.
    let mut answer = Answer::new(KEEPING);
    answer.expect_rows(&[]);
    assert!(give(&mut answer, &packets).is_err());
}

#[test]
fn an_error_ends_an_answer_wherever_it_comes() {
    let refusal = b"\xff\xbd\x04#40001Deadlock".to_vec();
    for packets in [prepared(NEW), selected(NEW), called(NEW)] {
        for position in 0..packets.len() {
            let mut answer = Answer::new(NEW);
            match packets == prepared(NEW) {
                true => answer.expect_preparation(),
                false => answer.expect_rows(&[]),
            }
            let mut packets = packets.clone();
            packets[position] = refusal.clone();
            let came = give(&mut answer, &packets).unwrap();
            assert_eq!(came.refused, Some(1213), "{position}");
            assert_eq!((came.completed, came.prepared), (None, None), "{position}");
            assert!(answer.is_over());
        }
    }
    assert_eq!(server_error(&refusal).code, 1213);
}

#[test]
fn what_no_server_sends_is_refused() {
    let refused = |packets: &[&[u8]]| {
        let mut answer = Answer::new(NEW);
        answer.expect_rows(&[]);
        let packets: Vec<Vec<u8>> = packets.iter().map(|packet| packet.to_vec()).collect();
        assert!(give(&mut answer, &packets).is_err(), "{packets:?}");
    };
    refused(&[&[]]);
    refused(&[&[0]]);
    refused(&[&[0xfb, b'x']]);
    refused(&[&[0xfe, 0, 0, 0, 0, 0, 0, 0, 1]]);
    refused(&[&[0xfe, 0xff]]);
    refused(&[&[1], &[0xfe]]);
    refused(&[&[1], &definition(LONG, 0), &[7, 7]]);
    refused(&[&[1], &definition(LONG, 0), &[0xfe, 0, 0]]);
    let mut answer = Answer::new(NEW);
    assert!(answer.take(&ok(0, 0, 0, 2)).is_err(), "nothing was asked");
    answer.expect_preparation();
    assert!(answer.take(&ok(0, 0, 0, 2)).is_err(), "cut");
}

/// The packets of a conversation as they come through a socket.
fn stream(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, packet) in packets.iter().enumerate() {
        bytes.extend(&(packet.len() as u32).to_le_bytes()[..3]);
        bytes.push(number as u8 + 1);
        bytes.extend(packet);
    }
    bytes
}

/// Whatever a server sends: no panic, no end without an end, and no more than what was sent is used up.
#[test]
fn damaged_answers_do_no_harm() {
    let corpus: Vec<Vec<u8>> = [NEW, OLD, KEEPING]
        .into_iter()
        .flat_map(|agreed| [prepared(agreed), selected(agreed), called(agreed)])
        .chain([vec![ok(0, 1, 9, 2)], vec![b"\xff\xbd\x04#40001Deadlock".to_vec()]])
        .map(|packets| stream(&packets))
        .collect();
    fuzz(&corpus, |input| {
        for agreed in [NEW, OLD, KEEPING] {
            for begin in [Answer::expect_preparation, |answer: &mut Answer| answer.expect_rows(&[])]
            {
                let mut answer = Answer::new(agreed);
                begin(&mut answer);
                let (mut left, mut number) = (input, 1u8);
                while let Ok(Some(body)) = super::super::body(left, number) {
                    left = &left[super::super::HEADER_BYTES + body.len()..];
                    number = number.wrapping_add(1);
                    match answer.take(body) {
                        Ok(Step::Row(row)) => {
                            for column in 0..4 {
                                let _ = (row.integer(column), row.text(column));
                            }
                        }
                        Ok(Step::More) => assert!(!answer.is_over()),
                        Ok(_) => assert!(answer.is_over()),
                        Err(_) => break,
                    }
                    if answer.is_over() {
                        break;
                    }
                }
            }
        }
    });
}
