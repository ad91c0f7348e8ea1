//! MariaDB: MySQL's modes.

use std::collections::BTreeMap;

use underlay_database::Engine;
use underlay_database::tls::Verification;
use underlay_testbed::{execute, or_skip};

use super::certificates::{Certificates, Shown};
use super::harness::{Became, Running, running};

use Became::{Encrypted, Plain, Refused};
use Verification::{Issuer, Name, Nothing};

/// By the unambiguous beginnings of their names: of its own accord a managed server has no TLS.
fn settings(certificates: &Certificates) -> BTreeMap<String, String> {
    let path = |file: &str| certificates.path(file).display().to_string();
    [
        ("ssl_ce", path("server.pem")),
        ("ssl_k", path("server.key")),
        ("ssl_ca", path("roots.pem")),
        ("innodb_buffer_pool_size", "64M".to_string()),
    ]
    .map(|(name, value)| (name.to_string(), value))
    .into()
}

#[test]
fn every_mode_with_every_certificate() {
    let running = or_skip!(running(Engine::Mariadb, settings));
    let local = running.server.target();
    let roots = "&ssl-ca={}roots.pem";
    let stranger = "&ssl-ca={}stranger.pem";
    let table = [
        (Shown::Good, "ssl-mode=DISABLED", "", Plain),
        (Shown::Good, "", "", Encrypted(Nothing)),
        (Shown::Good, "ssl-mode=REQUIRED", "", Encrypted(Nothing)),
        (Shown::Good, "", roots, Encrypted(Issuer)),
        (Shown::Good, "ssl-mode=verify_ca", roots, Encrypted(Issuer)),
        (Shown::Good, "ssl-mode=verify_identity", roots, Encrypted(Name)),
        (Shown::Good, "ssl-mode=verify_ca", stranger, Refused("unknown issuer")),
        (Shown::Good, "ssl-mode=preferred", stranger, Refused("unknown issuer")),
        (Shown::SelfSigned, "ssl-mode=required", "", Encrypted(Nothing)),
        (Shown::SelfSigned, "ssl-mode=verify_ca", roots, Refused("unknown issuer")),
        (Shown::SelfSigned, "ssl-mode=verify_identity", "&ssl-ca={}server.pem", Encrypted(Name)),
        (Shown::WrongName, "ssl-mode=verify_ca", roots, Encrypted(Issuer)),
        (Shown::WrongName, "ssl-mode=verify_identity", roots, Refused("name mismatch")),
        (Shown::Expired, "ssl-mode=required", "", Encrypted(Nothing)),
        (Shown::Expired, "ssl-mode=verify_ca", roots, Refused("expired")),
        (Shown::Nameless, "ssl-mode=verify_ca", roots, Encrypted(Issuer)),
        (Shown::Nameless, "ssl-mode=verify_identity", roots, Refused("has no host name")),
    ];
    let mut shown = Shown::Good;
    for (certificate, mode, roots, expected) in table {
        if certificate != shown {
            running.certificates.show(certificate);
            execute(&local, "FLUSH SSL");
            shown = certificate;
        }
        let options = format!("{mode}{roots}").trim_start_matches('&').to_string();
        let target = running.target("127.0.0.1", &options);
        let what = format!("{certificate:?} {options}");
        if let Some(encryption) = running.expect(&target, &what, &expected) {
            assert!(encryption.protocol.starts_with("TLSv1."), "{encryption:?}");
        }
    }
    a_new_certificate_is_judged_anew(&running);
    demands(&running);
    client_certificates(&running);
}

/// Sessions are held to the key of the certificate that was verified: another that is verified too takes its place, one
/// that is not does not.
fn a_new_certificate_is_judged_anew(running: &Running) {
    let local = running.server.target();
    let show = |shown| {
        running.certificates.show(shown);
        execute(&local, "FLUSH SSL");
    };
    show(Shown::Good);
    let target = running.target("127.0.0.1", "ssl-mode=verify_identity&ssl-ca={}roots.pem");
    running.expect(&target, "the first", &Encrypted(Name));
    show(Shown::Good);
    running.expect(&target, "the next", &Encrypted(Name));
    show(Shown::SelfSigned);
    running.expect(&target, "somebody else's", &Refused("unknown issuer"));
    show(Shown::Good);
    running.expect(&target, "the right one again", &Encrypted(Name));
}

fn demands(running: &Running) {
    let local = running.server.target();
    execute(&local, "SET GLOBAL require_secure_transport = ON");
    for (options, expected) in [
        // MariaDB's server says no more than that.
        ("ssl-mode=disabled", Refused("Access denied")),
        ("", Encrypted(Nothing)),
        ("ssl-mode=verify_ca&ssl-ca={}roots.pem", Encrypted(Issuer)),
    ] {
        running.expect(&running.target("127.0.0.1", options), options, &expected);
    }
    execute(&local, "SET GLOBAL require_secure_transport = OFF");
}

fn client_certificates(running: &Running) {
    let local = running.server.target();
    execute(&local, "CREATE USER ann@'127.0.0.1' IDENTIFIED BY 'pw' REQUIRE X509");
    execute(&local, "CREATE USER ann@'localhost' IDENTIFIED BY 'pw' REQUIRE X509");
    let ann = |options: &str| running.target_of("ann:pw", "127.0.0.1", options);
    running.expect(&ann("ssl-mode=required").unwrap(), "no certificate", &Refused("denied"));
    let own = "ssl-mode=verify_identity&ssl-ca={}roots.pem&ssl-cert={}ann.pem&ssl-key={}ann.key";
    running.expect(&ann(own).unwrap(), "with its certificate", &Encrypted(Name));
    let error = ann("ssl-cert={}ann.pem").unwrap_err();
    assert!(error.contains("ssl-key"), "{error}");
}

#[test]
fn a_server_without_tls() {
    let running = or_skip!(running(Engine::Mariadb, |_| BTreeMap::new()));
    let preferred = running.target("127.0.0.1", "");
    for (options, expected) in [
        ("ssl-mode=required", Refused("does not offer TLS")),
        ("ssl-mode=verify_ca&ssl-ca={}roots.pem", Refused("does not offer TLS")),
        ("ssl-mode=preferred", Plain),
    ] {
        running.expect(&running.target("127.0.0.1", options), options, &expected);
    }
    for _ in 0..2 {
        running.expect(&preferred, "preferred", &Plain);
    }
}
