//! What the annotation [`crate::labels::APPLIED`] of a child says of what was written last: a digest of all of it, and the outline of its
//! fields (`check/outline.rs`). Both follow from the body alone: a mark is the same in each host, before and after a restart. Pure.

/// The mark of a body.
pub fn mark(digest: &str, outline: &str) -> String {
    format!("{digest}-{outline}")
}

/// Whether two marks are of the same body. The outline decides nothing about that: an earlier host wrote none, and a later one may count
/// fields in another way.
pub fn is_same_body(one: &str, other: &str) -> bool {
    digest(one) == digest(other)
}

/// Whether two marks are of bodies with the same fields; not if an outline is not known.
pub fn has_same_fields(one: &str, other: &str) -> bool {
    outline(one).is_some_and(|fields| outline(other) == Some(fields))
}

fn digest(mark: &str) -> &str {
    mark.split_once('-').map_or(mark, |(digest, _)| digest)
}

fn outline(mark: &str) -> Option<&str> {
    mark.split_once('-').map(|(_, outline)| outline)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_and_their_fields_are_compared_by_their_marks() {
        let (one, other) = (mark("a", "x"), mark("b", "x"));
        assert_eq!(one, "a-x");
        for (left, right, body, fields) in [
            (&*one, &*one, true, true),
            (&one, &other, false, true),
            (&one, "a", true, false),
            ("a", "a", true, false),
            (&one, "a-y", true, false),
            ("", &one, false, false),
        ] {
            assert_eq!((is_same_body(left, right), has_same_fields(left, right)), (body, fields), "{left} {right}");
        }
    }
}
