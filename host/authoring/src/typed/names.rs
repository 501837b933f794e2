//! Names in programs for names in schemas: words, cases, and numbers where two would be the same. It knows no language.

/// The words of a name, such as `pod` and `IP` of `podIP`.
fn words(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let mut words: Vec<String> = Vec::new();
    for (place, letter) in letters.iter().enumerate() {
        if !letter.is_ascii_alphanumeric() {
            words.push(String::new());
            continue;
        }
        let before = place.checked_sub(1).and_then(|before| letters.get(before)).copied().unwrap_or('_');
        let is_next_lower = letters.get(place + 1).is_some_and(char::is_ascii_lowercase);
        let begins = letter.is_ascii_uppercase() && (!before.is_ascii_uppercase() || is_next_lower);
        if begins || words.is_empty() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(*letter);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// As a variable in Rust and Python, such as `pod_ip`.
pub(super) fn snake(name: &str) -> String {
    let words: Vec<_> = words(name).iter().map(|word| word.to_lowercase()).collect();
    begun(words.join("_"), "_")
}

/// As a constant in C, such as `POD_IP`.
pub(super) fn screaming(name: &str) -> String {
    snake(name).to_uppercase()
}

/// As a type, such as `PodIP`.
pub(super) fn pascal(name: &str) -> String {
    let of_word = |word: &String| {
        let is_all_upper = word.chars().all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit());
        // A word in capitals stays one in a name that has others; a whole name in capitals is one word.
        let rest = if is_all_upper && word.len() == name.len() { word.to_lowercase() } else { word.clone() };
        let mut letters = rest.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    begun(words(name).iter().map(of_word).collect(), "V")
}

/// A name does not begin with a digit, and is not empty.
fn begun(name: String, before: &str) -> String {
    if name.starts_with(|first: char| first.is_ascii_alphabetic()) { name } else { format!("{before}{name}") }
}

/// The name, with a number if it is taken.
pub(super) fn unique(name: &str, mut is_taken: impl FnMut(&str) -> bool) -> String {
    let mut candidate = name.to_owned();
    let mut number = 2u32;
    while is_taken(&candidate) {
        candidate = format!("{name}{number}");
        number += 1;
    }
    candidate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_form_for_each_use() {
        for (name, in_snake, in_pascal) in [
            ("replicas", "replicas", "Replicas"),
            ("secretName", "secret_name", "SecretName"),
            ("podIP", "pod_ip", "PodIP"),
            ("clusterIPs", "cluster_i_ps", "ClusterIPs"),
            ("HTTPRoute", "http_route", "HTTPRoute"),
            ("TCP", "tcp", "Tcp"),
            ("$ref", "ref", "Ref"),
            ("x-y.z", "x_y_z", "XYZ"),
            ("3scale", "_3scale", "V3scale"),
            ("", "_", "V"),
            ("größe", "gr_e", "GrE"),
        ] {
            assert_eq!((&*snake(name), &*pascal(name)), (in_snake, in_pascal), "{name}");
        }
    }

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        assert_eq!(unique("a", |name| name == "a" || name == "a2"), "a3");
    }
}
