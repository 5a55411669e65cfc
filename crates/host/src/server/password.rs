//! Password hashes as servers store them.

use crate::error::HostError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{Context, SHA512};
use ring::rand::{SecureRandom, SystemRandom};

/// Bytes of salt, as in `mosquitto_passwd`.
const SALT: usize = 12;

/// Returns a password as in a password file of Mosquitto: `$6$SALT$HASH`, of SHA-512 over
/// password and salt.
///
/// # Errors
/// If there is no randomness available.
pub fn for_mosquitto(password: &str) -> Result<String, HostError> {
    let mut salt = [0; SALT];
    SystemRandom::new().fill(&mut salt).map_err(|_| "this host gives no random bytes")?;
    Ok(hashed(password, &salt))
}

fn hashed(password: &str, salt: &[u8]) -> String {
    let mut context = Context::new(&SHA512);
    context.update(password.as_bytes());
    context.update(salt);
    format!("$6${}${}", STANDARD.encode(salt), STANDARD.encode(context.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_as_in_the_vectors_of_rfc_4648() {
        let all = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| STANDARD.encode(text));
        assert_eq!(all, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    }

    /// `printf 'right0123456789ab' | openssl dgst -sha512 -binary | base64 -w0`
    #[test]
    fn a_password_is_hashed_with_its_salt() {
        let hashed = hashed("right", b"0123456789ab");
        assert_eq!(
            hashed,
            "$6$MDEyMzQ1Njc4OWFi$mX8TC6K3f6a/lUoICYW4i4jb+3hsiMFUeM1eOWxPQx5ZOtF1zaGiFxtexZDFTKDa1FckMHX5mG93MmkoDGUynw=="
        );
        assert_ne!(for_mosquitto("right").unwrap(), for_mosquitto("right").unwrap(), "a salt each");
    }
}
