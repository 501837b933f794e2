//! A log of signatures as Rekor is: it signs when it was told of one, and that it is among the others. Keeps none of them.

use anyhow::Result;
use rcgen::{KeyPair, PublicKeyData, SigningKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{base64, hex, key_in_trusted_root};

const NAME: &str = "log.example.com";

/// Says when it was told of a signature.
pub struct Log {
    key: KeyPair,
    id: Vec<u8>,
}

/// What it is told.
pub(super) struct Logged<'a> {
    pub body: &'a Value,
    /// Seconds since 1970.
    pub time: u64,
}

/// What it says of it.
pub(super) struct Entry {
    body: String,
    kind: Value,
    time: u64,
    log_id: Vec<u8>,
    promise: String,
    /// The hash of the only other entry.
    other: [u8; 32],
    root: [u8; 32],
    checkpoint: String,
}

impl Log {
    pub(super) fn new() -> Result<Self> {
        let key = KeyPair::generate()?;
        let id = Sha256::digest(key.subject_public_key_info()).to_vec();
        Ok(Self { key, id })
    }

    pub(super) fn in_trusted_root(&self) -> Value {
        key_in_trusted_root(&self.key)
    }

    /// The second entry of a log with two.
    pub(super) fn enter(&self, logged: &Logged<'_>) -> Result<Entry> {
        let body = logged.body.to_string();
        let other = leaf(b"the first entry");
        let root = node(&other, &leaf(body.as_bytes()));
        let kind = json!({"kind": logged.body["kind"], "version": logged.body["apiVersion"]});
        let body = base64(body.as_bytes());
        let (time, id) = (logged.time, hex(&self.id));
        // As RFC 8785 has it, which is what is signed.
        let promised = format!(r#"{{"body":"{body}","integratedTime":{time},"logID":"{id}","logIndex":1}}"#);
        let promise = base64(&self.key.sign(promised.as_bytes())?);
        let checkpoint = self.checkpoint(&root)?;
        Ok(Entry { body, kind, time, log_id: self.id.clone(), promise, other, root, checkpoint })
    }

    /// A signed note about the tree.
    fn checkpoint(&self, root: &[u8; 32]) -> Result<String> {
        let note = format!("{NAME}\n2\n{}\n", base64(root));
        let signature = [&self.id[..4], &self.key.sign(note.as_bytes())?].concat();
        Ok(format!("{note}\n\u{2014} {NAME} {}\n", base64(&signature)))
    }
}

impl Entry {
    /// As a bundle has it.
    pub(super) fn in_bundle(&self) -> Value {
        json!({
            "logIndex": "1",
            "logId": {"keyId": base64(&self.log_id)},
            "kindVersion": self.kind,
            "integratedTime": self.time.to_string(),
            "inclusionPromise": {"signedEntryTimestamp": self.promise},
            "inclusionProof": {
                "logIndex": "1",
                "treeSize": "2",
                "rootHash": base64(&self.root),
                "hashes": [base64(&self.other)],
                "checkpoint": {"envelope": self.checkpoint},
            },
            "canonicalizedBody": self.body,
        })
    }

    /// As cosign 2 writes it.
    pub(super) fn as_annotation(&self) -> Value {
        json!({
            "SignedEntryTimestamp": self.promise,
            "Payload": {"body": self.body, "integratedTime": self.time, "logIndex": 1, "logID": hex(&self.log_id)},
        })
    }
}

/// RFC 6962, 2.1.
fn leaf(entry: &[u8]) -> [u8; 32] {
    Sha256::new().chain_update([0]).chain_update(entry).finalize().into()
}

fn node(left: &[u8; 32], right: &[u8; 32]) -> [u8; 32] {
    Sha256::new().chain_update([1]).chain_update(left).chain_update(right).finalize().into()
}
