//! The versions of the contract that this host speaks, up to the patch: within a series nothing that is there changes.

/// The newest version of the contract that this host speaks.
pub const CONTRACT_VERSION: &str = "0.2.0";

/// The text of its newest version, in WIT.
pub const CONTRACT: &str = include_str!("../0.2/plugin.wit");

/// A version of the contract without its patch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContractSeries {
    /// 0.1
    V0_1,
    /// 0.2
    #[default]
    V0_2,
}

impl ContractSeries {
    const ALL: [Self; 2] = [Self::V0_1, Self::V0_2];

    /// The series of a version; none if this host does not speak it.
    pub fn of(version: &str) -> Option<Self> {
        let series = |version: &str| version.rsplit_once('.').map(|(series, _)| series.to_owned());
        let wanted = series(version)?;
        Self::ALL.into_iter().find(|spoken| series(spoken.version()).as_ref() == Some(&wanted))
    }

    /// The newest version of the series.
    pub fn version(self) -> &'static str {
        match self {
            Self::V0_1 => "0.1.0",
            Self::V0_2 => CONTRACT_VERSION,
        }
    }

    /// Whether a manifest says which kinds are looked up in other namespaces than the object's own. One of 0.1 could not say so.
    pub fn declares_namespaces_of_lookups(self) -> bool {
        self >= Self::V0_2
    }

    /// Whether a manifest of this series with a field that the host does not know is refused. 0.1 left such fields unread, and plugins
    /// may rely on it.
    pub fn refuses_unknown_fields(self) -> bool {
        self >= Self::V0_2
    }

    /// Whether plugins are told how far each child is, and `done` means that the object is ready only once its children are.
    pub fn has_readiness(self) -> bool {
        self >= Self::V0_2
    }

    /// All versions that this host speaks, for people.
    pub fn all_spoken() -> String {
        Self::ALL.map(Self::version).join(" and ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_patch_of_a_spoken_version_is_spoken() {
        use ContractSeries::{V0_1, V0_2};
        for (version, expected) in [
            ("0.1.0", Some(V0_1)),
            ("0.1.7", Some(V0_1)),
            ("0.2.0", Some(V0_2)),
            ("0.2.12", Some(V0_2)),
            ("0.3.0", None),
            ("1.1.0", None),
            ("0", None),
            ("", None),
        ] {
            assert_eq!(ContractSeries::of(version), expected, "{version}");
        }
    }
}
