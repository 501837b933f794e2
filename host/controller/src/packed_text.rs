//! A text in less memory: what it has in common with another text of its kind is left out. Objects of one kind differ in their names, UIDs,
//! versions and times, so most of them need a fifth of their text (LZ4 with a dictionary). Pure.

use std::sync::Arc;

use lz4_flex::block::{compress_prepend_size_with_dict, decompress_size_prepended_with_dict, uncompressed_size};

/// Below this size, in bytes, packing saves less than it takes.
const SMALLEST: usize = 256;

/// A packed text.
#[derive(Clone)]
pub(crate) struct PackedText {
    /// With the size of the text before it.
    bytes: Box<[u8]>,
    like: Arc<str>,
}

impl PackedText {
    /// Packs a text beside another one that is like it. None where that does not save a third of it, and where another text would come out
    /// again: that is tried, because nobody could do anything about it later.
    pub(crate) fn of(text: &str, like: &Arc<str>) -> Option<Self> {
        if text.len() < SMALLEST {
            return None;
        }
        let bytes = compress_prepend_size_with_dict(text.as_bytes(), like.as_bytes()).into_boxed_slice();
        let packed = Self { bytes, like: like.clone() };
        (packed.size() <= text.len() / 3 * 2 && packed.unpacked().as_deref() == Some(text)).then_some(packed)
    }

    /// The text.
    pub(crate) fn read(&self) -> String {
        // It came out once, and has not changed since.
        self.unpacked().unwrap_or_default()
    }

    /// How many bytes the text has.
    pub(crate) fn len(&self) -> usize {
        uncompressed_size(&self.bytes).map(|(size, _)| size).unwrap_or_default()
    }

    /// How many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    fn unpacked(&self) -> Option<String> {
        String::from_utf8(decompress_size_prepended_with_dict(&self.bytes, self.like.as_bytes()).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str, replicas: usize) -> String {
        format!(
            r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"{name}","namespace":"ns","labels":{{"app.kubernetes.io/name":"{name}"}}}},"spec":{{"replicas":{replicas},"selector":{{"matchLabels":{{"app.kubernetes.io/name":"{name}"}}}},"template":{{"spec":{{"containers":[{{"name":"web"}}]}}}}}}}}"#
        )
    }

    #[test]
    fn a_text_is_a_quarter_beside_one_that_is_like_it() {
        let (like, text) = (Arc::from(object("frontend", 3)), object("backend", 12));
        let packed = PackedText::of(&text, &like);
        assert_eq!(packed.as_ref().map(PackedText::read), Some(text.clone()));
        assert_eq!(packed.as_ref().map(PackedText::len), Some(text.len()));
        assert!(packed.is_some_and(|packed| packed.size() < text.len() / 4));
    }

    #[test]
    fn what_would_save_little_is_not_packed() {
        let like = Arc::from(object("frontend", 3));
        assert!(PackedText::of(r#"{"metadata":{"name":"backend"}}"#, &like).is_none(), "it is small");
        let mut random = fastrand::Rng::with_seed(1);
        let noise: String = (0..400).map(|_| random.alphanumeric()).collect();
        assert!(PackedText::of(&noise, &Arc::from("")).is_none(), "nothing in it comes again");
    }

    #[test]
    fn what_comes_out_is_what_went_in() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut text = |parts: &[&str]| -> String {
            (0..random.usize(0..60)).map(|_| parts[random.usize(0..parts.len())].repeat(random.usize(1..9))).collect()
        };
        let mut packed_ones = 0;
        for _ in 0..2_000 {
            let (text, like) =
                (text(&["{", "\"name\":", "é", "\u{1F600}", "\0", "0123456789"]), text(&["\"name\":", "é", "x"]));
            if let Some(packed) = PackedText::of(&text, &Arc::from(like)) {
                assert_eq!((packed.read(), packed.len()), (text.clone(), text.len()));
                assert!(packed.size() < text.len());
                packed_ones += 1;
            }
        }
        assert!(packed_ones > 1_000, "{packed_ones}");
    }
}
