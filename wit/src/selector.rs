//! Label selectors in the notation of `kubectl -l`: `app=web,tier in (a, b),!legacy`. Parses and matches; makes no request.

/// A label selector. Labels match if they satisfy all requirements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector(Vec<Requirement>);

/// One requirement on a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// The label has one of these values.
    In(String, Vec<String>),
    /// The label is missing or has none of these values.
    NotIn(String, Vec<String>),
    /// There is such a label.
    Exists(String),
    /// There is no such label.
    Absent(String),
}

/// A requirement that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the requirement '{0}' of the label selector is malformed")]
pub struct MalformedRequirement(String);

impl Selector {
    /// Parses a selector. The empty text selects everything.
    ///
    /// # Errors
    /// [`MalformedRequirement`] for the first one.
    pub fn parse(text: &str) -> Result<Self, MalformedRequirement> {
        let parts = split(text).into_iter().map(str::trim).filter(|part| !part.is_empty());
        parts.map(Requirement::parse).collect::<Result<_, _>>().map(Self)
    }

    /// Whether labels satisfy every requirement. As in Kubernetes, a missing label satisfies `!=` and `notin`.
    ///
    /// `value` gives the value of the label with a key.
    pub fn matches<'l>(&self, value: impl Fn(&str) -> Option<&'l str>) -> bool {
        self.0.iter().all(|requirement| requirement.matches(&value))
    }
}

impl FromIterator<Requirement> for Selector {
    fn from_iter<I: IntoIterator<Item = Requirement>>(requirements: I) -> Self {
        Self(requirements.into_iter().collect())
    }
}

impl Requirement {
    fn parse(text: &str) -> Result<Self, MalformedRequirement> {
        let malformed = || MalformedRequirement(text.to_owned());
        let word = |text: &str| {
            let text = text.trim();
            let plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./".contains(&b));
            plain.then(|| text.to_owned()).ok_or_else(malformed)
        };
        let key = |text: &str| word(text).and_then(|key| if key.is_empty() { Err(malformed()) } else { Ok(key) });
        if let Some(absent) = text.strip_prefix('!') {
            return key(absent).map(Self::Absent);
        }
        if let Some((head, values)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
            let values = values.split(',').map(word).collect::<Result<Vec<_>, _>>()?;
            return match head.split_whitespace().collect::<Vec<_>>()[..] {
                [name, "in"] => Ok(Self::In(key(name)?, values)),
                [name, "notin"] => Ok(Self::NotIn(key(name)?, values)),
                _ => Err(malformed()),
            };
        }
        if let Some((name, value)) = text.split_once("!=") {
            return Ok(Self::NotIn(key(name)?, vec![word(value)?]));
        }
        match text.split_once("==").or_else(|| text.split_once('=')) {
            Some((name, value)) => Ok(Self::In(key(name)?, vec![word(value)?])),
            None => key(text).map(Self::Exists),
        }
    }

    fn matches<'l>(&self, value: impl Fn(&str) -> Option<&'l str>) -> bool {
        let among = |values: &[String], value: &str| values.iter().any(|wanted| wanted == value);
        match self {
            Self::In(key, values) => value(key).is_some_and(|value| among(values, value)),
            Self::NotIn(key, values) => value(key).is_none_or(|value| !among(values, value)),
            Self::Exists(key) => value(key).is_some(),
            Self::Absent(key) => value(key).is_none(),
        }
    }
}

/// Splits at the commas outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0;
    text.split(|c| {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        c == ',' && depth == 0
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn matches_as_kubectl_does() -> Result<(), MalformedRequirement> {
        let labels = BTreeMap::from([("app", "web"), ("tier", "a")]);
        for (selector, expected) in [
            ("", true),
            ("app=web", true),
            ("app == web, tier=a", true),
            ("app=db", false),
            ("app!=db", true),
            ("other!=x", true),
            ("app in (db, web),tier", true),
            ("app notin (web)", false),
            ("other notin (web)", true),
            ("!app", false),
            ("!other", true),
            ("other", false),
        ] {
            assert_eq!(Selector::parse(selector)?.matches(|key| labels.get(key).copied()), expected, "{selector}");
        }
        Ok(())
    }

    #[test]
    fn refuses_what_is_malformed() {
        for selector in ["=web", "app in web", "app in (a", "a b", "app within (a)", "!", "app=a(b"] {
            assert!(Selector::parse(selector).is_err(), "{selector}");
        }
    }
}
