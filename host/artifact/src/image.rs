//! Names of artifacts in registries, as container tools write them.

use std::{fmt, str::FromStr};

use oci_client::Reference;

/// Where an artifact is: registry, repository, and a tag, a digest or both. A digest wins over a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image(Reference);

/// Why a text names no artifact.
#[derive(Debug, thiserror::Error)]
#[error("'{text}' is not the name of an artifact in a registry, such as registry.example.com/team/plugin:1.2: {why}")]
pub struct ImageError {
    text: String,
    why: String,
}

impl Image {
    /// The registry, with its port.
    pub fn registry(&self) -> &str {
        self.0.resolve_registry()
    }

    /// The digest of the manifest, if the name has one.
    pub fn digest(&self) -> Option<&str> {
        self.0.digest()
    }

    pub(crate) fn repository(&self) -> &str {
        self.0.repository()
    }

    pub(crate) fn tag(&self) -> Option<&str> {
        self.0.tag()
    }

    /// The same artifact under the digest of its manifest.
    pub fn with_digest(&self, digest: &str) -> Self {
        Self(self.0.clone_with_digest(digest.to_owned()))
    }

    /// Another artifact of the same repository.
    pub(crate) fn with_tag(&self, tag: &str) -> Self {
        let (registry, repository) = (self.0.registry().to_owned(), self.0.repository().to_owned());
        Self(Reference::with_tag(registry, repository, tag.to_owned()))
    }

    pub(crate) fn reference(&self) -> &Reference {
        &self.0
    }
}

impl FromStr for Image {
    type Err = ImageError;

    fn from_str(text: &str) -> Result<Self, ImageError> {
        let error = |why: String| ImageError { text: text.to_owned(), why };
        let reference: Reference = text.parse().map_err(|parse: oci_client::ParseError| error(parse.to_string()))?;
        // The client's expression takes the first part of such a name for a part of the path, with upper case letters.
        if reference.repository().contains(|letter: char| letter.is_ascii_uppercase()) {
            return Err(error("a repository is written in lower case".to_owned()));
        }
        Ok(Self(reference))
    }
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_container_tools() {
        let digest = format!("sha256:{}", "a".repeat(64));
        for (text, registry, found) in [
            ("registry.example.com/team/web:1.2", "registry.example.com", None),
            ("localhost:5000/web", "localhost:5000", None),
            (&*format!("localhost:5000/web@{digest}"), "localhost:5000", Some(&*digest)),
            (&*format!("localhost:5000/web:1@{digest}"), "localhost:5000", Some(&*digest)),
        ] {
            let image: Image = text.parse().unwrap_or_else(|error| unreachable!("{error}"));
            assert_eq!((image.registry(), image.digest()), (registry, found), "{text}");
        }
    }

    #[test]
    fn what_names_nothing_is_told() {
        for text in ["", "UPPER/case", "host/name:", "host/name@sha256:short", "oci://host/name", "a b"] {
            let error = text.parse::<Image>().map(|image| image.to_string()).map_err(|error| error.to_string());
            assert!(
                error.as_ref().is_err_and(|error| error.contains("not the name of an artifact")),
                "{text}: {error:?}"
            );
        }
    }
}
