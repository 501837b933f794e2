//! How the host is let act as the account of a plugin: for all that the account may do, or for some requests alone, where the API server knows
//! that (KEP-5284). Says which of both, and by what verbs; makes no rules.

use anyhow::Context;
use clap::ValueEnum;
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::Client;

/// The annotation on the rule that says what somebody has asked for. The next installation keeps that.
pub const SAID: &str = "pilothouse.dev/impersonation";

/// The first version of Kubernetes that constrains impersonation unless it is told not to.
const CONSTRAINED_SINCE: (u32, u32) = (1, 36);

/// What somebody asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Asked {
    /// As the version of the API server says.
    Auto,
    /// For the requests that the plugin needs alone.
    Constrained,
    /// For all that the account may do, which every API server knows.
    Unconstrained,
}

/// The rules by which the host may act as an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// For some requests alone.
    Constrained,
    /// For all that the account may do.
    Unconstrained,
}

/// How the host may act as an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Impersonation {
    /// The rules.
    pub rules: Rules,
    /// Whether somebody has asked for these.
    pub is_said: bool,
}

impl Impersonation {
    /// What is asked for now, or was before; none if the API server is to be asked.
    pub fn said(asked: Option<Asked>, before: Option<Rules>) -> Option<Self> {
        let rules = match asked {
            Some(Asked::Constrained) => Some(Rules::Constrained),
            Some(Asked::Unconstrained) => Some(Rules::Unconstrained),
            Some(Asked::Auto) => None,
            None => before,
        };
        rules.map(|rules| Self { rules, is_said: true })
    }

    /// What the API server of a cluster knows.
    ///
    /// # Errors
    /// If it does not say which version it is.
    pub async fn of(client: &Client) -> anyhow::Result<Self> {
        let help = "failed to ask the API server for its version; say --impersonation constrained or unconstrained";
        let version = client.apiserver_version().await.context(help)?;
        Ok(Self { rules: Rules::of(&version), is_said: false })
    }

    /// Rules that every API server knows.
    pub fn anywhere() -> Self {
        Self { rules: Rules::Unconstrained, is_said: false }
    }
}

impl Rules {
    /// Those that a version of Kubernetes knows.
    fn of(version: &Info) -> Self {
        match emulated(version) {
            Some(version) if version >= CONSTRAINED_SINCE => Self::Constrained,
            _ => Self::Unconstrained,
        }
    }

    /// Those of this name, as [`SAID`] has it.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Constrained, Self::Unconstrained].into_iter().find(|rules| rules.name() == name)
    }

    /// Their name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Constrained => "constrained",
            Self::Unconstrained => "unconstrained",
        }
    }

    /// The verb on the account.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Constrained => "impersonate:serviceaccount",
            Self::Unconstrained => "impersonate",
        }
    }

    /// The API group in which that verb is about service accounts.
    pub fn group(self) -> &'static str {
        match self {
            Self::Constrained => "authentication.k8s.io",
            Self::Unconstrained => "",
        }
    }
}

/// The verb that lets the host make requests with a verb while it acts as an account.
pub fn on(verb: &str) -> String {
    format!("impersonate-on:serviceaccount:{verb}")
}

/// The version as which the API server behaves. During an upgrade that may be an older one than it is.
fn emulated(version: &Info) -> Option<(u32, u32)> {
    let (major, minor) = match (&version.emulation_major, &version.emulation_minor) {
        (Some(major), Some(minor)) => (major, minor),
        _ => (&version.major, &version.minor),
    };
    // Some providers write `36+`.
    Some((major.parse().ok()?, minor.trim_end_matches('+').parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_says_whether_impersonation_is_constrained() {
        use Rules::{Constrained, Unconstrained};
        for (major, minor, emulated, expected) in [
            ("1", "34", None, Unconstrained),
            ("1", "35", Some("35"), Unconstrained),
            ("1", "36", None, Constrained),
            ("1", "36+", None, Constrained),
            ("1", "36", Some("36"), Constrained),
            ("1", "36", Some("35"), Unconstrained),
            ("1", "40", None, Constrained),
            ("2", "0", None, Constrained),
            ("", "", None, Unconstrained),
        ] {
            let version = Info {
                major: major.to_owned(),
                minor: minor.to_owned(),
                emulation_major: emulated.map(|_| "1".to_owned()),
                emulation_minor: emulated.map(str::to_owned),
                ..Info::default()
            };
            assert_eq!(Rules::of(&version), expected, "{major}.{minor}, as {emulated:?}");
        }
    }

    #[test]
    fn what_was_asked_for_is_kept_until_something_else_is() {
        use Rules::{Constrained, Unconstrained};
        let rules = |asked, before| Impersonation::said(asked, before).map(|how| how.rules);
        assert_eq!(rules(None, None), None);
        assert_eq!(rules(None, Some(Unconstrained)), Some(Unconstrained));
        assert_eq!(rules(Some(Asked::Constrained), Some(Unconstrained)), Some(Constrained));
        assert_eq!(rules(Some(Asked::Auto), Some(Unconstrained)), None);
        for said in [Constrained, Unconstrained] {
            assert_eq!(Rules::named(said.name()), Some(said));
        }
        assert_eq!(Rules::named("auto"), None);
    }
}
