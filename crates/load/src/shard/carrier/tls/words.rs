//! Explanations of TLS failures, with advice. The library's own texts are the names of
//! its variants.

use super::super::errors::{denied, foreign};
use rustls::pki_types::ServerName;
use rustls::pki_types::pem;
use rustls::{AlertDescription, CertificateError, Error};
use std::fmt::Debug;
use std::io;

/// Supported signature algorithms.
const ALGORITHMS: &str =
    "ECDSA with P-256 or P-384, Ed25519, or RSA with 2048 bits or more, and SHA-256 or longer digests";
/// Advice on names in a certificate.
const NAMES: &str =
    "with `openssl x509 -req ... -extfile FILE`, for instance, where FILE says `subjectAltName=DNS:HOST`";

/// Returns the name of a variant as words, without its fields: `NoCipherSuitesInCommon`
/// is "no cipher suites in common".
fn spelled(variant: &impl Debug) -> String {
    let debugged = format!("{variant:?}");
    let name = debugged.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    let mut words = String::new();
    let mut before = ' ';
    for c in name.chars() {
        if c.is_ascii_uppercase() && before.is_ascii_lowercase() {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
        before = c;
    }
    words
}

/// Describes an error of the library without specific advice.
pub fn of(error: &Error) -> String {
    match error {
        Error::General(text) => text.clone(),
        Error::InvalidCertificate(why) => of_certificate(why),
        Error::PeerIncompatible(why) => spelled(why),
        Error::PeerMisbehaved(why) => spelled(why),
        Error::InvalidMessage(why) => spelled(why),
        other => spelled(other),
    }
}

/// Describes an error in a PEM file, without quoting the file.
pub fn of_pem(error: &pem::Error) -> String {
    match error {
        pem::Error::Io(error) => error.to_string(),
        other => format!("it is not a PEM file: {}", spelled(other)),
    }
}

/// Describes a problem of a certificate, with advice.
fn of_certificate(error: &CertificateError) -> String {
    use CertificateError as Why;
    match error {
        Why::UnknownIssuer => "unknown issuer: name its CA with options.tls_ca".into(),
        Why::Expired | Why::ExpiredContext { .. } => "it has expired: renew it, and check this machine's clock".into(),
        Why::NotValidYet | Why::NotValidYetContext { .. } => "it is not valid yet: check this machine's clock".into(),
        Why::NotValidForName => "it is for another host: connect by a name that it carries".into(),
        Why::NotValidForNameContext { expected, presented } => not_for(expected, presented),
        Why::BadEncoding => "its encoding is broken: make it anew".into(),
        Why::BadSignature => format!(
            "the signature does not fit: another CA of the same name has signed it, or a key is too short. Name the \
             CA that signed it with options.tls_ca, and use {ALGORITHMS}"
        ),
        Why::UnsupportedSignatureAlgorithmContext { .. }
        | Why::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            format!("it is signed in a way that is not known here: make one with {ALGORITHMS}")
        }
        Why::InvalidPurpose | Why::InvalidPurposeContext { .. } => {
            "it is not for servers: make one with extendedKeyUsage=serverAuth, or without extendedKeyUsage".into()
        }
        Why::UnhandledCriticalExtension => {
            "it has a critical extension that is not known here: make one without that".into()
        }
        Why::Other(other) => match other.0.downcast_ref() {
            Some(webpki::Error::UnsupportedCertVersion) => {
                format!("it is of X.509 version 1, which has no names of hosts: make one of version 3, {NAMES}")
            }
            Some(webpki::Error::CaUsedAsEndEntity) => {
                "it is a CA's own: name just this certificate with options.tls_ca, or make another for the server, \
                 with basicConstraints=CA:FALSE"
                    .into()
            }
            Some(webpki::Error::EndEntityUsedAsCa) => {
                "its issuer is not a CA: make the issuer's with basicConstraints=CA:TRUE".into()
            }
            Some(why) => format!("{}: make it anew", spelled(why)),
            None => other.0.to_string(),
        },
        other => format!("{}: make it anew", spelled(other)),
    }
}

/// Describes a name mismatch. `presented` has the form `DnsName("broker.example")`.
fn not_for(expected: &ServerName<'_>, presented: &[String]) -> String {
    let expected = expected.to_str();
    if presented.is_empty() {
        return format!(
            "it names no host (common names are not looked at): make one that names {expected}, {NAMES}, or \
             `subjectAltName=IP:ADDRESS`"
        );
    }
    let bare = |name: &String| {
        let inner = name.split_once('(').map_or(name.as_str(), |(_, inner)| inner.trim_end_matches(')'));
        inner.trim_matches('"').to_owned()
    };
    let names = presented.iter().map(bare).collect::<Vec<_>>().join(", ");
    format!("it is for {names}, not for {expected}: connect by a name that it carries")
}

