//! Names bytes by what they are.

use sha2::{Digest, Sha256};

/// Names the bytes of a plugin: lower-case hexadecimal SHA-256.
pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
