//! An authority as Fulcio is: it says in a certificate of ten minutes who somebody is, and another log says that it did. Asks nobody
//! whether it is true.

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CustomExtension, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SanType, SerialNumber, SigningKey,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use x509_cert::der::{
    Decode, Encode,
    asn1::{OctetString, Utf8StringRef},
};

use super::{base64, key_in_trusted_root};

/// How long a certificate is valid.
const LIFETIME: Duration = Duration::from_secs(600);
/// How long ago certificates were given: what a signature is worth is decided by its time, not by when it is looked at.
const AGE: Duration = Duration::from_secs(3600);
/// The issuer, as Fulcio wrote it first, as text, and as it writes it now, as a string of ASN.1.
const ISSUER: [u64; 9] = [1, 3, 6, 1, 4, 1, 57264, 1, 1];
const ISSUER_V2: [u64; 9] = [1, 3, 6, 1, 4, 1, 57264, 1, 8];
/// The list of what logs said about the certificate.
const TIMESTAMPS: [u64; 10] = [1, 3, 6, 1, 4, 1, 11129, 2, 4, 2];

/// Gives certificates to whoever asks.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: Certificate,
    /// The key of the log that knows its certificates.
    log: KeyPair,
    certified_at: Duration,
}

/// Somebody with a certificate.
pub(super) struct Certified {
    pub key: KeyPair,
    pub certificate: Certificate,
}

impl Authority {
    pub(super) fn new() -> Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "an authority of tests");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        let certified_at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.saturating_sub(AGE);
        let certified_at = Duration::from_secs(certified_at.as_secs());
        Ok(Self { issuer: Issuer::new(params, key), certificate, log: KeyPair::generate()?, certified_at })
    }

    /// When it gave its certificates, since 1970.
    pub(super) fn certified_at(&self) -> Duration {
        self.certified_at
    }

    pub(super) fn in_trusted_root(&self) -> Value {
        json!({
            "subject": {"commonName": "an authority of tests"},
            "uri": "https://authority.example.com",
            "certChain": {"certificates": [{"rawBytes": base64(self.certificate.der())}]},
            "validFor": {"start": "2020-01-01T00:00:00Z"},
        })
    }

    pub(super) fn log_in_trusted_root(&self) -> Value {
        key_in_trusted_root(&self.log)
    }

    /// A certificate for the subject, of whom the issuer says who he is.
    pub(super) fn certify(&self, issuer: &str, subject: &str) -> Result<Certified> {
        let key = KeyPair::generate()?;
        let mut params = self.params(issuer, subject)?;
        // What the log signs is the certificate without the log's word.
        let before = x509_cert::Certificate::from_der(params.signed_by(&key, &self.issuer)?.der())?;
        let timestamps = self.timestamps(&before.tbs_certificate.to_der()?)?;
        let timestamps = OctetString::new(timestamps)?.to_der()?;
        params.custom_extensions.push(CustomExtension::from_oid_content(&TIMESTAMPS, timestamps));
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Certified { key, certificate })
    }

    fn params(&self, issuer: &str, subject: &str) -> Result<CertificateParams> {
        let begin = SystemTime::UNIX_EPOCH + self.certified_at;
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.serial_number = Some(SerialNumber::from(fastrand::u64(1..u64::MAX >> 1)));
        (params.not_before, params.not_after) = (begin.into(), (begin + LIFETIME).into());
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
        params.use_authority_key_identifier_extension = true;
        let name = subject.try_into()?;
        let is_uri = subject.contains("://");
        params.subject_alt_names = vec![if is_uri { SanType::URI(name) } else { SanType::Rfc822Name(name) }];
        params.custom_extensions = vec![
            CustomExtension::from_oid_content(&ISSUER, issuer.as_bytes().to_vec()),
            CustomExtension::from_oid_content(&ISSUER_V2, Utf8StringRef::new(issuer)?.to_der()?),
        ];
        Ok(params)
    }

    /// A list with the word of one log that it knows this part of a certificate: RFC 6962, 3.2 and 3.3.
    fn timestamps(&self, part: &[u8]) -> Result<Vec<u8>> {
        const VERSION_1: u8 = 0;
        const NO_EXTENSIONS: [u8; 2] = [0; 2];
        const ECDSA_WITH_SHA_256: [u8; 2] = [4, 3];
        let at = u64::try_from(self.certified_at.as_millis())?.to_be_bytes();
        let authority = Sha256::digest(self.issuer.key().subject_public_key_info());
        let size = u32::try_from(part.len())?.to_be_bytes();
        // Of a certificate, which is not whole yet.
        let begin = [VERSION_1, 0];
        let signed = [&begin, &at[..], &[0, 1], &authority, &size[1..], part, &NO_EXTENSIONS].concat();
        let signature = self.log.sign(&signed)?;
        let id = Sha256::digest(self.log.subject_public_key_info());
        let signature = sized(&signature)?;
        let timestamp = [&[VERSION_1][..], &id, &at, &NO_EXTENSIONS, &ECDSA_WITH_SHA_256, &signature].concat();
        sized(&sized(&timestamp)?)
    }
}

/// Bytes behind their number.
fn sized(bytes: &[u8]) -> Result<Vec<u8>> {
    let size = u16::try_from(bytes.len()).context("too many bytes")?;
    Ok([&size.to_be_bytes(), bytes].concat())
}
