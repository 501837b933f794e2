//! A number for a schema: 1 if that fits, else the nearest that does. It judges nothing.

use serde_json::Value;

/// A whole number.
pub(super) fn whole(schema: &Value) -> Value {
    let step = schema["multipleOf"].as_i64().filter(|step| *step > 0).unwrap_or(1);
    let least = bound(schema, "minimum", "exclusiveMinimum").map(|(least, open)| {
        let least = least.ceil() as i64;
        if open { least.saturating_add(1) } else { least }
    });
    let most = bound(schema, "maximum", "exclusiveMaximum").map(|(most, open)| {
        let most = most.floor() as i64;
        if open { most.saturating_sub(1) } else { most }
    });
    let wished = 1.max(least.unwrap_or(1)).min(most.unwrap_or(i64::MAX));
    let up = wished.div_euclid(step).saturating_add(i64::from(wished.rem_euclid(step) > 0)).saturating_mul(step);
    let fits = |it: i64| least.is_none_or(|least| it >= least) && most.is_none_or(|most| it <= most);
    let found = if fits(up) { up } else { wished.div_euclid(step).saturating_mul(step) };
    found.into()
}

/// Any number, a whole one if that fits.
pub(super) fn any(schema: &Value) -> Value {
    let whole = whole(schema);
    let (least, most) = (bound(schema, "minimum", "exclusiveMinimum"), bound(schema, "maximum", "exclusiveMaximum"));
    let number = whole.as_f64().unwrap_or_default();
    let is_above = least.is_none_or(|(least, open)| number > least || (number >= least && !open));
    let is_below = most.is_none_or(|(most, open)| number < most || (number <= most && !open));
    match (is_above && is_below, least, most) {
        (false, Some((least, _)), Some((most, _))) => ((least + most) / 2.0).into(),
        _ => whole,
    }
}

/// A bound, and whether it is outside.
fn bound(schema: &Value, word: &str, exclusive: &str) -> Option<(f64, bool)> {
    schema[word].as_f64().map(|bound| (bound, schema[exclusive] == true))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_number_is_within_its_bounds() {
        for (schema, expected) in [
            (json!({}), json!(1)),
            (json!({"minimum": 0}), json!(1)),
            (json!({"minimum": 2}), json!(2)),
            (json!({"minimum": 2, "exclusiveMinimum": true}), json!(3)),
            (json!({"maximum": -3}), json!(-3)),
            (json!({"minimum": 1024, "multipleOf": 512}), json!(1024)),
            (json!({"minimum": 1, "maximum": 5, "multipleOf": 5}), json!(5)),
            (json!({"maximum": 4, "multipleOf": 5}), json!(0)),
        ] {
            assert_eq!(whole(&schema), expected, "{schema}");
        }
        let between = json!({"minimum": 0, "exclusiveMinimum": true, "maximum": 1, "exclusiveMaximum": true});
        assert_eq!(any(&between), json!(0.5));
        assert_eq!(any(&json!({"minimum": 2.5})), json!(3));
    }
}
