//! Unpacks components that are compressed, and takes no more of any than a component may have.

use std::io::Read;

use super::{component::MAX_BYTES, error::ContentError};

/// What compressed files begin with.
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Unpacks what is compressed. Nothing may have more than [`MAX_BYTES`].
pub(super) fn unpacked(packed: Vec<u8>) -> Result<Vec<u8>, ContentError> {
    if packed.starts_with(GZIP) {
        bounded(flate2::read::MultiGzDecoder::new(&*packed))
    } else if packed.starts_with(ZSTD) {
        let decoder = ruzstd::decoding::StreamingDecoder::new(&*packed);
        bounded(decoder.map_err(|error| ContentError::Packing(error.to_string()))?)
    } else {
        within_limit(packed)
    }
}

fn bounded(packed: impl Read) -> Result<Vec<u8>, ContentError> {
    let mut bytes = Vec::new();
    // One byte more shows that there is more.
    let read = packed.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| ContentError::Packing(error.to_string()))?;
    within_limit(bytes)
}

/// The same bytes, if a component may have as many.
pub(super) fn within_limit(bytes: Vec<u8>) -> Result<Vec<u8>, ContentError> {
    if bytes.len() as u64 > MAX_BYTES { Err(ContentError::TooLarge) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use flate2::{Compression, write::GzEncoder};

    fn gzipped(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).and_then(|()| encoder.finish()).unwrap_or_default()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    }

    #[test]
    fn what_is_compressed_is_unpacked_within_a_limit() {
        let many = vec![7; 1 << 20];
        for (packed, expected) in [
            (b"plain".to_vec(), Ok(b"plain".to_vec())),
            (gzipped(&many), Ok(many.clone())),
            (zstd(&many), Ok(many)),
            (gzipped(b"cut")[..12].to_vec(), Err("PackingDamaged")),
            (ZSTD.to_vec(), Err("PackingDamaged")),
            (vec![0; (MAX_BYTES as usize) + 1], Err("TooLarge")),
            (gzipped(&vec![0; (MAX_BYTES as usize) + 1]), Err("TooLarge")),
            (zstd(&vec![0; (MAX_BYTES as usize) + 1]), Err("TooLarge")),
        ] {
            assert!(unpacked(packed).map_err(|error| error.reason()) == expected, "{:?}", expected.err());
        }
    }
}
