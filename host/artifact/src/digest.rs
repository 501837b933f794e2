//! Digests as registries write them: an algorithm, a colon, hexadecimal digits. Reads nothing from anywhere.

use sha2::{Digest as _, Sha256, Sha512};

/// The digest of what a registry sends.
///
/// <https://github.com/opencontainers/image-spec/blob/main/descriptor.md#registered-algorithms>
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest(String);

impl Digest {
    /// None if the text is no digest of an algorithm that this crate computes.
    pub fn parse(text: &str) -> Option<Self> {
        let (algorithm, digits) = text.split_once(':')?;
        let length = match algorithm {
            "sha256" => 64,
            "sha512" => 128,
            _ => return None,
        };
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (digits.len() == length && digits.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }

    /// The `sha256` digest of these bytes.
    pub fn sha256(bytes: &[u8]) -> Self {
        Self(format!("sha256:{:x}", Sha256::digest(bytes)))
    }

    /// Whether it is the digest of these bytes.
    pub fn is_of(&self, bytes: &[u8]) -> bool {
        match self.0.strip_prefix("sha512:") {
            Some(digits) => digits == format!("{:x}", Sha512::digest(bytes)),
            None => *self == Self::sha256(bytes),
        }
    }

    /// As registries write it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_of_its_bytes_alone() {
        // Of the empty text, as published for both algorithms.
        let sha256 = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let sha512 = "sha512:cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce\
                      47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e";
        for text in [sha256, sha512] {
            let digest = Digest::parse(text);
            assert!(digest.as_ref().is_some_and(|digest| digest.is_of(b"") && !digest.is_of(b" ")), "{text}");
        }
        assert_eq!(Digest::sha256(b"").as_str(), sha256);
    }

    #[test]
    fn nothing_else_is_a_digest() {
        for text in ["", "sha256", "sha256:", "sha256:../../x", "md5:d41d8cd98f00b204e9800998ecf8427e"] {
            assert_eq!(Digest::parse(text), None, "{text}");
        }
        for digits in ["A".repeat(64), "a".repeat(63), "g".repeat(64)] {
            assert_eq!(Digest::parse(&format!("sha256:{digits}")), None, "{digits}");
        }
    }
}
