//! Decimal numbers of text protocols.

/// Digits of the largest number that is read: those that fit into 63 bits.
const MAX_DIGITS: usize = 18;

/// Appends a number.
pub(crate) fn put(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    let mut first = digits.len();
    let mut rest = number;
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[first..]);
}

/// Reads a number of digits only, at most 18 of them.
pub(crate) fn read(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > MAX_DIGITS {
        return None;
    }
    text.iter().try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn written_like_the_standard_library(number: u64) {
            let mut out = Vec::new();
            put(&mut out, number);
            prop_assert_eq!(String::from_utf8_lossy(&out), number.to_string());
            prop_assert_eq!(read(&out), (out.len() <= MAX_DIGITS).then_some(number));
        }
    }

    #[test]
    fn only_digits_are_read() {
        for text in ["", " 1", "+1", "-1", "1 ", "0x1", "1234567890123456789"] {
            assert_eq!(read(text.as_bytes()), None, "{text:?}");
        }
    }
}
