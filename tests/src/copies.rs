//! Copies of the guest `copies` under other names and for other kinds, made in its bytes.

/// The bytes of a plugin with each occurrence of a text replaced by another text of the same length.
pub fn replaced(original: &[u8], text: &str, by: &str) -> Vec<u8> {
    let mut bytes = original.to_vec();
    let places = original.windows(text.len()).enumerate().filter(|(_, part)| *part == text.as_bytes());
    places.for_each(|(at, _)| bytes[at..at + text.len()].copy_from_slice(by.as_bytes()));
    bytes
}

/// The bytes of the guest `copies` with the name and the kind of this copy, of at most 999.
pub fn copy(original: &[u8], number: usize) -> Vec<u8> {
    let named = replaced(original, "copy-000", &format!("copy-{number:03}"));
    replaced(&named, "Copy000", &format!("Copy{number:03}"))
}
