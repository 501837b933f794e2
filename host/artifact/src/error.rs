//! Why a registry did not give what it was asked for.

use std::time::Duration;

use oci_client::errors::{OciDistributionError, OciErrorCode};

/// How many characters are told of an answer that is none.
const LONGEST: usize = 300;

/// Why a registry did not give what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// It wants other credentials.
    #[error("the registry refuses the credentials, or wants some: {0}")]
    Unauthorized(String),
    /// There is nothing under that name.
    #[error("the registry has nothing under that name: {0}")]
    NotFound(String),
    /// It does not answer, or not what registries answer.
    #[error("{0}")]
    Unavailable(String),
    /// It takes too long.
    #[error("the registry did not finish within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The artifact is not a component.
    #[error("not a WebAssembly artifact, which has one layer of type {layer}: {0}", layer = crate::layout::LAYER)]
    NotComponent(String),
    /// The component is larger than the caller takes.
    #[error("it has more than {} MiB", .0 >> 20)]
    TooLarge(u64),
    /// What came is not what its digest says.
    #[error("what came is damaged: {0}")]
    Damaged(String),
    /// The client could not be made.
    #[error("failed to set up a client for registries: {0}")]
    Client(String),
}

impl RegistryError {
    /// Whether it may pass by itself.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unavailable(_) | Self::TimedOut(_) | Self::Damaged(_) | Self::Unauthorized(_) | Self::NotFound(_) => {
                true
            }
            Self::NotComponent(_) | Self::TooLarge(_) | Self::Client(_) => false,
        }
    }
}

impl RegistryError {
    /// Whether the registry itself is the trouble, and not the one artifact that was asked for.
    pub(crate) fn is_about_connection(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::TimedOut(_) | Self::Unauthorized(_))
    }
}

impl From<OciDistributionError> for RegistryError {
    fn from(error: OciDistributionError) -> Self {
        use OciDistributionError as Oci;
        let text = told(&error.to_string());
        match error {
            Oci::UnauthorizedError { .. } | Oci::AuthenticationFailure(_) => Self::Unauthorized(text),
            Oci::ImageManifestNotFoundError(_) | Oci::ServerError { code: 404, .. } => Self::NotFound(text),
            Oci::RegistryError { envelope, .. } => of_codes(envelope.errors.iter().map(|error| &error.code), text),
            Oci::ServerError { code: 401 | 403, .. } => Self::Unauthorized(text),
            Oci::DigestError(_) => Self::Damaged(text),
            Oci::ImageIndexParsingNoPlatformResolverError => Self::NotComponent("it is an index of images".to_owned()),
            Oci::RequestError(request) => Self::Unavailable(told(&chain(&request))),
            _ => Self::Unavailable(text),
        }
    }
}

fn of_codes<'a>(mut codes: impl Iterator<Item = &'a OciErrorCode>, text: String) -> RegistryError {
    match codes.next() {
        Some(OciErrorCode::Unauthorized | OciErrorCode::Denied) => RegistryError::Unauthorized(text),
        Some(
            OciErrorCode::ManifestUnknown
            | OciErrorCode::NameUnknown
            | OciErrorCode::BlobUnknown
            | OciErrorCode::NotFound,
        ) => RegistryError::NotFound(text),
        _ => RegistryError::Unavailable(text),
    }
}

/// What is told of the words of a registry: it may be any server, and what that answers is not for all who may read a `Plugin`.
fn told(words: &str) -> String {
    let shown: String = words.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    match shown.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown,
    }
}

/// An error with its causes: what went wrong with a connection is in the last one.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| {
        let cause = cause.to_string();
        if text.contains(&cause) { text } else { format!("{text}: {cause}") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_is_told_of_what_a_registry_answers() {
        let error = OciDistributionError::ServerError {
            code: 500,
            url: "https://registry.example.com/v2/".to_owned(),
            message: format!("\u{1b}[2J{}", "x".repeat(100_000)),
        };
        let text = RegistryError::from(error).to_string();
        assert!(text.chars().count() <= LONGEST + 1, "{} characters", text.len());
        assert!(!text.contains(char::is_control), "{text}");
    }
}
