//! Whether an artifact is signed by somebody who counts. Needs no network: keys are given, and identities are judged by a trusted root.

use regex::Regex;
use serde_json::Value;
use sigstore_verify::{
    CertificateError, Error, Policy, PublicKeyVerificationPolicy, TransparencyLogError, VerificationPolicy,
    VerificationResult, Verifier,
    crypto::VerificationKey,
    trust_root::{SIGSTORE_PRODUCTION_TRUSTED_ROOT, TrustedRoot},
    types::{Bundle, DerPublicKey, DsseEnvelope, Sha256Hash, SignatureContent, Statement},
};

use crate::signatures::{Evidence, Unreadable, sha256};

/// The predicate of the statement that `cosign sign` signs. Other statements about an artifact, such as where it was built, are not
/// signatures of it: they may say that it is bad.
const SIGN_PREDICATE: &str = "https://sigstore.dev/cosign/sign/v1";

/// Who must have signed: one of them is enough.
pub struct Verification {
    verifier: Verifier,
    keys: Vec<DerPublicKey>,
    identities: Vec<Matcher>,
    needs_log: bool,
}

/// Somebody who signs with short-lived certificates for who he is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Who says who he is, such as `https://token.actions.githubusercontent.com`.
    pub issuer: String,
    /// Who he is: an e-mail address or a URI, as a regular expression for the whole of it.
    pub subject: String,
}

struct Matcher {
    identity: Identity,
    subject: Regex,
}

/// Why it cannot be said who must have signed.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// A key cannot be read.
    #[error("key {number} is not a public key as PEM: {why}")]
    Key {
        /// Which, from 1 on.
        number: usize,
        /// Why.
        why: String,
    },
    /// The trusted root cannot be read.
    #[error("not a trusted root of Sigstore: {0}")]
    TrustedRoot(String),
    /// A regular expression cannot be read.
    #[error("the subject '{subject}' is not a regular expression: {why}")]
    Subject {
        /// The expression.
        subject: String,
        /// Why.
        why: String,
    },
    /// Nobody is named.
    #[error("no key and no identity is named that must have signed")]
    Nobody,
}

/// Why a signature does not count.
#[derive(Debug, thiserror::Error)]
pub enum NotCounted {
    /// It is no bundle.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// The trusted root does not vouch for its certificate.
    #[error(
        "its certificate is of no authority that the trusted root names, or was not valid when a log was told of it ({0}); name the trusted \
         root of its Sigstore, or sign anew"
    )]
    NoAuthority(String),
    /// The trusted root does not vouch for its log.
    #[error(
        "no log that the trusted root names has signed that it knows it ({0}); name the trusted root of its Sigstore, or sign anew"
    )]
    NoLog(String),
    /// It was found to be wrong.
    #[error("{0}")]
    Wrong(String),
    /// It is of a kind of bundle that came later.
    #[error("it is a kind of bundle that nobody knows yet")]
    UnknownKind,
    /// What it signs is of a type that is no statement.
    #[error("it is of type {0}, which is no statement")]
    NoStatement(String),
    /// It says something, but does not sign.
    #[error("it is a statement of type {0}, not a signature")]
    OtherStatement(String),
    /// It is about another artifact.
    #[error("it is about something else")]
    OtherArtifact,
    /// Only identities are named.
    #[error("it is of a key, and none is named")]
    NoKeyNamed,
    /// Only keys are named.
    #[error("it is of an identity, and none is named")]
    NoIdentityNamed,
    /// Its certificate has no identity.
    #[error("its certificate names nobody")]
    Nobody,
    /// Somebody else signed.
    #[error("it is of {0}, who is not named")]
    NotNamed(String),
}

/// Why an artifact does not count as signed.
#[derive(Debug, thiserror::Error)]
pub enum NotVerified {
    /// It has no SHA-256.
    #[error("it has no SHA-256: {0}")]
    NoDigest(String),
    /// There is none.
    #[error("it has no signature")]
    Unsigned,
    /// None of them counts. Each with its reason.
    #[error("none of its {} signatures counts: {}", .0.len(), in_words(.0))]
    NoneCounts(Vec<NotCounted>),
}

