//! The files of TLS: trusted certificates, and the client's certificate and key.

use super::trust::TrustedCertificates;
use super::words;
use pubmark_model::credentials::{CERTIFICATES, path_of};
use pubmark_model::options::{OptionValues, Options};
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, RootCertStore};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum length of a file, bytes: a system's list of CAs has some 200 KiB.
const MOST_BYTES: u64 = 16 << 20;
/// Supported keys.
const KEYS: &str = "an RSA key of 2048 bits or more, an ECDSA key of P-256 or P-384, or an Ed25519 key";

/// The reason why no TLS connection can be begun.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The required versions of TLS are not available.
    #[error("TLS cannot be spoken: {}", words::of(.0))]
    Versions(#[source] Error),
    /// The server's name is malformed.
    #[error("`{host}` is a name that no certificate can carry: connect by another one")]
    Name {
        /// The name.
        host: String,
        /// The parser's error.
        source: InvalidDnsNameError,
    },
    /// The version is unknown.
    #[error("tls_version: `{0}` is not a version that can be offered: write 1.2 or 1.3")]
    UnknownVersion(String),
    /// The cipher suite is unknown, or is not one of the version's.
    #[error("tls_cipher: `{wanted}` is not a cipher suite that can be offered: offer one of {known}")]
    UnknownCipher {
        /// The cipher suite as typed.
        wanted: String,
        /// The names of the known ones.
        known: String,
    },
    /// A file cannot be read.
    #[error("{option}: cannot read certificates from {}: {source}", path.display())]
    Unread {
        /// The option that names the file.
        option: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file is not PEM.
    #[error("{option}: cannot read certificates from {}: {}", path.display(), words::of_pem(source))]
    NotPem {
        /// The option that names the file.
        option: &'static str,
        /// The file.
        path: PathBuf,
        /// The parser's error.
        source: pem::Error,
    },
    /// A certificate cannot be used as a CA.
    #[error("tls_ca: cannot read certificates from {}: {}", path.display(), words::of(source))]
    Unfit {
        /// The file.
        path: PathBuf,
        /// The library's error.
        source: Error,
    },
    /// A file contains no certificate.
    #[error("{option}: {} holds no certificate: it should be a PEM file", path.display())]
    Empty {
        /// The option that names the file.
        option: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// No file is given, and the system trusts no CA.
    #[error("this system has no CA certificates: install ca-certificates, or name a file with options.tls_ca")]
    NoSystemCa,
    /// There is a key without a certificate.
    #[error("tls_key is set and tls_cert is not: name the certificate of this key with options.tls_cert")]
    NoCertificate,
    /// The key is encrypted.
    #[error("tls_key: {path} is encrypted, and nobody can be asked for its password: decrypt it with `openssl pkey -in {path} -out FILE`", path = .0.display())]
    Encrypted(PathBuf),
    /// The file contains no key.
    #[error("tls_key: {} holds no private key: it should be a PEM file (PKCS#8, PKCS#1 or SEC1)", .0.display())]
    NoKey(PathBuf),
    /// The key is of an unknown kind.
    #[error("tls_key: {} holds a key that cannot be used: make {KEYS}", .0.display())]
    UnknownKey(PathBuf),
    /// The key does not belong to the certificate.
    #[error("tls_key: {} is not the key of the certificate in {}", key.display(), certificate.display())]
    Mismatch {
        /// The file with the key.
        key: PathBuf,
        /// The file with the certificate.
        certificate: PathBuf,
    },
}

/// Reads a file, up to its maximum length.
fn read(option: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    let unread = |source| TlsError::Unread { option, path: path.to_owned(), source };
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes)).map_err(unread)?;
    Ok(bytes)
}

fn certificates(option: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    // The certificate of a server that was started for the run stands in the option itself.
    let bytes = match path.to_str().filter(|text| text.starts_with("-----BEGIN ")) {
        Some(text) => text.as_bytes().to_owned(),
        None => read(option, path)?,
    };
    let found: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(&bytes).collect();
    match found {
        Ok(found) if found.is_empty() => Err(TlsError::Empty { option, path: path.to_owned() }),
        Ok(found) => Ok(found),
        Err(source) => Err(TlsError::NotPem { option, path: path.to_owned(), source }),
    }
}

/// Loads the trusted certificates: those of `tls_ca`, or the CAs of the system.
pub fn trust(options: &Options, provider: &Arc<CryptoProvider>) -> Result<TrustedCertificates, TlsError> {
    let mut roots = RootCertStore::empty();
    let mut named = Vec::new();
    if let Some(path) = options.text("tls_ca").map(Path::new) {
        named = certificates("tls_ca", path)?;
        let unfit = |source| TlsError::Unfit { path: path.to_owned(), source };
        named.iter().try_for_each(|certificate| roots.add(certificate.clone())).map_err(unfit)?;
    } else {
        // Some of a system's certificates may be unusable, but not all of them.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            return Err(TlsError::NoSystemCa);
        }
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let verifier = verifier.build().map_err(|error| TlsError::Versions(Error::General(error.to_string())))?;
    Ok(TrustedCertificates { verifier, named })
}

