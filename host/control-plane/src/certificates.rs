//! Keys and certificates: an authority of our own, one serving certificate for every part that speaks TLS, and the
//! key that signs service account tokens. Made once per directory; keys never leave it.

use crate::layout::{Layout, write_private};
use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

/// The first address of the service range, which the API server gives to the Service `kubernetes`.
const SERVICE_ADDRESS: &str = "10.0.0.1";

/// Writes `ca.crt`, `serving.crt`, `serving.key`, `accounts.key` and `accounts.pub` unless they are there.
pub(crate) fn ensure(layout: &Layout) -> Result<()> {
    // Written last, so its presence means that all are there.
    if layout.pki("accounts.pub").exists() {
        return Ok(());
    }
    write_serving(layout)?;
    let accounts = KeyPair::generate()?;
    write_private(&layout.pki("accounts.key"), &accounts.serialize_pem())?;
    write_private(&layout.pki("accounts.pub"), &accounts.public_key_pem())
}

/// The authority's own key is not written: nothing else will ever be signed by it.
fn write_serving(layout: &Layout) -> Result<()> {
    let authority_key = KeyPair::generate()?;
    let authority = authority_parameters()?;
    write_private(&layout.pki("ca.crt"), &authority.self_signed(&authority_key)?.pem())?;

    let key = KeyPair::generate()?;
    let certificate = serving_parameters()?.signed_by(&key, &Issuer::new(authority, authority_key))?;
    write_private(&layout.pki("serving.crt"), &certificate.pem())?;
    write_private(&layout.pki("serving.key"), &key.serialize_pem())
}

fn authority_parameters() -> Result<CertificateParams> {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name.push(DnType::CommonName, "pilothouse test authority");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(parameters)
}

fn serving_parameters() -> Result<CertificateParams> {
    let names = ["localhost", "127.0.0.1", SERVICE_ADDRESS, "kubernetes.default", "kubernetes.default.svc"];
    let mut parameters = CertificateParams::new(names.map(String::from).to_vec())?;
    parameters.distinguished_name.push(DnType::CommonName, "pilothouse test control plane");
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    parameters.use_authority_key_identifier_extension = true;
    Ok(parameters)
}
