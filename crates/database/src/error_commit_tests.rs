//! The rule of the unknown commit, with the client library's real errors: a server of a few lines says what a PostgreSQL in
//! trouble says, at the moment at which a commit is on its way.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use tokio_postgres::{Config, NoTls};

use super::{CommitState, ErrorClass, SessionError};

/// What the server does about the one statement it is sent.
#[derive(Clone, Copy)]
enum Trouble {
    /// An error of that severity and code; the session ends with the graver ones.
    Says(&'static str, &'static str),
    /// It says that, in a server whose messages are translated.
    SaysTranslated(&'static str, &'static str, &'static str),
    /// Gone without a word.
    HangsUp,
    /// Gone in the middle of a message.
    HangsUpWithin,
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

fn error_response(shown: &str, severity: &str, code: &str) -> Vec<u8> {
    let mut body = Vec::new();
    for (field, text) in [(b'S', shown), (b'V', severity), (b'C', code), (b'M', "trouble")] {
        body.push(field);
        body.extend_from_slice(text.as_bytes());
        body.push(0);
    }
    body.push(0);
    message(b'E', &body)
}

/// Serves one client: lets it in, reads its statement, makes trouble.
fn serve(listener: &TcpListener, trouble: Trouble) -> std::io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    stream.read_exact(&mut vec![0; u32::from_be_bytes(length) as usize - 4])?;
    let ready = message(b'Z', b"I");
    stream.write_all(&[message(b'R', &[0; 4]), ready.clone()].concat())?;
    let mut head = [0; 5];
    stream.read_exact(&mut head)?;
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    stream.read_exact(&mut vec![0; length - 4])?;
    match trouble {
        Trouble::Says(severity, code) => {
            stream.write_all(&error_response(severity, severity, code))?;
            if severity == "ERROR" {
                stream.write_all(&ready)?;
                // Until the client leaves.
                let _ = stream.read(&mut head);
            }
        }
        Trouble::SaysTranslated(shown, severity, code) => {
            stream.write_all(&error_response(shown, severity, code))?;
        }
        Trouble::HangsUp => {}
        Trouble::HangsUpWithin => stream.write_all(&[b'E', 0, 0])?,
    }
    Ok(())
}

/// What the client makes of it.
fn met(trouble: Trouble, commit: CommitState) -> SessionError {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let server = thread::spawn(move || serve(&listener, trouble));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let error = runtime.block_on(async {
        let mut config = Config::new();
        config.host("127.0.0.1").port(port).user("u").dbname("d");
        let (client, connection) = config.connect(NoTls).await.expect("let in");
        let driver = tokio::spawn(connection);
        let error = client.simple_query("COMMIT").await.expect_err("trouble");
        drop(client);
        let _ = driver.await;
        error
    });
    server.join().expect("no panic").expect("a whole conversation");
    SessionError::from_postgres(&error, commit)
}

#[track_caller]
fn check(trouble: Trouble, class: ErrorClass, unknown: bool) {
    let in_flight = met(trouble, CommitState::InFlight);
    assert_eq!((in_flight.class, in_flight.commit_unknown), (class, unknown), "{in_flight:?}");
    // Before a commit was sent, nothing can have been committed.
    let not_sent = met(trouble, CommitState::NotSent);
    assert_eq!((not_sent.class, not_sent.commit_unknown), (class, false), "{not_sent:?}");
}

#[test]
fn an_error_of_a_statement_proves_that_it_was_rolled_back() {
    for (code, class) in [
        ("40001", ErrorClass::Serialization),
        ("40P01", ErrorClass::Deadlock),
        ("23505", ErrorClass::Constraint),
        ("57014", ErrorClass::Timeout),
        ("25006", ErrorClass::ReadOnly),
        ("53100", ErrorClass::Io),
        ("58030", ErrorClass::Io),
        ("XX000", ErrorClass::Other),
    ] {
        check(Trouble::Says("ERROR", code), class, false);
    }
}

#[test]
fn an_error_that_ends_the_session_or_the_server_proves_nothing() {
    for severity in ["FATAL", "PANIC"] {
        // The log could not be flushed: what of it was written may be replayed.
        check(Trouble::Says(severity, "58030"), ErrorClass::Io, true);
        check(Trouble::Says(severity, "53100"), ErrorClass::Io, true);
        check(Trouble::Says(severity, "XX000"), ErrorClass::Other, true);
        check(Trouble::Says(severity, "25P03"), ErrorClass::Timeout, true);
        check(Trouble::Says(severity, "57P01"), ErrorClass::ConnectionLost, true);
        check(Trouble::Says(severity, "57P02"), ErrorClass::ConnectionLost, true);
    }
    // What counts is the severity that is never translated.
    check(Trouble::SaysTranslated("PANIK", "PANIC", "58030"), ErrorClass::Io, true);
}

#[test]
fn a_server_that_says_that_it_does_not_know_is_believed() {
    check(Trouble::Says("ERROR", "40003"), ErrorClass::Serialization, true);
    check(Trouble::Says("ERROR", "08007"), ErrorClass::ConnectionLost, true);
}

#[test]
fn silence_proves_nothing() {
    check(Trouble::HangsUp, ErrorClass::ConnectionLost, true);
    check(Trouble::HangsUpWithin, ErrorClass::ConnectionLost, true);
    let limit = Duration::from_secs(1);
    let gave_up = |commit| SessionError::client_timeout("COMMIT", limit, commit).commit_unknown;
    assert!(gave_up(CommitState::InFlight) && !gave_up(CommitState::NotSent));
}
