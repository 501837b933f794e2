//! Parses amounts of memory on the command line, in MiB.

use anyhow::Context;

/// The most that is taken: a PiB.
const MOST: usize = 1 << 30;

/// Parses an amount in MiB, above zero. Returns it in bytes.
///
/// # Errors
/// If the text is no such number.
pub fn mebibytes(text: &str) -> anyhow::Result<usize> {
    let number = text.parse::<usize>().ok().filter(|number| (1..=MOST).contains(number));
    let bytes = number.and_then(|number| number.checked_mul(1 << 20));
    bytes.with_context(|| format!("expected a number of MiB from 1 to {MOST}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_told_in_mebibytes() {
        for (text, bytes) in [("1", 1 << 20), ("64", 64 << 20), ("1073741824", 1 << 50)] {
            assert_eq!(mebibytes(text).ok(), Some(bytes), "{text}");
        }
        for text in ["", "0", "-1", "1.5", "64Mi", "1073741825", "17592186044416"] {
            assert!(mebibytes(text).is_err(), "{text}");
        }
    }
}
