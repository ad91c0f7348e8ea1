//! PostgreSQL: libpq's modes.

use std::collections::BTreeMap;
use std::fs;

use underlay_database::tls::Verification;
use underlay_database::{Engine, postgres};
use underlay_testbed::{execute, or_skip, text};

use super::certificates::Shown;
use super::harness::{Became, Running, running};

use Became::{Encrypted, Plain, Refused};
use Verification::{Issuer, Name, Nothing};

/// Makes the server reload its files, and waits until it has.
fn reload(running: &Running) {
    let local = running.server.target();
    let loaded = || text(&local, "SELECT pg_conf_load_time()");
    let before = loaded();
    execute(&local, "SELECT pg_reload_conf()");
    let limit = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while loaded() == before {
        assert!(std::time::Instant::now() < limit, "the server does not reload");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Who may connect over TCP, in the words of `pg_hba.conf`.
fn allow(running: &Running, rules: &str) {
    let path = running.server.log_path().with_file_name("pg_hba.conf");
    fs::write(&path, format!("local all all trust\n{rules}\n")).unwrap();
    reload(running);
}

fn switch_on(running: &Running) {
    let local = running.server.target();
    for (name, file) in [
        ("ssl_cert_file", "server.pem"),
        ("ssl_key_file", "server.key"),
        ("ssl_ca_file", "roots.pem"),
    ] {
        let path = running.certificates.path(file);
        execute(&local, &format!("ALTER SYSTEM SET {name} = '{}'", path.display()));
    }
    execute(&local, "ALTER SYSTEM SET ssl = on");
    reload(running);
}

#[test]
fn every_mode_with_every_certificate() {
    let running = or_skip!(running(Engine::Postgresql, |_| BTreeMap::new()));
    // A server without TLS.
    for (options, expected) in [
        ("", Plain),
        ("sslmode=prefer", Plain),
        ("sslmode=allow", Plain),
        ("sslmode=require", Refused("sslmode=prefer")),
        ("sslmode=verify-full&sslrootcert={}roots.pem", Refused("does not offer TLS")),
    ] {
        running.expect(&running.target("127.0.0.1", options), options, &expected);
    }
    switch_on(&running);
    let roots = "&sslrootcert={}roots.pem";
    let table = [
        (Shown::Good, "sslmode=disable", "", Plain),
        (Shown::Good, "sslmode=allow", "", Plain),
        (Shown::Good, "", "", Encrypted(Nothing)),
        (Shown::Good, "sslmode=require", "", Encrypted(Nothing)),
        (Shown::Good, "sslmode=require", roots, Encrypted(Issuer)),
        (Shown::Good, "sslmode=verify-ca", roots, Encrypted(Issuer)),
        (Shown::Good, "sslmode=verify-full", roots, Encrypted(Name)),
        (
            Shown::Good,
            "sslmode=verify-ca",
            "&sslrootcert={}stranger.pem",
            Refused("unknown issuer"),
        ),
        (Shown::Good, "sslmode=require", "&sslrootcert={}stranger.pem", Refused("unknown issuer")),
        (Shown::Good, "sslmode=prefer", "&sslrootcert={}stranger.pem", Plain),
        (Shown::SelfSigned, "sslmode=require", "", Encrypted(Nothing)),
        (Shown::SelfSigned, "sslmode=verify-ca", roots, Refused("unknown issuer")),
        (Shown::SelfSigned, "sslmode=verify-full", "&sslrootcert={}server.pem", Encrypted(Name)),
        (Shown::WrongName, "sslmode=verify-ca", roots, Encrypted(Issuer)),
        (Shown::WrongName, "sslmode=verify-full", roots, Refused("name mismatch")),
        (Shown::Expired, "sslmode=require", "", Encrypted(Nothing)),
        (Shown::Expired, "sslmode=verify-ca", roots, Refused("expired")),
        (Shown::Nameless, "sslmode=verify-ca", roots, Encrypted(Issuer)),
        (Shown::Nameless, "sslmode=verify-full", roots, Refused("has no host name")),
    ];
    let mut shown = Shown::Good;
    for (certificate, mode, roots, expected) in table {
        if certificate != shown {
            running.certificates.show(certificate);
            reload(&running);
            shown = certificate;
        }
        let target = running.target("127.0.0.1", &format!("{mode}{roots}"));
        let what = format!("{certificate:?} {mode}{roots}");
        let Some(encryption) = running.expect(&target, &what, &expected) else { continue };
        // What the server says of another session opened the same way.
        let sql = "SELECT concat_ws(' ', ssl, version, cipher) FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        let said = text(&target, sql);
        assert_eq!(said, format!("t {} {}", encryption.protocol, encryption.cipher), "{what}");
    }
    running.certificates.show(Shown::Good);
    reload(&running);
    let by_name = running.target("localhost", "sslmode=verify-full&sslrootcert={}roots.pem");
    running.expect(&by_name, "localhost", &Encrypted(Name));
    demands(&running);
    client_certificates(&running);
}

/// Servers that take logins only with TLS, or only without.
fn demands(running: &Running) {
    let all = "all all 127.0.0.1/32 scram-sha-256";
    allow(running, &format!("hostssl {all}"));
    for (options, expected) in [
        ("sslmode=disable", Refused("no encryption")),
        ("sslmode=allow", Encrypted(Nothing)),
        ("", Encrypted(Nothing)),
        ("sslmode=require&channel_binding=require", Encrypted(Nothing)),
    ] {
        let what = format!("hostssl {options}");
        running.expect(&running.target("127.0.0.1", options), &what, &expected);
    }
    // What telemetry asks for besides goes the same way.
    let target = running.target("127.0.0.1", "sslmode=require");
    let mut config = target.config();
    config.options("-c default_transaction_read_only=on");
    let read_only = running.bed.runtime.block_on(async {
        let (client, connection) = postgres::tls::connect(&target, &config).await.unwrap();
        let driver = tokio::spawn(connection);
        let row = client.query_one("SHOW transaction_read_only", &[]).await.unwrap();
        driver.abort();
        row.get::<_, String>(0)
    });
    assert_eq!(read_only, "on");
    allow(running, &format!("hostnossl {all}"));
    for (options, expected) in [
        ("sslmode=disable", Plain),
        ("sslmode=prefer", Plain),
        ("sslmode=require", Refused("SSL encryption")),
        ("sslmode=disable&channel_binding=require", Refused("channel binding")),
    ] {
        let what = format!("hostnossl {options}");
        running.expect(&running.target("127.0.0.1", options), &what, &expected);
    }
}

fn client_certificates(running: &Running) {
    execute(&running.server.target(), "CREATE ROLE ann LOGIN");
    allow(running, "hostssl all ann 127.0.0.1/32 cert");
    let ann = |options: &str| running.target_of("ann", "127.0.0.1", options);
    let plain = ann("sslmode=require").unwrap();
    running.expect(&plain, "no certificate", &Refused("valid client certificate"));
    // The key belongs to the server's user, and so to nobody else.
    let own = "sslmode=verify-full&sslrootcert={}roots.pem&sslcert={}ann.pem";
    let key = format!("{own}&sslkey={{}}ann.key");
    running.expect(&ann(&key).unwrap(), "with its certificate", &Encrypted(Name));
    for (options, named) in [
        (own.to_string(), "sslkey"),
        (format!("{own}&sslkey={{}}ann.pem"), "no private key"),
        (format!("{own}&sslkey={{}}server.key"), "do not belong together"),
        (format!("{own}&sslkey={{}}none.key"), "cannot be read"),
    ] {
        let error = ann(&options).unwrap_err();
        assert!(error.contains(named), "{error}");
    }
    use std::os::unix::fs::PermissionsExt;
    let file = running.certificates.path("ann.key");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let error = ann(&key).unwrap_err();
    assert!(error.contains("0600"), "{error}");
}
