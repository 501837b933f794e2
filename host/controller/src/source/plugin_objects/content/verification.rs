//! Whether somebody who counts has signed a component.

use pilothouse_artifact::{Identity, Verification};

use super::{
    component::{Fetched, Origin},
    error::ContentError,
    host_namespace::HostNamespace,
};
use crate::api::{TransparencyLog, VerificationSpec};

/// The key of a trusted root in a ConfigMap, as `cosign trusted-root create` and TUF name it.
const TRUSTED_ROOT: &str = "trusted_root.json";

/// Judges the signatures of a component with this digest.
///
/// # Errors
/// [`ContentError`]: none of them counts, or it cannot be said.
pub(super) async fn verify(
    namespace: &HostNamespace,
    spec: &VerificationSpec,
    fetched: &Fetched,
    digest: &str,
) -> Result<(), ContentError> {
    let trusted_root = match &spec.trusted_root_config_map_name {
        Some(name) => Some(namespace.text(name, TRUSTED_ROOT).await?),
        None => None,
    };
    let identities = spec
        .identities
        .iter()
        .map(|identity| Identity { issuer: identity.issuer.clone(), subject: identity.subject.clone() });
    let needs_log = spec.transparency_log == TransparencyLog::Require;
    let verification = Verification::new(&spec.keys, identities.collect(), trusted_root.as_deref(), needs_log)?;
    let signed = match &fetched.origin {
        Origin::Bytes => digest,
        Origin::Manifest(digest) => digest.trim_start_matches("sha256:"),
    };
    let who = verification.verify(signed, &fetched.evidence)?;
    tracing::info!(digest, "the component is signed by {who}");
    Ok(())
}