/// Converts a failure into the error of the connection.
pub fn refusal(error: &Error, handshaking: bool) -> io::Error {
    match error {
        Error::InvalidCertificate(why) => {
            denied(format!("the server's certificate cannot be trusted: {}", of_certificate(why)))
        }
        Error::InvalidMessage(_) if handshaking => foreign("the server does not speak TLS on this port"),
        Error::AlertReceived(alert) => denied(of_alert(*alert)),
        Error::PeerIncompatible(_) => denied(format!("the server and pubmark have no TLS in common: {}", of(error))),
        other => foreign(format!("TLS failed: {}", of(other))),
    }
}

/// Describes the alert with which a server ends a handshake.
fn of_alert(alert: AlertDescription) -> String {
    use AlertDescription as Alert;
    const SHOW: &str = "name one with options.tls_cert and options.tls_key";
    match alert {
        Alert::CertificateRequired => format!("the server demands a certificate of the client: {SHOW}"),
        Alert::HandshakeFailure => format!(
            "the server refuses the TLS handshake: it may demand a certificate of the client ({SHOW}), or it knows no \
             cipher suite of TLS 1.2 and 1.3"
        ),
        Alert::UnknownCA => {
            "the server does not trust the client's certificate: let a CA sign it that the server knows".into()
        }
        // OpenSSL sends this alert for a certificate whose issuer it knows by name, with
        // another key.
        Alert::DecryptError => {
            "the server cannot check the signature of the client's certificate: let a CA sign it that the server knows"
                .into()
        }
        Alert::CertificateExpired => "the server says that the client's certificate has expired: renew it".into(),
        Alert::BadCertificate
        | Alert::UnsupportedCertificate
        | Alert::CertificateRevoked
        | Alert::CertificateUnknown => {
            format!("the server refuses the client's certificate ({}): check options.tls_cert", spelled(&alert))
        }
        Alert::ProtocolVersion => "the server speaks neither TLS 1.2 nor TLS 1.3".into(),
        Alert::UnrecognisedName => "the server does not know this name: connect by a name that it has".into(),
        alert => format!("the server refuses TLS: its alert says {}", spelled(&alert)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{OtherError, PeerIncompatible, PeerMisbehaved};
    use std::sync::Arc;

    /// No text exposes names of the program's types.
    #[test]
    fn every_failure_is_told_in_words() {
        let other = |error: webpki::Error| CertificateError::Other(OtherError(Arc::new(error)));
        let of_certificates = [
            (other(webpki::Error::UnsupportedCertVersion), "version 3"),
            (other(webpki::Error::CaUsedAsEndEntity), "options.tls_ca"),
            (other(webpki::Error::EndEntityUsedAsCa), "CA:TRUE"),
            (other(webpki::Error::PathLenConstraintViolated), "path len constraint violated: make it anew"),
            (other(webpki::Error::InvalidSerialNumber), "invalid serial number: make it anew"),
            (CertificateError::BadEncoding, "make it anew"),
            (CertificateError::BadSignature, "2048 bits"),
            (CertificateError::InvalidPurpose, "serverAuth"),
            (CertificateError::UnhandledCriticalExtension, "critical extension"),
            (CertificateError::Revoked, "revoked"),
            (CertificateError::Other(OtherError(Arc::new(io::Error::other("its own words")))), "its own words"),
        ];
        let mut all: Vec<(Error, &str)> =
            of_certificates.into_iter().map(|(why, says)| (Error::InvalidCertificate(why), says)).collect();
        all.extend([
            (Error::AlertReceived(AlertDescription::CertificateRequired), "options.tls_cert"),
            (Error::AlertReceived(AlertDescription::UnknownCA), "let a CA sign it"),
            (Error::AlertReceived(AlertDescription::DecryptError), "let a CA sign it"),
            (Error::AlertReceived(AlertDescription::InternalError), "its alert says internal error"),
            (Error::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon), "no cipher suites in common"),
            (Error::PeerMisbehaved(PeerMisbehaved::IllegalTlsInnerPlaintext), "illegal tls inner plaintext"),
            (Error::DecryptError, "TLS failed: decrypt error"),
            (Error::General("its own words".into()), "TLS failed: its own words"),
        ]);
        for (error, says) in all {
            let said = refusal(&error, true).to_string();
            assert!(said.contains(says), "{said} should say {says}");
            assert!(!said.contains("Error") && !said.contains("Other("), "{said}");
        }
    }

    #[test]
    fn names_are_shown_as_they_are_written() {
        let expected = ServerName::try_from("localhost").unwrap();
        let presented = ["DnsName(\"broker.example\")".to_owned(), "IpAddress(10.0.0.1)".to_owned()];
        assert!(not_for(&expected, &presented).starts_with("it is for broker.example, 10.0.0.1, not for localhost"));
        assert!(not_for(&expected, &[]).contains("make one that names localhost"));
    }
}
