//! Signatures as they lie beside an artifact, brought into one form: a Sigstore bundle, and what it must be about. Verifies nothing.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sigstore_verify::types::Bundle;

use crate::layout::CosignSignature;

/// A signature, not yet verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// A Sigstore bundle as JSON. Anybody may have written it.
    json: Vec<u8>,
    /// What it must be about where it is not about the artifact itself: a text that names the digest of the artifact's manifest.
    pub(crate) payload: Option<Vec<u8>>,
}

/// Why a bundle cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unreadable(pub(crate) String);

impl Evidence {
    /// A Sigstore bundle as JSON, as `cosign sign-blob --bundle` writes it.
    pub fn bundle(json: Vec<u8>) -> Self {
        Self { json, payload: None }
    }

    /// What cosign 2 writes under a tag of its own: a signature of `payload`, which names the manifest. None if it is damaged.
    pub(crate) fn cosign(signature: &CosignSignature, payload: Vec<u8>) -> Option<Self> {
        let json = bundle_of(signature, &payload)?.to_string().into_bytes();
        Some(Self { json, payload: Some(payload) })
    }

    /// The bundle.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub(crate) fn read(&self) -> Result<Bundle, Unreadable> {
        let json = std::str::from_utf8(&self.json).map_err(|error| Unreadable(error.to_string()))?;
        Bundle::from_json(json).map_err(|error| Unreadable(error.to_string()))
    }
}

/// The bundle that says the same as the annotations of cosign 2.
fn bundle_of(signature: &CosignSignature, payload: &[u8]) -> Option<Value> {
    let material = match &signature.certificate {
        Some(pem) => json!({"x509CertificateChain": {"certificates": [{"rawBytes": der_of(pem)}]}}),
        None => json!({"publicKey": {"hint": ""}}),
    };
    let mut bundle = json!({
        "mediaType": "application/vnd.dev.sigstore.bundle+json;version=0.1",
        "verificationMaterial": material,
        "messageSignature": {
            "messageDigest": {"algorithm": "SHA2_256", "digest": BASE64_STANDARD.encode(sha256(payload))},
            "signature": signature.signature,
        },
    });
    let entries = match &signature.log_entry {
        Some(annotation) => vec![log_entry(annotation)?],
        None => Vec::new(),
    };
    bundle["verificationMaterial"]["tlogEntries"] = entries.into();
    Some(bundle)
}

/// The entry of a transparency log: in the annotation it is called a bundle as well.
fn log_entry(annotation: &str) -> Option<Value> {
    let entry: Value = serde_json::from_str(annotation).ok()?;
    let payload = &entry["Payload"];
    let body = payload["body"].as_str()?;
    let about: Value = serde_json::from_slice(&BASE64_STANDARD.decode(body).ok()?).ok()?;
    Some(json!({
        "logIndex": payload["logIndex"].to_string(),
        "logId": {"keyId": BASE64_STANDARD.encode(bytes_of_hex(payload["logID"].as_str()?)?)},
        "kindVersion": {"kind": about["kind"], "version": about["apiVersion"]},
        "integratedTime": payload["integratedTime"].to_string(),
        "inclusionPromise": {"signedEntryTimestamp": entry["SignedEntryTimestamp"]},
        "canonicalizedBody": body,
    }))
}

/// The bytes of a PEM text, in base64 without line breaks.
fn der_of(pem: &str) -> String {
    pem.lines().filter(|line| !line.starts_with("-----")).collect()
}

fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    text.as_bytes().chunks(2).map(byte).collect()
}

pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    use sha2::Digest;
    sha2::Sha256::digest(bytes).into()
}
