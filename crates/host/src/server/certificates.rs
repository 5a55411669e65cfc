//! Certificates of a server that is started with TLS, made for one run.

use super::layout::write;
use crate::error::HostError;
use pubmark_model::server::TlsFiles;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Folder of the files in a container.
pub const IN_CONTAINER: &str = "/pubmark/tls";

/// A server's certificate and key, signed by an authority of their own whose key is not kept.
/// All keys are ECDSA P-256.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificates {
    /// The authority's certificate (PEM).
    pub authority: String,
    certificate: String,
    key: String,
}

impl Certificates {
    /// Makes certificates for a server at an address: an IP address or a name.
    pub fn make(address: &str) -> Result<Certificates, HostError> {
        let address = if address.is_empty() { "127.0.0.1" } else { address.trim_matches(['[', ']']) };
        Certificates::try_make(address)
            .map_err(|error| format!("no certificate can be made for {address}: {error}").into())
    }

    fn try_make(address: &str) -> Result<Certificates, rcgen::Error> {
        let params = |names: &[&str], common_name: &str| -> Result<CertificateParams, rcgen::Error> {
            let mut params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())?;
            params.distinguished_name.push(DnType::CommonName, common_name);
            // Clocks of hosts may differ. The key is lost at the end of the run anyway.
            (params.not_before, params.not_after) = (date_time_ymd(2000, 1, 1), date_time_ymd(2049, 12, 31));
            Ok(params)
        };
        let mut of_authority = params(&[], "pubmark")?;
        of_authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuing_key = KeyPair::generate()?;
        let authority = of_authority.self_signed(&issuing_key)?.pem();
        let issuer = Issuer::new(of_authority, issuing_key);
        let key = KeyPair::generate()?;
        let certificate = params(&[address, "localhost"], address)?.signed_by(&key, &issuer)?.pem();
        Ok(Certificates { authority, certificate, key: key.serialize_pem() })
    }

    /// Writes the files into a new folder, readable by this user only.
    pub fn write(&self, folder: &Path) -> Result<(), HostError> {
        self.write_with(folder, 0o600)
    }

    /// Writes the files into a new folder, and returns where each is mounted. Every user of the
    /// container can read them; other users of this machine cannot enter the folder.
    pub fn write_mounts(&self, folder: &Path) -> Result<Vec<(PathBuf, String)>, HostError> {
        self.write_with(folder, 0o644)?;
        let (here, within) = (TlsFiles::in_folder(&folder.display().to_string()), TlsFiles::in_folder(IN_CONTAINER));
        let pair = |part: fn(&TlsFiles) -> &String| (PathBuf::from(part(&here)), part(&within).clone());
        Ok(vec![pair(|files| &files.certificate), pair(|files| &files.key), pair(|files| &files.authority)])
    }

    fn write_with(&self, folder: &Path, mode: u32) -> Result<(), HostError> {
        let said = || folder.display().to_string();
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(HostError::io(said()))?;
        let files = TlsFiles::in_folder(&said());
        let texts = [&self.certificate, &self.key, &self.authority];
        for (path, text) in [&files.certificate, &files.key, &files.authority].into_iter().zip(texts) {
            write(Path::new(path), text)?;
            fs::set_permissions(path, Permissions::from_mode(mode)).map_err(HostError::io(path.clone()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_user_can_read_the_key_and_the_authority_has_none() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("tls");
        let certificates = Certificates::make("").unwrap();
        certificates.write(&folder).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join("server.key"))), (0o700, 0o600));
        let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["ca.crt", "server.crt", "server.key"]);
        assert!(Certificates::make("::1").is_ok() && Certificates::make("broker.example").is_ok());
        assert_ne!(Certificates::make("").unwrap().authority, certificates.authority, "each run has its own");
    }

    #[test]
    fn a_container_gets_the_paths_that_its_server_is_told() {
        let place = tempfile::tempdir().unwrap();
        let mounts = Certificates::make("10.0.0.1").unwrap().write_mounts(&place.path().join("tls")).unwrap();
        let within: Vec<&str> = mounts.iter().map(|(_, within)| within.as_str()).collect();
        assert_eq!(within, ["/pubmark/tls/server.crt", "/pubmark/tls/server.key", "/pubmark/tls/ca.crt"]);
        assert!(mounts.iter().all(|(here, _)| here.is_file()));
    }
}
