//! The kind of custom resource that a new plugin reconciles, as its author writes it. It asks no cluster.

use std::{fmt, str::FromStr};

use pilothouse_wit::KindRef;

/// A kind of a group of one's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomKind {
    /// The group, such as `example.com`.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The kind, such as `Website`.
    pub kind: String,
}

/// Why a text names no kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not GROUP/VERSION/KIND, such as example.com/v1/Website")]
pub struct KindError(String);

impl CustomKind {
    /// Group and version, as in a manifest file.
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    /// The kind in lower case.
    pub fn singular(&self) -> String {
        self.kind.to_lowercase()
    }

    /// The name of the resource, by the rules that English has for most words.
    pub fn plural(&self) -> String {
        let singular = self.singular();
        let is_sibilant = ["s", "x", "z", "ch", "sh"].iter().any(|end| singular.ends_with(end));
        match singular.strip_suffix('y') {
            Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
            _ if is_sibilant => format!("{singular}es"),
            _ => format!("{singular}s"),
        }
    }
}

impl fmt::Display for CustomKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.group, self.version, self.kind)
    }
}

impl FromStr for CustomKind {
    type Err = KindError;

    fn from_str(text: &str) -> Result<Self, KindError> {
        let malformed = || KindError(text.to_owned());
        let mut parts = text.split('/').map(str::to_owned);
        let (Some(group), Some(version), Some(kind), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(malformed());
        };
        let named = Self { group, version, kind };
        // A custom resource has a group with a dot: those without are Kubernetes' own.
        let is_kind = named.group.contains('.') && KindRef::new(named.api_version(), &named.kind).is_well_formed();
        if is_kind { Ok(named) } else { Err(malformed()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_a_group_a_version_and_a_kind() {
        let kind = "example.com/v1/Website".parse::<CustomKind>();
        assert!(kind.as_ref().is_ok_and(|kind| kind.api_version() == "example.com/v1" && kind.kind == "Website"));
        for text in
            ["Website", "v1/Website", "apps/v1/Website", "example.com/v1/website", "example.com/v1/A/B", "a.b//C"]
        {
            assert_eq!(text.parse::<CustomKind>(), Err(KindError(text.to_owned())));
        }
    }

    #[test]
    fn the_plural_is_that_of_english() {
        for (kind, plural) in [
            ("Website", "websites"),
            ("Proxy", "proxies"),
            ("Gateway", "gateways"),
            ("Class", "classes"),
            ("Switch", "switches"),
        ] {
            let named = CustomKind { group: "example.com".into(), version: "v1".into(), kind: kind.into() };
            assert_eq!(named.plural(), plural);
        }
    }
}
