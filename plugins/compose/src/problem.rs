//! What is wrong with a composition: where, what, and what to write instead.

/// The path of a place in the configuration, as its author reads it: `resources[1].template.spec.replicas`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(String);

impl Path {
    /// The path of a field at the top.
    pub fn of(field: &str) -> Self {
        Self(field.to_owned())
    }

    /// The path of a field below.
    pub fn field(&self, field: &str) -> Self {
        let is_plain = !field.is_empty() && field.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
        match is_plain {
            true if self.0.is_empty() => Self(field.to_owned()),
            true => Self(format!("{}.{field}", self.0)),
            false => Self(format!("{}[\"{field}\"]", self.0)),
        }
    }

    /// The path of an element below.
    pub fn element(&self, place: usize) -> Self {
        Self(format!("{}[{place}]", self.0))
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is wrong with a composition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub path: Path,
    /// What, and what to write instead.
    pub what: String,
}

impl Problem {
    /// Something that is wrong at a place.
    pub fn at(path: &Path, what: impl Into<String>) -> Self {
        Self { path: path.clone(), what: what.into() }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.path.0.is_empty() {
            true => write!(f, "{}", self.what),
            false => write!(f, "{}: {}", self.path, self.what),
        }
    }
}

/// The name that somebody may have meant; none if nothing is near.
pub fn meant<'n>(written: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let near = names.into_iter().map(|name| (distance(written, name), name));
    let most = 1 + written.chars().count() / 4;
    near.filter(|(distance, _)| *distance <= most).min().map(|(_, name)| name)
}

/// How many letters have to be changed, added or left out.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<_> = other.chars().flat_map(char::to_lowercase).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, letter) in one.chars().flat_map(char::to_lowercase).enumerate() {
        let mut diagonal = above;
        let mut left = above + 1;
        for (cell, theirs) in row.iter_mut().skip(1).zip(&other) {
            let replaced = diagonal + usize::from(letter != *theirs);
            diagonal = *cell;
            left = replaced.min(left + 1).min(*cell + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = above + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_meant() {
        let names = ["schema", "deployment", "service"];
        for (written, expected) in [
            ("shema", Some("schema")),
            ("Schema", Some("schema")),
            ("deploymnet", Some("deployment")),
            ("object", None),
            ("svc", None),
        ] {
            assert_eq!(meant(written, names), expected, "{written}");
        }
    }
}
