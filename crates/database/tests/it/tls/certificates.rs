//! Certificates made on the spot: an authority, what it vouches for, and what it does not.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use underlay_host::unprivileged_user;

/// What a server can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// From the authority, for 127.0.0.1 and localhost.
    Good,
    /// From itself, for 127.0.0.1; an authority of its own as `openssl req -x509` makes them.
    SelfSigned,
    /// From the authority, for another host.
    WrongName,
    /// From the authority, for 127.0.0.1, until some years ago.
    Expired,
    /// From the authority, with a common name alone.
    Nameless,
}

/// A directory of certificates and keys.
pub struct Certificates {
    dir: PathBuf,
    authority: Issuer<'static, KeyPair>,
}

impl Certificates {
    /// Makes the authority, another that nobody has to do with, and the certificate of the client `ann`.
    pub fn make(dir: &Path) -> Certificates {
        fs::create_dir_all(dir).unwrap();
        fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
        let (stranger, _) = authority("stranger");
        fs::write(dir.join("stranger.pem"), stranger).unwrap();
        let (pem, authority) = authority("authority");
        fs::write(dir.join("roots.pem"), pem).unwrap();
        let certificates = Certificates { dir: dir.to_path_buf(), authority };
        certificates.show(Shown::Good);
        let mut client = CertificateParams::new(Vec::new()).unwrap();
        client.distinguished_name.push(DnType::CommonName, "ann");
        let key = KeyPair::generate().unwrap();
        let client = client.signed_by(&key, &certificates.authority).unwrap();
        fs::write(dir.join("ann.pem"), client.pem()).unwrap();
        private(&dir.join("ann.key"), &key.serialize_pem());
        certificates
    }

    /// Puts what the server shall show into `server.pem` and `server.key`; it has to read them
    /// again.
    pub fn show(&self, shown: Shown) {
        let names: &[&str] = match shown {
            Shown::Good => &["127.0.0.1", "localhost"],
            Shown::SelfSigned | Shown::Expired => &["127.0.0.1"],
            Shown::WrongName => &["db.example"],
            Shown::Nameless => &[],
        };
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        let mut parameters = CertificateParams::new(names).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, "127.0.0.1");
        if shown == Shown::Expired {
            (parameters.not_before, parameters.not_after) =
                (date_time_ymd(2001, 1, 1), date_time_ymd(2002, 1, 1));
        }
        let key = KeyPair::generate().unwrap();
        let certificate = match shown {
            Shown::SelfSigned => {
                parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
                parameters.self_signed(&key).unwrap()
            }
            _ => parameters.signed_by(&key, &self.authority).unwrap(),
        };
        fs::write(self.path("server.pem"), certificate.pem()).unwrap();
        private(&self.path("server.key"), &key.serialize_pem());
    }

    /// A file of the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

fn authority(name: &str) -> (String, Issuer<'static, KeyPair>) {
    let mut parameters = CertificateParams::new(Vec::new()).unwrap();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().unwrap();
    let pem = parameters.self_signed(&key).unwrap().pem();
    (pem, Issuer::new(parameters, key))
}

/// Readable by the server's user alone, and by us.
fn private(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    if let Some(user) = unprivileged_user().unwrap() {
        chown(path, Some(user.uid), Some(user.gid)).unwrap();
    }
}
