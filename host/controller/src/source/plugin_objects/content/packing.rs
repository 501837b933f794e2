//! Unpacks components that are compressed, and takes no more of any than a component may have. Large ones take turns. Knows nothing of what is
//! in them.

use std::{io::Read, sync::Arc};

use tokio::task::spawn_blocking;

use super::{
    component::MAX_BYTES,
    error::ContentError,
    turns::{SMALL, Turn, Work},
};

/// What compressed files begin with.
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Unpacks what is compressed, on a thread that may be busy for that long. Nothing may have more than [`MAX_BYTES`]; what is large waits for
/// the turn of its look.
pub(super) async fn unpacked(packed: Vec<u8>, turn: &Turn) -> Result<Vec<u8>, ContentError> {
    let Some(packing) = Packing::of(&packed) else { return within_limit(packed) };
    let packed = Arc::new(packed);
    match packing.read(&packed, SMALL).await {
        Err(ContentError::TooLarge) => {}
        read => return read,
    }
    // Nobody can know before how large it is.
    turn.take(Work::Slow).await;
    packing.read(&packed, MAX_BYTES).await
}

/// How a component is compressed.
#[derive(Clone, Copy)]
enum Packing {
    Gzip,
    Zstd,
}

impl Packing {
    /// By what the bytes begin with; none if they are not compressed.
    fn of(bytes: &[u8]) -> Option<Self> {
        if bytes.starts_with(GZIP) {
            return Some(Self::Gzip);
        }
        bytes.starts_with(ZSTD).then_some(Self::Zstd)
    }

    async fn read(self, packed: &Arc<Vec<u8>>, most: u64) -> Result<Vec<u8>, ContentError> {
        let packed = packed.clone();
        let read = spawn_blocking(move || match self {
            Self::Gzip => bounded(flate2::read::MultiGzDecoder::new(&**packed), most),
            Self::Zstd => bounded(ruzstd::decoding::StreamingDecoder::new(&**packed).map_err(damaged)?, most),
        });
        read.await.map_err(damaged)?
    }
}

fn bounded(packed: impl Read, most: u64) -> Result<Vec<u8>, ContentError> {
    let mut bytes = Vec::new();
    // One byte more shows that there is more.
    packed.take(most + 1).read_to_end(&mut bytes).map_err(damaged)?;
    if bytes.len() as u64 > most { Err(ContentError::TooLarge) } else { Ok(bytes) }
}

fn damaged(error: impl std::fmt::Display) -> ContentError {
    ContentError::Packing(error.to_string())
}

/// The same bytes, if a component may have as many.
pub(super) fn within_limit(bytes: Vec<u8>) -> Result<Vec<u8>, ContentError> {
    if bytes.len() as u64 > MAX_BYTES { Err(ContentError::TooLarge) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::source::plugin_objects::content::turns::Turns;
    use flate2::{Compression, write::GzEncoder};

    fn gzipped(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).and_then(|()| encoder.finish()).unwrap_or_default()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    }

    #[tokio::test]
    async fn what_is_compressed_is_unpacked_within_a_limit() {
        let (turn, many) = (Turns::default().begin_look(), vec![7; 5 << 20]);
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
            assert!(unpacked(packed, &turn).await.map_err(|error| error.reason()) == expected, "{:?}", expected.err());
        }
    }

    #[tokio::test]
    async fn only_large_components_need_a_turn() {
        let turn = Turns::default().begin_look();
        let (small, large) = (vec![0; SMALL as usize], vec![0; (SMALL as usize) + 1]);
        assert!(unpacked(gzipped(&small), &turn).await.is_ok_and(|bytes| bytes == small) && !turn.is_held());
        assert!(unpacked(gzipped(&large), &turn).await.is_ok_and(|bytes| bytes == large) && turn.is_held());
    }
}
