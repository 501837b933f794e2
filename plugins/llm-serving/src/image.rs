//! The parts of a container image's name: its repository's last part, and the version that its tag says. It asks no registry.

/// A version: major, minor and patch.
pub type Version = [u32; 3];

/// The last part of an image's repository: `vllm-openai` of `docker.io/vllm/vllm-openai:v0.11.0@sha256:…`.
pub fn base_name(image: &str) -> &str {
    let without_digest = image.split('@').next().unwrap_or_default();
    let last = without_digest.rsplit('/').next().unwrap_or_default();
    last.split(':').next().unwrap_or_default()
}

/// The version in an image's tag; none for a tag like `latest`, of which nobody knows what it is.
pub fn version(image: &str) -> Option<Version> {
    let without_digest = image.split('@').next()?;
    let last = without_digest.rsplit('/').next()?;
    let (_, tag) = last.split_once(':')?;
    parse_version(tag)
}

/// The version at the beginning of a text: `v0.18.1-cu129` is 0.18.1, `0.18` is 0.18.0. One number alone is none.
pub fn parse_version(text: &str) -> Option<Version> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let numbers: Vec<u32> =
        text[..end].trim_end_matches('.').split('.').map(|it| it.parse().ok()).collect::<Option<_>>()?;
    match numbers[..] {
        [major, minor] => Some([major, minor, 0]),
        [major, minor, patch, ..] => Some([major, minor, patch]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_an_image_is_that_of_its_tag() {
        let cases = [
            ("vllm/vllm-openai:v0.18.0", "vllm-openai", Some([0, 18, 0])),
            ("localhost:5000/vllm-openai:0.9.2-cu128", "vllm-openai", Some([0, 9, 2])),
            ("vllm/vllm-openai:latest", "vllm-openai", None),
            ("vllm/vllm-openai", "vllm-openai", None),
            ("localhost:5000/vllm-openai", "vllm-openai", None),
            ("ghcr.io/ggml-org/llama.cpp:server-b6000", "llama.cpp", None),
            ("a/b:v1@sha256:0123", "b", None),
            ("a/b:1.2@sha256:0123", "b", Some([1, 2, 0])),
            ("", "", None),
        ];
        for (image, name, expected) in cases {
            assert_eq!((base_name(image), version(image)), (name, expected), "{image}");
        }
    }
}
