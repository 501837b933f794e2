//! Numbers and shares of replicas, such as `1` and `25%`. A value that is neither counts as none.

use serde_json::Value;

/// What becomes of a part of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// It counts as a whole one.
    Up,
    /// It does not count.
    Down,
}

/// How many of so many replicas a number or share is.
pub fn resolve(value: &Value, replicas: i32, rounding: Rounding) -> Option<i64> {
    if let Some(number) = value.as_i64() {
        return Some(number);
    }
    let text = value.as_str()?;
    let Some(percent) = text.strip_suffix('%') else { return text.parse().ok() };
    let hundredths = percent.parse::<i64>().ok()? * i64::from(replicas);
    let up = i64::from(rounding == Rounding::Up && hundredths % 100 != 0);
    Some(hundredths / 100 + up)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_share_is_rounded_as_its_field_says() {
        let cases = [
            (json!(2), Rounding::Down, Some(2)),
            (json!("2"), Rounding::Down, Some(2)),
            (json!("25%"), Rounding::Down, Some(1)),
            (json!("25%"), Rounding::Up, Some(2)),
            (json!("100%"), Rounding::Up, Some(7)),
            (json!("some"), Rounding::Up, None),
            (json!(null), Rounding::Up, None),
        ];
        for (value, rounding, expected) in cases {
            assert_eq!(resolve(&value, 7, rounding), expected, "{value} {rounding:?}");
        }
    }
}
