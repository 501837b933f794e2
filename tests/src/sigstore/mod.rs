//! A Sigstore of one's own: signatures without keys, as cosign makes them, and the trusted root to judge them by. Everything happens
//! in this process, and nothing is remembered between two signatures.

mod authority;
mod log;

use std::time::Duration;

use anyhow::Result;
use base64::{Engine, prelude::BASE64_STANDARD};
use rcgen::SigningKey;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

pub use self::{authority::Authority, log::Log};
use self::{
    authority::Certified,
    log::{Entry, Logged},
};

const STATEMENT: &str = "application/vnd.in-toto+json";

/// Who says who somebody is, and when a log has seen the signature.
pub struct Sigstore {
    /// Gives certificates.
    pub authority: Authority,
    /// Knows signatures.
    pub log: Log,
}

/// A signature that is to be made.
#[derive(Clone, Copy)]
pub struct Signing<'a> {
    /// Who gives the certificate.
    pub authority: &'a Authority,
    /// Which log is told.
    pub log: &'a Log,
    /// Who says who the signer is.
    pub issuer: &'a str,
    /// Who the signer is: a URI, or an e-mail address.
    pub subject: &'a str,
    /// How long after the certificate was given the log is told. It is valid for ten minutes, and was given an hour ago.
    pub logged_after: Duration,
}

/// A signature as cosign 2 puts it beside an artifact in a registry: a layer, and its annotations.
pub struct Layer {
    /// What is signed.
    pub payload: Vec<u8>,
    /// The signature, the certificate and the entry of the log.
    pub annotations: Value,
}

impl Sigstore {
    /// A new one, which nobody trusts yet.
    ///
    /// # Errors
    /// If there are no keys.
    pub fn new() -> Result<Self> {
        Ok(Self { authority: Authority::new()?, log: Log::new()? })
    }

    /// What those have who trust it: `trusted_root.json`.
    pub fn trusted_root(&self) -> Value {
        json!({
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [self.log.in_trusted_root()],
            "certificateAuthorities": [self.authority.in_trusted_root()],
            "ctlogs": [self.authority.log_in_trusted_root()],
            "timestampAuthorities": [],
        })
    }

    /// A signature of somebody whom it knows, told to the log in time.
    pub fn signing<'a>(&'a self, issuer: &'a str, subject: &'a str) -> Signing<'a> {
        let (authority, log) = (&self.authority, &self.log);
        Signing { authority, log, issuer, subject, logged_after: Duration::from_secs(60) }
    }
}

impl Signing<'_> {
    /// The bundle that `cosign sign-blob --bundle` writes.
    ///
    /// # Errors
    /// If it cannot be signed.
    pub fn blob(&self, bytes: &[u8]) -> Result<Value> {
        let signer = self.signer()?;
        let signature = signer.key.sign(bytes)?;
        let entry = self.record(&signer, bytes, &signature)?;
        let content = json!({
            "messageDigest": {"algorithm": "SHA2_256", "digest": base64(&Sha256::digest(bytes))},
            "signature": base64(&signature),
        });
        Ok(bundle(&signer, &entry, "messageSignature", content))
    }

    /// The bundle that `cosign sign` of version 3 writes about the artifact with this manifest.
    ///
    /// # Errors
    /// If it cannot be signed.
    pub fn image(&self, manifest_digest: &str) -> Result<Value> {
        let signer = self.signer()?;
        let payload = json!({
            "_type": "https://in-toto.io/Statement/v1",
            "predicateType": "https://sigstore.dev/cosign/sign/v1",
            "predicate": {},
            "subject": [{"digest": {"sha256": manifest_digest.trim_start_matches("sha256:")}}],
        })
        .to_string();
        let to_be_signed = format!("DSSEv1 {} {STATEMENT} {} {payload}", STATEMENT.len(), payload.len());
        let signature = base64(&signer.key.sign(to_be_signed.as_bytes())?);
        let payload_in_base64 = base64(payload.as_bytes());
        let content =
            json!({"payload": payload_in_base64, "payloadType": STATEMENT, "signatures": [{"sig": &signature}]});
        let entry = self.enter(&json!({
            "apiVersion": "0.0.1",
            "kind": "dsse",
            "spec": {
                "envelopeHash": {"algorithm": "sha256", "value": hex(&Sha256::digest(content.to_string()))},
                "payloadHash": {"algorithm": "sha256", "value": hex(&Sha256::digest(&payload))},
                "signatures": [{"signature": signature, "verifier": base64(signer.certificate.pem().as_bytes())}],
            },
        }))?;
        Ok(bundle(&signer, &entry, "dsseEnvelope", content))
    }

    /// What `cosign sign` of version 2 writes about the artifact with this manifest.
    ///
    /// # Errors
    /// If it cannot be signed.
    pub fn image_in_form_of_cosign_2(&self, manifest_digest: &str) -> Result<Layer> {
        let signer = self.signer()?;
        let payload = json!({
            "critical": {
                "identity": {"docker-reference": "registry.example.com/web"},
                "image": {"docker-manifest-digest": manifest_digest},
                "type": "cosign container image signature",
            },
            "optional": null,
        })
        .to_string();
        let signature = signer.key.sign(payload.as_bytes())?;
        let entry = self.record(&signer, payload.as_bytes(), &signature)?;
        let annotations = json!({
            "dev.cosignproject.cosign/signature": base64(&signature),
            "dev.sigstore.cosign/certificate": signer.certificate.pem(),
            "dev.sigstore.cosign/bundle": entry.as_annotation().to_string(),
        });
        Ok(Layer { payload: payload.into_bytes(), annotations })
    }

    fn signer(&self) -> Result<Certified> {
        self.authority.certify(self.issuer, self.subject)
    }

    /// Tells the log of a signature of these bytes.
    fn record(&self, signer: &Certified, bytes: &[u8], signature: &[u8]) -> Result<Entry> {
        let certificate = base64(signer.certificate.pem().as_bytes());
        self.enter(&json!({
            "apiVersion": "0.0.1",
            "kind": "hashedrekord",
            "spec": {
                "data": {"hash": {"algorithm": "sha256", "value": hex(&Sha256::digest(bytes))}},
                "signature": {"content": base64(signature), "publicKey": {"content": certificate}},
            },
        }))
    }

    fn enter(&self, body: &Value) -> Result<Entry> {
        let time = self.authority.certified_at() + self.logged_after;
        self.log.enter(&Logged { body, time: time.as_secs() })
    }
}

fn bundle(signer: &Certified, entry: &Entry, kind: &str, content: Value) -> Value {
    json!({
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "verificationMaterial": {
            "certificate": {"rawBytes": base64(signer.certificate.der())},
            "tlogEntries": [entry.in_bundle()],
        },
        kind: content,
    })
}

/// A key in a trusted root, which counts from long ago on.
fn key_in_trusted_root(key: &rcgen::KeyPair) -> Value {
    let key = rcgen::PublicKeyData::subject_public_key_info(key);
    json!({
        "baseUrl": "https://log.example.com",
        "hashAlgorithm": "SHA2_256",
        "publicKey": {
            "rawBytes": base64(&key),
            "keyDetails": "PKIX_ECDSA_P256_SHA_256",
            "validFor": {"start": "2020-01-01T00:00:00Z"},
        },
        "logId": {"keyId": base64(&Sha256::digest(&key))},
    })
}

fn base64(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
