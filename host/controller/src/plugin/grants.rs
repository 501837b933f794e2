//! What a plugin may do at most, whatever its manifest asks for. Decides by the manifest alone; what the API server allows is another
//! question. Pure.

use pilothouse_engine::{Lookup, Manifest, contract::KindRef};

use crate::api::{Grants as GrantsSpec, KindGrant, LookupGrant};

/// The API groups whose kinds give rights, take part in admission, or change what the API server serves. With a child of one of them, a
/// plugin could give itself whatever it likes.
const PRIVILEGED_GROUPS: [&str; 6] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "certificates.k8s.io",
    "pilothouse.dev",
    "rbac.authorization.k8s.io",
];

/// What a plugin may do at most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Grants {
    /// Whatever its manifest asks for: who put the component into a directory of the host is trusted.
    #[default]
    AsDeclared,
    /// What a `Plugin` grants.
    Granted(GrantsSpec),
}

/// What a manifest asks for and is not granted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its manifest {} {kind}, {}; to grant it, add {grant} to {}", asked.verb(), self.why(), asked.field())]
pub struct NotGranted {
    /// What it is asked for.
    pub asked: Asked,
    /// The kind.
    pub kind: KindRef,
    /// The missing element of the list.
    pub grant: String,
    /// Whether the `Plugin` has a list.
    pub is_listed: bool,
}

/// What a manifest asks a kind for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// To reconcile it.
    Reconciles,
    /// To have children of it.
    Children,
    /// To look it up.
    Lookups,
}

impl Asked {
    fn verb(self) -> &'static str {
        match self {
            Self::Reconciles => "reconciles",
            Self::Children => "asks for children of",
            Self::Lookups => "asks to look up",
        }
    }

    /// The list of grants in a `Plugin`.
    fn field(self) -> &'static str {
        match self {
            Self::Reconciles => "spec.grants.reconciles",
            Self::Children => "spec.grants.children",
            Self::Lookups => "spec.grants.lookups",
        }
    }
}

impl NotGranted {
    fn why(&self) -> &'static str {
        match self.is_listed {
            true => "which the Plugin does not grant",
            false => "which has to be granted by name",
        }
    }
}

impl Grants {
    /// Whether a manifest asks for no more than is granted.
    ///
    /// # Errors
    /// [`NotGranted`] for the first kind that is not.
    pub fn check(&self, manifest: &Manifest) -> Result<(), NotGranted> {
        let Self::Granted(GrantsSpec { reconciles, children, lookups }) = self else { return Ok(()) };
        let refused = |asked, kind: &KindRef, is_listed, more: &str| NotGranted {
            asked,
            kind: kind.clone(),
            grant: format!("{{group: \"{}\", kind: {}{more}}}", kind.group(), kind.kind),
            is_listed,
        };
        let kind = &manifest.reconciles;
        // To reconcile a kind of Kubernetes itself is to write to objects of everybody, so that needs a grant by name.
        if !is_granted(reconciles.as_deref(), kind, !is_of_kubernetes(kind) && !is_privileged(kind)) {
            return Err(refused(Asked::Reconciles, kind, reconciles.is_some(), ""));
        }
        let is_child = |kind: &&KindRef| is_granted(children.as_deref(), kind, !is_privileged(kind));
        if let Some(kind) = manifest.children.iter().find(|kind| !is_child(kind)) {
            return Err(refused(Asked::Children, kind, children.is_some(), ""));
        }
        let is_lookup = |lookup: &&Lookup| match lookups {
            // A list says all: what it leaves out is not granted, also where it would be without a list.
            Some(granted) => granted.iter().any(|grant| is_lookup(grant, lookup)),
            None => !is_privileged(&lookup.kind) && !is_secret(&lookup.kind),
        };
        if let Some(Lookup { kind, all_namespaces, .. }) = manifest.lookups.iter().find(|lookup| !is_lookup(lookup)) {
            let everywhere = if *all_namespaces { ", allNamespaces: true" } else { "" };
            return Err(refused(Asked::Lookups, kind, lookups.is_some(), everywhere));
        }
        Ok(())
    }

    /// The grants that are exactly what a manifest asks for.
    pub fn of_manifest(manifest: &Manifest) -> GrantsSpec {
        let kind = |kind: &KindRef| KindGrant { group: kind.group().to_owned(), kind: kind.kind.clone() };
        let lookup = |Lookup { kind, all_namespaces, .. }: &Lookup| LookupGrant {
            group: kind.group().to_owned(),
            kind: kind.kind.clone(),
            all_namespaces: *all_namespaces,
        };
        GrantsSpec {
            reconciles: Some(vec![kind(&manifest.reconciles)]),
            children: Some(manifest.children.iter().map(kind).collect()),
            lookups: Some(manifest.lookups.iter().map(lookup).collect()),
        }
    }
}

/// Whether children of a kind could give a plugin rights that nobody gave it.
pub fn is_privileged(kind: &KindRef) -> bool {
    PRIVILEGED_GROUPS.contains(&kind.group())
}

