//! Bytes as gzip has them. Unpacks nothing.

use std::io::Write;

use anyhow::Result;
use flate2::{Compression, write::GzEncoder};

/// The bytes, compressed quickly.
///
/// # Errors
/// None that a test can bring about.
pub fn gzipped(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}
