//! Which texts can be names, label keys and label values.

/// What the names of a kind must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// Lower-case words with dots.
    Subdomain,
    /// One lower-case word.
    Label,
    /// One lower-case word that begins with a letter.
    ServiceLabel,
    /// Anything that can be part of a path.
    PathSegment,
}

impl NameRule {
    /// What is wrong with a name; none if nothing is.
    pub fn problem(self, name: &str) -> Option<&'static str> {
        let fits = match self {
            Self::Subdomain => is_subdomain(name),
            Self::Label => is_label(name),
            Self::ServiceLabel => is_label(name) && name.starts_with(|c: char| c.is_ascii_lowercase()),
            Self::PathSegment => is_path_segment(name),
        };
        if fits { None } else { Some("the name is not what a name of this kind must be") }
    }

    /// What is wrong with the beginning of a name. A name is cut before its suffix is added, and a dash at its end is no mistake.
    pub fn problem_of_prefix(self, prefix: &str) -> Option<&'static str> {
        match self {
            Self::PathSegment => self.problem(prefix),
            _ => self.problem(&format!("{}a", prefix.strip_suffix('-').map_or(prefix, |_| prefix))),
        }
    }
}

/// Whether a text is one lower-case word of letters, digits and dashes.
pub fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_word(text, |c| c.is_ascii_lowercase() || c.is_ascii_digit(), |c| c == '-')
}

/// Whether a text is lower-case words with dots between them.
pub fn is_subdomain(text: &str) -> bool {
    let is_part = |part: &str| is_word(part, |c| c.is_ascii_lowercase() || c.is_ascii_digit(), |c| c == '-');
    text.len() <= 253 && text.split('.').all(is_part)
}

/// Whether a text can be a key of a label or an annotation: `name` or `domain/name`.
pub fn is_qualified_name(text: &str) -> bool {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    prefix.is_none_or(is_subdomain) && name.len() <= 63 && is_token(name)
}

/// Whether a text can be the value of a label.
pub fn is_label_value(text: &str) -> bool {
    text.is_empty() || (text.len() <= 63 && is_token(text))
}

/// Whether a text can be a key of a ConfigMap or a Secret.
pub fn is_config_key(text: &str) -> bool {
    let is_char = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c);
    !text.is_empty() && text.len() <= 253 && text.chars().all(is_char) && text != "." && !text.starts_with("..")
}

fn is_path_segment(text: &str) -> bool {
    !text.is_empty() && ![".", ".."].contains(&text) && !text.contains(['/', '%'])
}

fn is_token(text: &str) -> bool {
    is_word(text, |c| c.is_ascii_alphanumeric(), |c| ['-', '_', '.'].contains(&c))
}

/// Whether a text is not empty, begins and ends with such characters, and has others only between them.
fn is_word(text: &str, outer: impl Fn(char) -> bool, inner: impl Fn(char) -> bool) -> bool {
    text.starts_with(&outer) && text.ends_with(&outer) && text.chars().all(|c| outer(c) || inner(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_by_their_rule() {
        for (rule, name, fits) in [
            (NameRule::Subdomain, "a.b-c.d", true),
            (NameRule::Subdomain, "a..b", false),
            (NameRule::Subdomain, "A", false),
            (NameRule::Subdomain, "-a", false),
            (NameRule::Label, "a.b", false),
            (NameRule::Label, "0a", true),
            (NameRule::ServiceLabel, "0a", false),
            (NameRule::PathSegment, "A:b", true),
            (NameRule::PathSegment, "a/b", false),
        ] {
            assert_eq!(rule.problem(name).is_none(), fits, "{rule:?} {name}");
        }
        assert!(NameRule::Subdomain.problem_of_prefix("a-").is_none());
        for (key, fits) in [("a", true), ("a.b/c_D", true), ("a/b/c", false), ("/a", false), ("a/", false), ("", false)]
        {
            assert_eq!(is_qualified_name(key), fits, "{key}");
        }
    }
}
