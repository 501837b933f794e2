//! The users that the API server knows, each by a random token. Authorization is plain RBAC, so all of them but the
//! administrator may do nothing until a test binds a role to them.

use crate::layout::{Layout, write_private};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;

/// The user that may do everything (group `system:masters`).
pub const ADMIN: &str = "admin";
/// A user that may do nothing but what every authenticated user may.
pub const RESTRICTED: &str = "restricted";

/// Somebody who can log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Name, as in role bindings and the audit log. Lower-case letters, digits and dashes.
    pub name: String,
    /// Groups, as in role bindings.
    pub groups: Vec<String>,
}

impl User {
    /// A user by name and groups.
    pub fn new(name: &str, groups: &[&str]) -> Self {
        User { name: name.into(), groups: groups.iter().map(|group| (*group).into()).collect() }
    }
}

/// Writes the token file for the two standing users and `more`, and gives the token of each. Tokens already handed
/// out stay valid, so that a repaired control plane is reached by the same kubeconfigs.
pub(crate) fn write_tokens(layout: &Layout, more: &[User]) -> Result<BTreeMap<String, String>> {
    let mut tokens = read_tokens(layout)?;
    let mut lines = String::new();
    for user in standing().iter().chain(more) {
        check_name(&user.name)?;
        if !tokens.contains_key(&user.name) {
            tokens.insert(user.name.clone(), random_token()?);
        }
        let (name, token) = (&user.name, &tokens[&user.name]);
        lines += &format!("{token},{name},{name},\"{}\"\n", user.groups.join(","));
    }
    write_private(&layout.tokens(), &lines)?;
    tokens.retain(|name, _| standing().iter().chain(more).any(|user| &user.name == name));
    Ok(tokens)
}

fn standing() -> [User; 2] {
    [User::new(ADMIN, &["system:masters"]), User::new(RESTRICTED, &[])]
}

fn read_tokens(layout: &Layout) -> Result<BTreeMap<String, String>> {
    if !layout.tokens().exists() {
        return Ok(BTreeMap::new());
    }
    let text = fs::read_to_string(layout.tokens())?;
    Ok(text.lines().filter_map(token_and_name).map(|(token, name)| (name.into(), token.into())).collect())
}

fn token_and_name(line: &str) -> Option<(&str, &str)> {
    let mut fields = line.split(',');
    Some((fields.next()?, fields.next()?))
}

/// The name becomes part of a file name and of a line of comma-separated values.
fn check_name(name: &str) -> Result<()> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || !name.chars().all(good) {
        bail!("user name {name:?}: only lower-case letters, digits and dashes");
    }
    Ok(())
}

fn random_token() -> Result<String> {
    let mut bytes = [0u8; 24];
    File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes)).context("no randomness")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
