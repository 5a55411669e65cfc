//! The versions and cipher suites of TLS that clients offer, and those that were negotiated.

use super::files::TlsError;
use pubmark_model::options::{OptionValues, Options};
use rustls::crypto::CryptoProvider;
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, ClientConnection, ProtocolVersion, SupportedProtocolVersion};

/// Version and cipher suite of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// `1.2` or `1.3`.
    pub version: &'static str,
    /// The cipher suite, by its name at IANA.
    pub cipher: String,
}

impl Negotiated {
    /// Returns what a connection has negotiated; `None` before the end of its handshake.
    pub fn of(connection: &ClientConnection) -> Option<Negotiated> {
        let version = match connection.protocol_version()? {
            ProtocolVersion::TLSv1_2 => "1.2",
            ProtocolVersion::TLSv1_3 => "1.3",
            _ => "unknown",
        };
        Some(Negotiated { version, cipher: name(connection.negotiated_cipher_suite()?.suite()) })
    }
}

/// Returns the name of a cipher suite at IANA.
fn name(suite: CipherSuite) -> String {
    let name = suite.as_str().unwrap_or("unknown");
    // The library writes `TLS13_` for the suites of TLS 1.3.
    name.strip_prefix("TLS13_").map_or_else(|| name.to_owned(), |rest| format!("TLS_{rest}"))
}

/// Returns the versions of `tls_version`; without that option, both.
pub fn versions(options: &Options) -> Result<Vec<&'static SupportedProtocolVersion>, TlsError> {
    match options.text("tls_version") {
        None => Ok(vec![&TLS12, &TLS13]),
        Some("1.2") => Ok(vec![&TLS12]),
        Some("1.3") => Ok(vec![&TLS13]),
        Some(other) => Err(TlsError::UnknownVersion(other.to_owned())),
    }
}

/// Keeps only the cipher suite of `tls_cipher`, if that option is set, and of these versions.
pub fn restrict(
    provider: &mut CryptoProvider,
    versions: &[&'static SupportedProtocolVersion],
    options: &Options,
) -> Result<(), TlsError> {
    provider.cipher_suites.retain(|suite| versions.contains(&suite.version()));
    let Some(wanted) = options.text("tls_cipher") else { return Ok(()) };
    let known = provider.cipher_suites.iter().map(|suite| name(suite.suite())).collect::<Vec<_>>().join(", ");
    provider.cipher_suites.retain(|suite| name(suite.suite()) == wanted);
    match provider.cipher_suites.is_empty() {
        true => Err(TlsError::UnknownCipher { wanted: wanted.to_owned(), known }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::crypto::ring::default_provider;

    fn suites(set: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let options: Options = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
        let mut provider = default_provider();
        let versions = versions(&options).map_err(|error| error.to_string())?;
        restrict(&mut provider, &versions, &options).map_err(|error| error.to_string())?;
        Ok(provider.cipher_suites.iter().map(|suite| name(suite.suite())).collect())
    }

    #[test]
    fn a_version_and_a_cipher_suite_restrict_the_offer() {
        assert_eq!(suites(&[]).unwrap().len(), default_provider().cipher_suites.len());
        let of_13 = suites(&[("tls_version", "1.3")]).unwrap();
        assert!(of_13.contains(&"TLS_AES_128_GCM_SHA256".to_owned()) && of_13.len() == 3, "{of_13:?}");
        let one = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256";
        assert_eq!(suites(&[("tls_cipher", one)]).unwrap(), [one]);
        let error = suites(&[("tls_cipher", one), ("tls_version", "1.3")]).unwrap_err();
        assert!(error.contains("offer one of TLS_AES_256_GCM_SHA384, TLS_AES_128_GCM_SHA256"), "{error}");
        let error = suites(&[("tls_version", "1.1")]).unwrap_err();
        assert_eq!(error, "tls_version: `1.1` is not a version that can be offered: write 1.2 or 1.3");
    }
}