fn in_words(reasons: &[NotCounted]) -> String {
    reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl Verification {
    /// Who must have signed. Without a trusted root, that of the public Sigstore counts. Where `needs_log` does not hold, signatures
    /// of keys count that no transparency log knows.
    ///
    /// # Errors
    /// [`PolicyError`].
    pub fn new(
        keys: &[String],
        identities: Vec<Identity>,
        trusted_root: Option<&str>,
        needs_log: bool,
    ) -> Result<Self, PolicyError> {
        if keys.is_empty() && identities.is_empty() {
            return Err(PolicyError::Nobody);
        }
        let root = TrustedRoot::from_json(trusted_root.unwrap_or(SIGSTORE_PRODUCTION_TRUSTED_ROOT));
        let verifier = root
            .map_err(|error| error.to_string())
            .and_then(|root| Verifier::new(&root).map_err(|error| error.to_string()));
        let key = |(index, pem): (usize, &String)| {
            DerPublicKey::from_pem(pem).map_err(|error| PolicyError::Key { number: index + 1, why: error.to_string() })
        };
        Ok(Self {
            verifier: verifier.map_err(PolicyError::TrustedRoot)?,
            keys: keys.iter().enumerate().map(key).collect::<Result<_, _>>()?,
            identities: identities.into_iter().map(Matcher::new).collect::<Result<_, _>>()?,
            needs_log,
        })
    }

    /// Whether one of the signatures is that of somebody who counts, about the artifact with this SHA-256 in hexadecimal digits: of its
    /// bytes, or of its manifest in a registry. Says who it is.
    ///
    /// # Errors
    /// [`NotVerified`].
    pub fn verify(&self, digest: &str, evidence: &[Evidence]) -> Result<String, NotVerified> {
        let artifact = Sha256Hash::from_hex(digest).map_err(|error| NotVerified::NoDigest(error.to_string()))?;
        if evidence.is_empty() {
            return Err(NotVerified::Unsigned);
        }
        let mut reasons = Vec::new();
        for evidence in evidence {
            match self.judge(artifact, evidence) {
                Ok(who) => return Ok(who),
                Err(why) => reasons.push(why),
            }
        }
        Err(NotVerified::NoneCounts(reasons))
    }

    fn judge(&self, artifact: Sha256Hash, evidence: &Evidence) -> Result<String, NotCounted> {
        let bundle = evidence.read().map_err(|Unreadable(why)| NotCounted::Unreadable(why))?;
        let signed = match &evidence.payload {
            None => {
                is_signature(&bundle)?;
                artifact
            }
            Some(payload) => {
                names(payload, artifact)?;
                Sha256Hash::new(sha256(payload))
            }
        };
        match bundle.signing_certificate() {
            Some(_) => self.judge_identity(signed, &bundle),
            None => self.judge_key(signed, &bundle),
        }
    }

    fn judge_key(&self, signed: Sha256Hash, bundle: &Bundle) -> Result<String, NotCounted> {
        let mut why = NotCounted::NoKeyNamed;
        for (index, key) in self.keys.iter().enumerate() {
            let judged = match self.needs_log {
                true => self.check(signed, bundle, &PublicKeyVerificationPolicy::new(key.clone())).map(drop),
                false => check_signature(signed, bundle, key),
            };
            match judged {
                Ok(()) => return Ok(format!("key {}", index + 1)),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    fn judge_identity(&self, signed: Sha256Hash, bundle: &Bundle) -> Result<String, NotCounted> {
        if self.identities.is_empty() {
            return Err(NotCounted::NoIdentityNamed);
        }
        let found = self.check(signed, bundle, &VerificationPolicy::any_identity())?;
        // Claims of a certificate count once its chain was verified.
        let (true, Some(subject), Some(issuer)) = (found.certificate_verified(), found.identity(), found.issuer())
        else {
            return Err(NotCounted::Nobody);
        };
        let is_named = self.identities.iter().any(|matcher| matcher.matches(issuer, subject.as_str()));
        let who = format!("{} ({issuer})", subject.as_str());
        if is_named { Ok(who) } else { Err(NotCounted::NotNamed(who)) }
    }

    fn check(
        &self,
        signed: Sha256Hash,
        bundle: &Bundle,
        policy: &dyn Policy,
    ) -> Result<VerificationResult, NotCounted> {
        self.verifier.verify(signed, bundle, policy).map_err(of_sigstore)
    }
}

impl Matcher {
    fn new(identity: Identity) -> Result<Self, PolicyError> {
        let error =
            |error: regex::Error| PolicyError::Subject { subject: identity.subject.clone(), why: error.to_string() };
        // Of the whole subject: a part of it would be anybody's.
        let subject = Regex::new(&format!("^(?:{})$", identity.subject)).map_err(error)?;
        Ok(Self { identity, subject })
    }

    fn matches(&self, issuer: &str, subject: &str) -> bool {
        self.identity.issuer == issuer && self.subject.is_match(subject)
    }
}

/// Whether a bundle has a signature by this key, whatever a log or a clock say.
fn check_signature(signed: Sha256Hash, bundle: &Bundle, key: &DerPublicKey) -> Result<(), NotCounted> {
    let key = VerificationKey::from_spki(key).map_err(wrong)?;
    match &bundle.content {
        SignatureContent::MessageSignature(message) => {
            key.verify_prehashed(signed.as_bytes(), &message.signature).map_err(wrong)
        }
        SignatureContent::DsseEnvelope(envelope) => {
            if !statement(envelope)?.matches_sha256(&signed) {
                return Err(NotCounted::OtherArtifact);
            }
            key.verify(envelope.pae(), &envelope.signature.sig).map_err(wrong)
        }
        _ => Err(NotCounted::UnknownKind),
    }
}

/// In words that say what to do, where somebody can do something about it.
fn of_sigstore(error: Error) -> NotCounted {
    match error {
        Error::ArtifactMismatch(_) => NotCounted::OtherArtifact,
        Error::Certificate(CertificateError::ChainInvalid(why)) => NotCounted::NoAuthority(why),
        Error::Certificate(why @ CertificateError::NoValidAuthority { .. }) => NotCounted::NoAuthority(why.to_string()),
        Error::TransparencyLog(
            TransparencyLogError::InclusionPromise(why)
            | TransparencyLogError::Checkpoint(why)
            | TransparencyLogError::UnknownLog { log_id: why },
        ) => NotCounted::NoLog(why),
        error => wrong(error),
    }
}

fn wrong(error: impl std::error::Error) -> NotCounted {
    NotCounted::Wrong(error.to_string())
}

fn statement(envelope: &DsseEnvelope) -> Result<Statement, NotCounted> {
    if envelope.payload_type != "application/vnd.in-toto+json" {
        return Err(NotCounted::NoStatement(envelope.payload_type.clone()));
    }
    serde_json::from_slice(envelope.payload.as_bytes()).map_err(wrong)
}

/// Whether a bundle is a signature and no other statement.
fn is_signature(bundle: &Bundle) -> Result<(), NotCounted> {
    let SignatureContent::DsseEnvelope(envelope) = &bundle.content else { return Ok(()) };
    let statement = statement(envelope)?;
    if statement.predicate_type == SIGN_PREDICATE {
        return Ok(());
    }
    Err(NotCounted::OtherStatement(statement.predicate_type))
}

/// Whether the text that cosign 2 signs names this manifest.
fn names(payload: &[u8], manifest: Sha256Hash) -> Result<(), NotCounted> {
    let payload: Value = serde_json::from_slice(payload).map_err(wrong)?;
    let critical = &payload["critical"];
    let is_about =
        critical["image"]["docker-manifest-digest"].as_str() == Some(&format!("sha256:{}", manifest.to_hex()));
    match critical["type"].as_str() == Some("cosign container image signature") && is_about {
        true => Ok(()),
        false => Err(NotCounted::OtherArtifact),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::CosignSignature;

    const KEY: &str = include_str!("../fixtures/key.pub");
    /// The digests of what was signed.
    const BLOB: &str = "626d0ce33ca550dc06351c3ea7b698be557ff5d35bf25edc44221b561838594c";
    const IMAGE: &str = "91deae9e17f2403078f66f19ebb651d90042cebc01f563300dc6339dcdff5f6e";

    fn blob() -> Evidence {
        Evidence::bundle(include_bytes!("../fixtures/blob.sigstore.json").to_vec())
    }

    fn image() -> Evidence {
        Evidence::bundle(include_bytes!("../fixtures/image.sigstore.json").to_vec())
    }

    fn image_of_cosign_2(payload: &[u8]) -> Option<Evidence> {
        let annotations: Value = serde_json::from_str(include_str!("../fixtures/image.cosign2.json")).ok()?;
        let signature = annotations["dev.cosignproject.cosign/signature"].as_str()?.to_owned();
        Evidence::cosign(&CosignSignature { signature, certificate: None, log_entry: None }, payload.to_vec())
    }

    fn judged(needs_log: bool, digest: &str, evidence: &[Evidence]) -> Result<String, String> {
        let verification = Verification::new(&[KEY.to_owned()], Vec::new(), None, needs_log);
        verification.map_err(|error| error.to_string())?.verify(digest, evidence).map_err(|error| error.to_string())
    }

    #[test]
    fn what_cosign_signed_counts_for_what_it_signed_and_nothing_else() {
        const PAYLOAD: &[u8] = include_bytes!("../fixtures/image.cosign2.payload");
        let cosign_2: Vec<_> = image_of_cosign_2(PAYLOAD).into_iter().collect();
        for (what, signed, evidence) in [
            ("a blob", BLOB, vec![blob()]),
            ("an image", IMAGE, vec![image()]),
            ("an image of cosign 2", IMAGE, cosign_2),
        ] {
            assert_eq!(judged(false, signed, &evidence), Ok("key 1".to_owned()), "{what}");
            for (needs_log, digest) in [(true, signed), (false, if signed == BLOB { IMAGE } else { BLOB })] {
                assert!(judged(needs_log, digest, &evidence).is_err(), "{what}, log: {needs_log}, {digest}");
            }
        }
        // One that counts is enough, wherever it stands.
        assert_eq!(judged(false, BLOB, &[image(), Evidence::bundle(b"{}".to_vec()), blob()]), Ok("key 1".to_owned()));
        assert!(judged(false, BLOB, &[]).is_err_and(|error| error.contains("no signature")));
    }

    #[test]
    fn a_payload_that_somebody_changed_does_not_count() {
        let changed = String::from_utf8_lossy(include_bytes!("../fixtures/image.cosign2.payload")).replace(IMAGE, BLOB);
        let evidence: Vec<_> = image_of_cosign_2(changed.as_bytes()).into_iter().collect();
        assert!(evidence.len() == 1 && judged(false, BLOB, &evidence).is_err());
    }

    #[test]
    fn a_statement_that_is_no_signature_does_not_count() {
        let text = include_str!("../fixtures/image.sigstore.json");
        let Ok(mut bundle) = serde_json::from_str::<Value>(text) else { unreachable!("the fixture is JSON") };
        let statement = serde_json::json!({
            "_type": "https://in-toto.io/Statement/v1", "predicateType": "https://slsa.dev/provenance/v1", "predicate": {},
            "subject": [{"digest": {"sha256": IMAGE}}],
        });
        bundle["dsseEnvelope"]["payload"] =
            base64::Engine::encode(&base64::prelude::BASE64_STANDARD, statement.to_string()).into();
        let judged = judged(false, IMAGE, &[Evidence::bundle(bundle.to_string().into_bytes())]);
        assert!(judged.as_ref().is_err_and(|error| error.contains("not a signature")), "{judged:?}");
    }

    #[test]
    fn who_must_have_signed_is_said_well_or_not_at_all() {
        let identity = |subject: &str| Identity { issuer: "https://issuer".to_owned(), subject: subject.to_owned() };
        for (keys, identities, root, words) in [
            (vec![], vec![], None, "no key and no identity"),
            (vec!["text".to_owned()], vec![], None, "key 1"),
            (vec![KEY.to_owned(), String::new()], vec![], None, "key 2"),
            (vec![], vec![identity("(")], None, "'('"),
            (vec![KEY.to_owned()], vec![], Some("{}"), "trusted root"),
        ] {
            let error = Verification::new(&keys, identities, root, true).err().map(|error| error.to_string());
            assert!(error.as_ref().is_some_and(|error| error.contains(words)), "{words}: {error:?}");
        }
    }

    #[test]
    fn a_subject_is_matched_as_a_whole() {
        let matcher = |subject: &str| {
            Matcher::new(Identity { issuer: "https://issuer".to_owned(), subject: subject.to_owned() })
                .unwrap_or_else(|error| unreachable!("{error}"))
        };
        for (pattern, issuer, subject, expected) in [
            (r"me@example\.com", "https://issuer", "me@example.com", true),
            (r"me@example\.com", "https://issuer", "not-me@example.com", false),
            (r"me@example\.com", "https://issuer", "me@example.com.evil.org", false),
            (r"a|me@example\.com", "https://issuer", "not-me@example.com", false),
            (r"me@example\.com", "https://other", "me@example.com", false),
        ] {
            assert_eq!(matcher(pattern).matches(issuer, subject), expected, "{pattern} {issuer} {subject}");
        }
    }
}
