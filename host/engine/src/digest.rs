//! The digest that identifies the bytes of a plugin.

use sha2::{Digest, Sha256};

/// The digest of a plugin's bytes: SHA-256 in lower-case hexadecimal.
pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
