//! Reads the URI of a model's source. What becomes of it in a Pod is in `model_volume.rs`.

use crate::spec_error::SpecError;
use pilothouse_pods::name::is_object_name;

/// Where a model comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source<'u> {
    /// A directory of a claim.
    Claim {
        /// The claim.
        claim: &'u str,
        /// The directory, without a slash at either end; empty for all of the claim.
        path: &'u str,
    },
    /// A directory of the node.
    Host(&'u str),
    /// Something that the downloader fetches: the whole URI.
    Download(&'u str),
    /// An image that holds the model.
    Image(&'u str),
}

impl<'u> Source<'u> {
    /// Reads a URI.
    ///
    /// # Errors
    /// It has another scheme, or lacks a part.
    pub fn parse(uri: &'u str) -> Result<Self, SpecError> {
        let refuse = |problem| SpecError::InvalidUri { uri: uri.to_owned(), problem };
        let Some((scheme, rest)) = uri.split_once("://") else { return Err(refuse(UNKNOWN_SCHEME)) };
        if rest.split('/').any(|part| matches!(part, "." | "..")) {
            return Err(refuse("has '.' or '..' in its path"));
        }
        match scheme {
            "pvc" => match rest.split_once('/').unwrap_or((rest, "")) {
                (claim, _) if !is_object_name(claim) => Err(refuse("does not name a claim, as in pvc://CLAIM/PATH")),
                (claim, path) => Ok(Self::Claim { claim, path: path.trim_matches('/') }),
            },
            "hostpath" if rest.len() > 1 && rest.starts_with('/') => Ok(Self::Host(rest.trim_end_matches('/'))),
            "hostpath" => Err(refuse("does not name a directory, as in hostpath:///PATH")),
            "hf" if is_repository(rest) => Ok(Self::Download(uri)),
            "hf" => {
                Err(refuse("does not name a model, as in hf://ORGANISATION/MODEL or hf://ORGANISATION/MODEL:REVISION"))
            }
            "s3" if !rest.is_empty() && !rest.starts_with('/') => Ok(Self::Download(uri)),
            "s3" => Err(refuse("does not name a bucket, as in s3://BUCKET/PATH")),
            "oci" if !rest.is_empty() && !rest.starts_with('/') => Ok(Self::Image(rest)),
            "oci" => Err(refuse("does not name an image, as in oci://REGISTRY/REPOSITORY:TAG")),
            _ => Err(refuse(UNKNOWN_SCHEME)),
        }
    }
}

const UNKNOWN_SCHEME: &str = "begins with none of pvc://, hostpath:///, hf://, s3:// and oci://";

/// `ORGANISATION/MODEL` or `ORGANISATION/MODEL:REVISION`.
fn is_repository(text: &str) -> bool {
    let (repository, revision) = text.split_once(':').map_or((text, None), |(it, revision)| (it, Some(revision)));
    let parts: Vec<_> = repository.split('/').collect();
    parts.len() == 2 && parts.iter().all(|part| !part.is_empty()) && revision != Some("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_is_read_by_its_scheme() {
        let cases = [
            ("pvc://models/llama/70b", Source::Claim { claim: "models", path: "llama/70b" }),
            ("pvc://models", Source::Claim { claim: "models", path: "" }),
            ("pvc://models/", Source::Claim { claim: "models", path: "" }),
            ("hostpath:///var/cache/models", Source::Host("/var/cache/models")),
            ("hf://meta-llama/Llama-3-8B", Source::Download("hf://meta-llama/Llama-3-8B")),
            ("hf://meta-llama/Llama-3-8B:main", Source::Download("hf://meta-llama/Llama-3-8B:main")),
            ("s3://bucket/llama", Source::Download("s3://bucket/llama")),
            ("oci://registry.example.com/llama:1", Source::Image("registry.example.com/llama:1")),
        ];
        for (uri, expected) in cases {
            assert_eq!(Source::parse(uri), Ok(expected), "{uri}");
        }
    }

    #[test]
    fn a_uri_that_lacks_something_is_refused_with_what_it_lacks() {
        let cases = [
            ("models/llama", "begins with none of"),
            ("gs://bucket/llama", "begins with none of"),
            ("pvc:///llama", "does not name a claim"),
            ("pvc://My_Models/llama", "does not name a claim"),
            ("pvc://models/../other", "has '.' or '..' in its path"),
            ("hostpath://var/models", "does not name a directory"),
            ("hf://llama", "does not name a model"),
            ("hf://meta-llama/llama:", "does not name a model"),
            ("s3:///llama", "does not name a bucket"),
            ("oci://", "does not name an image"),
        ];
        for (uri, expected) in cases {
            let refused = Source::parse(uri).map_err(|error| error.to_string());
            assert!(refused.as_ref().is_err_and(|message| message.contains(expected)), "{uri}: {refused:?}");
        }
    }
}