/// Whether objects of a kind hold credentials.
pub fn is_secret(kind: &KindRef) -> bool {
    kind.group().is_empty() && kind.kind == "Secret"
}

/// Whether a kind is one of Kubernetes' own. The groups of custom kinds have a domain; of domains, `k8s.io` is Kubernetes'.
fn is_of_kubernetes(kind: &KindRef) -> bool {
    !kind.group().contains('.') || kind.group().ends_with(".k8s.io")
}

/// Whether a kind is in a list of grants; `otherwise` if there is no list.
fn is_granted(granted: Option<&[KindGrant]>, kind: &KindRef, otherwise: bool) -> bool {
    let is_it = |grant: &KindGrant| grant.group == kind.group() && grant.kind == kind.kind;
    granted.map_or(otherwise, |granted| granted.iter().any(is_it))
}

fn is_lookup(grant: &LookupGrant, lookup: &Lookup) -> bool {
    let Lookup { kind, all_namespaces, .. } = lookup;
    grant.group == kind.group() && grant.kind == kind.kind && (grant.all_namespaces || !all_namespaces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(children: &[(&str, &str)], lookups: &[(&str, &str, bool)]) -> Manifest {
        let mut manifest = Manifest::new("web", "1", KindRef::new("example.com/v1", "Web"));
        manifest.children = children.iter().map(|(version, kind)| KindRef::new(*version, *kind)).collect();
        let lookup = |(version, kind, all_namespaces): &(&str, &str, bool)| Lookup {
            all_namespaces: *all_namespaces,
            ..KindRef::new(*version, *kind).into()
        };
        manifest.lookups = lookups.iter().map(lookup).collect();
        manifest
    }

    fn children(granted: &[(&str, &str)]) -> Grants {
        let grant = |(group, kind): &(&str, &str)| KindGrant { group: (*group).to_owned(), kind: (*kind).to_owned() };
        Grants::Granted(GrantsSpec { children: Some(granted.iter().map(grant).collect()), ..GrantsSpec::default() })
    }

    fn lookups(granted: &[(&str, bool)]) -> Grants {
        let grant = |(kind, all_namespaces): &(&str, bool)| LookupGrant {
            group: String::new(),
            kind: (*kind).to_owned(),
            all_namespaces: *all_namespaces,
        };
        Grants::Granted(GrantsSpec { lookups: Some(granted.iter().map(grant).collect()), ..GrantsSpec::default() })
    }

    #[test]
    fn a_manifest_may_ask_for_what_is_granted_and_no_more() {
        let default = Grants::Granted(GrantsSpec::default());
        let binding = &[("rbac.authorization.k8s.io/v1", "RoleBinding")][..];
        let (secret, everywhere) = (&[("v1", "Secret", false)][..], &[("v1", "Secret", true)][..]);
        for (grants, manifest, expected) in [
            (&default, manifest(&[("apps/v1", "Deployment"), ("v1", "Secret")], &[("v1", "ConfigMap", true)]), true),
            (&default, manifest(binding, &[]), false),
            (&default, manifest(&[("pilothouse.dev/v1alpha1", "Plugin")], &[]), false),
            (&default, manifest(&[], secret), false),
            (&Grants::AsDeclared, manifest(binding, everywhere), true),
            (&children(&[("apps", "Deployment")]), manifest(&[("apps/v1", "Deployment")], &[]), true),
            (&children(&[("apps", "Deployment")]), manifest(&[("v1", "Service")], &[]), false),
            (&children(&[("", "Deployment")]), manifest(&[("apps/v1", "Deployment")], &[]), false),
            (&children(&[("rbac.authorization.k8s.io", "RoleBinding")]), manifest(binding, &[]), true),
            (&lookups(&[("Secret", false)]), manifest(&[], secret), true),
            (&lookups(&[("Secret", false)]), manifest(&[], everywhere), false),
            (&lookups(&[("Secret", true)]), manifest(&[], everywhere), true),
            (&lookups(&[]), manifest(&[], &[("v1", "ConfigMap", false)]), false),
        ] {
            let result = grants.check(&manifest);
            assert_eq!(result.is_ok(), expected, "{grants:?} {manifest:?}: {result:?}");
            let all = Grants::Granted(Grants::of_manifest(&manifest));
            assert_eq!(all.check(&manifest), Ok(()), "what is made of the manifest grants all of it");
        }
    }

    #[test]
    fn a_refusal_says_what_to_add() {
        let refused = lookups(&[("ConfigMap", true)]).check(&manifest(&[], &[("v1", "Secret", true)]));
        let expected = "its manifest asks to look up v1 Secret, which the Plugin does not grant; to grant it, add \
                        {group: \"\", kind: Secret, allNamespaces: true} to spec.grants.lookups";
        assert_eq!(refused.map_err(|refused| refused.to_string()), Err(expected.to_owned()));
    }
}
