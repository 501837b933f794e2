//! FNV-1a, a hash for names and fingerprints that are stored. The hashes of the standard library may differ from one Rust
//! version to the next. It is no protection against anybody who looks for collisions.

/// The hash of no bytes: where hashing begins.
pub const FNV_OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// The hash after more bytes.
pub fn fnv_1a(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