/// Loads the certificates for servers that ask clients for one: that of all clients, or one for each of `clients`
/// if the paths say so.
pub fn identities(options: &Options, provider: &CryptoProvider, clients: usize) -> Result<Vec<CertifiedKey>, TlsError> {
    let [certificate, key] = CERTIFICATES.map(|name| options.text(name));
    let (certificate, key) = match (certificate, key) {
        (None, None) => return Ok(Vec::new()),
        (None, Some(_)) => return Err(TlsError::NoCertificate),
        (Some(certificate), key) => (certificate, key.unwrap_or(certificate)),
    };
    let of = |client| [certificate, key].map(|path| path_of(path, client));
    let count = if of(0).iter().any(Option::is_some) { clients.max(1) } else { 1 };
    (0..count)
        .map(|client| {
            let [own, own_key] = of(client);
            let path = |own: &Option<String>, all: &str| PathBuf::from(own.as_deref().unwrap_or(all));
            identity(&path(&own, certificate), &path(&own_key, key), provider)
        })
        .collect()
}

/// Loads a certificate and its key. X.509 version 1 is accepted.
fn identity(certificate: &Path, key: &Path, provider: &CryptoProvider) -> Result<CertifiedKey, TlsError> {
    let chain = certificates("tls_cert", certificate)?;
    let bytes = read("tls_key", key)?;
    // `BEGIN ENCRYPTED PRIVATE KEY`, or `Proc-Type: 4,ENCRYPTED` within a section.
    if bytes.windows(9).any(|word| word == b"ENCRYPTED") {
        return Err(TlsError::Encrypted(key.to_owned()));
    }
    let der = PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| TlsError::NoKey(key.to_owned()))?;
    let signer = provider.key_provider.load_private_key(der).map_err(|_| TlsError::UnknownKey(key.to_owned()))?;
    let certified = CertifiedKey::new(chain, signer);
    // The library does not parse certificates of version 1, so their bytes are searched for
    // the public key.
    let public = certified.key.public_key();
    let fits = public.is_none_or(|public| certified.cert[0].windows(public.len()).any(|part| *part == *public));
    match fits {
        true => Ok(certified),
        false => Err(TlsError::Mismatch { key: key.to_owned(), certificate: certificate.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> String {
        format!("{}/tests/logins/{name}", env!("CARGO_MANIFEST_DIR"))
    }

    fn read_identity(certificate: Option<&str>, key: Option<&str>) -> Result<Vec<CertifiedKey>, TlsError> {
        let named = [("tls_cert", certificate), ("tls_key", key)];
        let given = named.iter().filter_map(|(name, path)| Some(((*name).to_owned(), file((*path)?).into())));
        identities(&given.collect(), &rustls::crypto::ring::default_provider(), 2)
    }

    #[test]
    fn keys_of_every_form_are_read() {
        for (certificate, key) in
            [("ec.crt", "v1.key"), ("ec.crt", "pkcs8.key"), ("rsa.crt", "pkcs1.key"), ("v1.crt", "v1.key")]
        {
            assert_eq!(read_identity(Some(certificate), Some(key)).unwrap().len(), 1, "{certificate} {key}");
        }
        assert!(read_identity(None, None).unwrap().is_empty());
    }

    #[test]
    fn each_client_has_the_certificate_of_its_number() {
        let folder = std::env::temp_dir().join(format!("certificates-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        for (from, to) in [("ec.crt", "0.crt"), ("v1.key", "0.key"), ("rsa.crt", "1.crt"), ("pkcs1.key", "1.key")] {
            std::fs::copy(file(from), folder.join(to)).unwrap();
        }
        let path = |end: &str| folder.join(format!("{{client}}.{end}")).display().to_string();
        let options: Options =
            [("tls_cert", path("crt")), ("tls_key", path("key"))].map(|(name, path)| (name.into(), path.into())).into();
        let read = |clients| identities(&options, &rustls::crypto::ring::default_provider(), clients);
        let two = read(2).unwrap();
        let wanted = ["ec.crt", "rsa.crt"].map(|name| certificates("tls_cert", Path::new(&file(name))).unwrap());
        assert_eq!(two.iter().map(|identity| identity.cert.clone()).collect::<Vec<_>>(), wanted);
        let missing = read(3).err().unwrap().to_string();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(missing.contains("2.crt"), "{missing}");
    }

    #[test]
    fn what_cannot_be_shown_is_refused_in_words() {
        for (certificate, key, says) in [
            (Some("ec.crt"), Some("encrypted-pkcs8.key"), "is encrypted"),
            (Some("ec.crt"), Some("encrypted-sec1.key"), "`openssl pkey -in"),
            (Some("ec.crt"), Some("p521.key"), "an ECDSA key of P-256 or P-384"),
            (Some("ec.crt"), Some("ca.crt"), "holds no private key"),
            (Some("ec.crt"), None, "holds no private key"),
            (Some("ec.crt"), Some("pkcs1.key"), "is not the key of the certificate"),
            (Some("v1.crt"), Some("pkcs1.key"), "is not the key of the certificate"),
            (Some("ec.crt"), Some("nothing"), "No such file"),
            (Some("v1.key"), Some("v1.key"), "tls_cert: "),
            (None, Some("v1.key"), "tls_cert is not"),
        ] {
            let error = read_identity(certificate, key).err().unwrap().to_string();
            assert!(error.contains(says), "{certificate:?} {key:?}: {error}");
        }
    }
}
