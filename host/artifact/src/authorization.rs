//! What a registry asks for in its answer 401, as container tools answer it: the user's name and password, or a token from the server
//! that the registry names. Sends nothing itself.
//!
//! <https://distribution.github.io/distribution/spec/auth/token/>

use base64::{Engine, prelude::BASE64_STANDARD};
use http_auth::ChallengeRef;
use reqwest::{
    Url,
    header::{HeaderMap, HeaderValue, WWW_AUTHENTICATE},
};
use serde::Deserialize;

use crate::{Credentials, RegistryError};

/// What a registry asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Challenge {
    /// The user's name and password.
    Basic,
    /// A token from this address.
    Bearer(Url),
}

impl Challenge {
    /// What the answer's headers ask for before something of `repository` is read. None if they ask for nothing that is known here.
    ///
    /// # Errors
    /// The server for tokens has no address that a request can be sent to.
    pub fn of(headers: &HeaderMap, repository: &str) -> Result<Option<Self>, RegistryError> {
        let texts = || headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        let all: Vec<_> = texts().filter_map(|text| http_auth::parse_challenges(text).ok()).flatten().collect();
        let named = |scheme: &str| all.iter().find(|challenge| challenge.scheme.eq_ignore_ascii_case(scheme));
        match (named("Bearer"), named("Basic")) {
            (Some(bearer), _) => token_address(bearer, repository).map(|url| Some(Self::Bearer(url))),
            (None, Some(_)) => Ok(Some(Self::Basic)),
            (None, None) => Ok(None),
        }
    }
}

/// Where a token for reading from the repository is to be had.
fn token_address(challenge: &ChallengeRef<'_>, repository: &str) -> Result<Url, RegistryError> {
    let parameter = |name: &str| {
        let found = challenge.params.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.to_unescaped())
    };
    let realm = parameter("realm").unwrap_or_default();
    let url = Url::parse(&realm).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let mut url =
        url.ok_or_else(|| RegistryError::Unavailable("it wants a token, and names no server for it".to_owned()))?;
    if let Some(service) = parameter("service") {
        url.query_pairs_mut().append_pair("service", &service);
    }
    url.query_pairs_mut().append_pair("scope", &format!("repository:{repository}:pull"));
    Ok(url)
}

/// The header of a user's name and password. None for other credentials.
pub fn basic(credentials: &Credentials) -> Option<HeaderValue> {
    let Credentials::Basic { user, password } = credentials else { return None };
    secret(&format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}"))))
}

/// The header of a token. None if it has letters that no header can have.
pub fn bearer(token: &str) -> Option<HeaderValue> {
    secret(&format!("Bearer {token}"))
}

/// The token in the answer of a server for tokens.
///
/// # Errors
/// There is none in it. What is there instead is not told: it may be a token after all.
pub fn token_of(answer: &[u8]) -> Result<HeaderValue, RegistryError> {
    #[derive(Deserialize)]
    struct Answer {
        token: Option<String>,
        access_token: Option<String>,
    }
    let answer: Option<Answer> = serde_json::from_slice(answer).ok();
    let token = answer.and_then(|answer| answer.token.or(answer.access_token));
    let header = token.and_then(|token| bearer(&token));
    header.ok_or_else(|| RegistryError::Unavailable("its server for tokens answers without a token".to_owned()))
}

/// A header that is not printed.
fn secret(text: &str) -> Option<HeaderValue> {
    let mut header = HeaderValue::from_str(text).ok()?;
    header.set_sensitive(true);
    Some(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn challenge(texts: &[&str]) -> Result<Option<Challenge>, RegistryError> {
        let values = texts.iter().filter_map(|text| HeaderValue::from_str(text).ok());
        Challenge::of(&values.map(|value| (WWW_AUTHENTICATE, value)).collect(), "team/web")
    }

    #[test]
    fn a_token_is_asked_for_where_the_registry_says() {
        let scope = "scope=repository%3Ateam%2Fweb%3Apull";
        for (text, address) in [
            (
                r#"Bearer realm="https://auth.example.com/token",service="registry.example.com",scope="repository:x:push""#,
                format!("https://auth.example.com/token?service=registry.example.com&{scope}"),
            ),
            (r#"bearer Realm="http://auth.example.com/?a=b""#, format!("http://auth.example.com/?a=b&{scope}")),
        ] {
            let found = challenge(&[text]);
            assert!(matches!(&found, Ok(Some(Challenge::Bearer(url))) if url.as_str() == address), "{text}: {found:?}");
        }
    }

    #[test]
    fn a_token_is_preferred_to_a_password() {
        let both = challenge(&["Basic realm=\"registry\"", "Bearer realm=\"https://auth.example.com\""]);
        assert!(matches!(both, Ok(Some(Challenge::Bearer(_)))), "{both:?}");
        let basic = challenge(&["Basic realm=\"registry\""]);
        assert!(matches!(basic, Ok(Some(Challenge::Basic))), "{basic:?}");
    }

    #[test]
    fn nothing_is_sent_to_what_is_no_address() {
        for text in ["Bearer realm=\"\"", "Bearer service=\"a\"", "Bearer realm=\"file:///etc/passwd\""] {
            assert!(challenge(&[text]).is_err(), "{text}");
        }
        for text in ["", "Negotiate", "Digest realm=\"a\", nonce=\"b\""] {
            let found = challenge(&[text]);
            assert!(matches!(found, Ok(None)), "{text}: {found:?}");
        }
    }

    #[test]
    fn what_answers_without_a_token_is_told_without_its_words() {
        for (answer, header) in [
            (r#"{"token": "a"}"#, Some("Bearer a")),
            (r#"{"access_token": "b", "expires_in": 300}"#, Some("Bearer b")),
            (r#"{"token": "hidden\n"}"#, None),
            (r#"{"secret": "hidden"}"#, None),
            ("hidden", None),
        ] {
            let found = token_of(answer.as_bytes());
            assert_eq!(found.as_ref().ok().and_then(|header| header.to_str().ok()), header, "{answer}");
            assert!(!format!("{found:?}").contains("hidden"), "{found:?}");
        }
    }
}
