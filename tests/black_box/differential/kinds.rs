//! What the objects of each kind can have, read from `fields.txt`. Chooses nothing.

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The table.
const TABLE: &str = include_str!("fields.txt");

/// A kind with its fields.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The word in paths.
    pub plural: String,
    /// What every object has.
    pub base: Value,
    /// What objects can have.
    pub fields: Vec<Field>,
}

/// A field with values for it.
#[derive(Clone, Debug)]
pub struct Field {
    /// How likely it is, in percent.
    pub percent: u32,
    /// Whether it is written through the status.
    pub of_status: bool,
    /// Where it is, as a JSON pointer.
    pub pointer: String,
    /// The values.
    pub values: Vec<Value>,
}

/// The kinds of the table.
///
/// # Errors
/// If a line of it cannot be read.
pub fn kinds() -> Result<Vec<Kind>> {
    let mut kinds: Vec<Kind> = Vec::new();
    for line in TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        read(line, &mut kinds).with_context(|| format!("the table has a line that cannot be read: {line}"))?;
    }
    let common = kinds.remove(0).fields;
    for kind in &mut kinds {
        kind.fields.splice(0..0, common.iter().cloned());
    }
    Ok(kinds)
}

fn read(line: &str, kinds: &mut Vec<Kind>) -> Result<()> {
    let (word, rest) = line.split_once(' ').context("one word")?;
    if word == "kind" {
        let words: Vec<_> = rest.split(' ').map(str::to_owned).collect();
        let [api_version, kind, plural] = words.as_slice() else { bail!("a kind has three words") };
        let (api_version, kind, plural) = (api_version.clone(), kind.clone(), plural.clone());
        kinds.push(Kind { api_version, kind, plural, base: Value::Object(serde_json::Map::new()), fields: Vec::new() });
        return Ok(());
    }
    let kind = kinds.last_mut().context("a field before the first kind")?;
    if word == "base" {
        kind.base = serde_json::from_str(rest)?;
        return Ok(());
    }
    let (percent, of_status) = word.strip_suffix('s').map_or((word, false), |percent| (percent, true));
    let (pointer, values) = rest.split_once(' ').context("a field without values")?;
    let values = serde_json::Deserializer::from_str(values).into_iter().collect::<Result<_, _>>()?;
    kind.fields.push(Field { percent: percent.parse()?, of_status, pointer: pointer.to_owned(), values });
    Ok(())
}

impl Kind {
    /// The path of the objects in a namespace.
    pub fn path(&self, namespace: &str) -> String {
        let root = if self.api_version.contains('/') { "apis" } else { "api" };
        format!("/{root}/{}/namespaces/{namespace}/{}", self.api_version, self.plural)
    }

    /// The fields that are written through the object or through its status.
    pub fn fields_of(&self, status: bool) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(move |field| field.of_status == status)
    }
}
