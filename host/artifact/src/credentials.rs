//! What a registry wants to see before it answers. Read from the JSON that `docker login` and pull secrets have.

use std::{collections::BTreeMap, fmt};

use base64::{Engine, prelude::BASE64_STANDARD};
use oci_client::secrets::RegistryAuth;
use serde::{Deserialize, de::IgnoredAny};

use crate::Image;

/// What a registry wants to see. Never printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Credentials {
    /// Nothing.
    #[default]
    Anonymous,
    /// A user's name and password.
    Basic {
        /// The name.
        user: String,
        /// The password.
        password: String,
    },
    /// A token of the registry itself.
    Token(String),
}

/// The names of Docker Hub in docker config files and in names of images.
const DOCKER_HUB: [&str; 3] = ["docker.io", "index.docker.io", "registry-1.docker.io"];

/// Why a file has no credentials in it.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// It is not the JSON that it should be.
    #[error("not a docker config file, a JSON object with an object 'auths': wrong in line {line}, column {column}")]
    Malformed {
        /// The line where it is wrong, from 1.
        line: usize,
        /// The column in this line.
        column: usize,
    },
    /// The `auth` of a registry is not `USER:PASSWORD` in base64.
    #[error("the 'auth' of '{0}' is not USER:PASSWORD in base64")]
    Auth(String),
}

/// Where, and not what: the parser's words quote the value that it did not expect, which may be a password.
impl From<serde_json::Error> for CredentialsError {
    fn from(error: serde_json::Error) -> Self {
        Self::Malformed { line: error.line(), column: error.column() }
    }
}

/// A docker config file, the part of it that counts here.
#[derive(Deserialize)]
struct DockerConfig {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
}

#[derive(Default, Deserialize)]
struct Entry {
    #[serde(default)]
    auth: Option<String>,
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    password: Option<String>,
    #[serde(default)]
    registrytoken: Option<String>,
}

impl Credentials {
    /// Those for the registry of `image` in a docker config file, such as the `.dockerconfigjson` of a pull secret.
    /// [`Anonymous`](Self::Anonymous) where it has none for it. The longest prefix of the image's name counts, as for Pods.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of_docker_config(config: &[u8], image: &Image) -> Result<Self, CredentialsError> {
        // An object, before it is read as one: a derived struct takes a list, too.
        let _: BTreeMap<String, IgnoredAny> = serde_json::from_slice(config)?;
        let config: DockerConfig = serde_json::from_slice(config)?;
        let name = image.to_string();
        let matches = |key: &str| {
            let prefix = location(key);
            let is_prefix =
                name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(['/', ':', '@']) || rest.is_empty());
            is_prefix || (DOCKER_HUB.contains(&prefix) && DOCKER_HUB.contains(&image.registry()))
        };
        let found = config.auths.iter().filter(|(key, _)| matches(key));
        let longest = found.max_by_key(|(key, _)| location(key).len());
        longest.map_or(Ok(Self::Anonymous), |(key, entry)| entry.credentials(key))
    }

    pub(crate) fn auth(&self) -> RegistryAuth {
        match self {
            Self::Anonymous => RegistryAuth::Anonymous,
            Self::Basic { user, password } => RegistryAuth::Basic(user.clone(), password.clone()),
            Self::Token(token) => RegistryAuth::Bearer(token.clone()),
        }
    }
}

impl Entry {
    fn credentials(&self, key: &str) -> Result<Credentials, CredentialsError> {
        if let Some(token) = &self.registrytoken {
            return Ok(Credentials::Token(token.clone()));
        }
        if let (Some(user), Some(password)) = (&self.username, &self.password) {
            return Ok(Credentials::Basic { user: user.clone(), password: password.clone() });
        }
        let Some(auth) = &self.auth else { return Ok(Credentials::Anonymous) };
        let error = || CredentialsError::Auth(key.to_owned());
        let text = BASE64_STANDARD.decode(auth.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let (user, password) = text.as_deref().and_then(|text| text.split_once(':')).ok_or_else(error)?;
        Ok(Credentials::Basic { user: user.to_owned(), password: password.to_owned() })
    }
}

/// A key of `auths` without what older tools write around it: `https://index.docker.io/v1/`.
fn location(key: &str) -> &str {
    let key = key.trim_start_matches("https://").trim_start_matches("http://").trim_end_matches('/');
    key.trim_end_matches("/v1").trim_end_matches("/v2")
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anonymous => f.write_str("Anonymous"),
            Self::Basic { user, .. } => write!(f, "Basic({user})"),
            Self::Token(_) => f.write_str("Token"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(config: &str, image: &str) -> Result<Credentials, String> {
        let image = image.parse::<Image>().map_err(|error| error.to_string())?;
        Credentials::of_docker_config(config.as_bytes(), &image).map_err(|error| error.to_string())
    }

    fn basic(user: &str, password: &str) -> Credentials {
        Credentials::Basic { user: user.to_owned(), password: password.to_owned() }
    }

    #[test]
    fn the_longest_prefix_counts() {
        let config = r#"{"auths": {
            "https://registry.example.com/v2/": {"username": "all", "password": "1"},
            "registry.example.com/team": {"auth": "dGVhbTpwOnc="},
            "registry.example.com/te": {"username": "no", "password": "2"},
            "https://index.docker.io/v1/": {"registrytoken": "t"}
        }}"#;
        for (image, expected) in [
            ("registry.example.com/team/web:1", basic("team", "p:w")),
            ("registry.example.com/other:1", basic("all", "1")),
            ("registry.example.com.evil.org/team/web", Credentials::Anonymous),
            ("docker.io/library/web", Credentials::Token("t".to_owned())),
            ("evildocker.io/library/web", Credentials::Anonymous),
            ("evil.index.docker.io/library/web", Credentials::Anonymous),
            ("localhost:5000/web", Credentials::Anonymous),
        ] {
            assert_eq!(of(config, image), Ok(expected), "{image}");
        }
    }

    #[test]
    fn a_damaged_file_is_told_without_its_secrets() {
        for config in [
            "",
            "[]",
            r#"{"auths": {"localhost:5000": "c2VjcmV0"}}"#,
            r#"{"auths": {"localhost:5000": {"auth": "c2VjcmV0"}}}"#,
        ] {
            let error = of(config, "localhost:5000/web");
            assert!(
                error.as_ref().is_err_and(|error| !error.contains("c2VjcmV0") && !error.contains("secret")),
                "{error:?}"
            );
        }
    }

    #[test]
    fn credentials_are_not_printed() {
        assert_eq!(
            format!("{:?} {:?}", basic("me", "hidden"), Credentials::Token("hidden".to_owned())),
            "Basic(me) Token"
        );
    }
}
