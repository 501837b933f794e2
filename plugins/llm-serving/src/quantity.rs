//! Reads Kubernetes quantities as numbers, with all suffixes that they may have.

use serde_json::Value;

/// Suffixes of quantities, each with what it stands for: a number, and how many of it make one.
const UNITS: [(&str, u128, u128); 15] = [
    ("Ki", 1 << 10, 1),
    ("Mi", 1 << 20, 1),
    ("Gi", 1 << 30, 1),
    ("Ti", 1 << 40, 1),
    ("Pi", 1 << 50, 1),
    ("Ei", 1 << 60, 1),
    ("n", 1, 1_000_000_000),
    ("u", 1, 1_000_000),
    ("m", 1, 1_000),
    ("k", 1_000, 1),
    ("M", 1_000_000, 1),
    ("G", 1_000_000_000, 1),
    ("T", 1_000_000_000_000, 1),
    ("P", 1_000_000_000_000_000, 1),
    ("E", 1_000_000_000_000_000_000, 1),
];

/// A quantity that is not negative: one number divided by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Quantity {
    numerator: u128,
    denominator: u128,
}

impl Quantity {
    /// Reads a quantity such as `1.5Gi`, `500m` or `8e10`.
    fn parse(text: &str) -> Option<Self> {
        let unit = UNITS.iter().find_map(|(suffix, many, one)| Some((text.strip_suffix(suffix)?, *many, *one)));
        let (number, many, one) = unit.unwrap_or((text, 1, 1));
        let (number, exponent) = match number.split_once(['e', 'E']) {
            // Of a suffix and an exponent, a quantity has one at most.
            Some(_) if unit.is_some() => return None,
            Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
            None => (number, 0),
        };
        let number = number.strip_prefix('+').unwrap_or(number);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = format!("{whole}{fraction}");
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let power = |exponent: i32| 10_u128.checked_pow(exponent.max(0).unsigned_abs());
        let parts = power(i32::try_from(fraction.len()).ok()?)?;
        Some(Self {
            numerator: digits.parse::<u128>().ok()?.checked_mul(many)?.checked_mul(power(exponent)?)?,
            denominator: parts.checked_mul(one)?.checked_mul(power(exponent.checked_neg()?)?)?,
        })
    }
}

/// How many whole MiB a quantity of bytes has; none for what is no such quantity.
pub fn mebibytes(quantity: &Value) -> Option<u128> {
    let text = quantity.as_str().map_or_else(|| quantity.to_string(), str::to_owned);
    let Quantity { numerator, denominator } = Quantity::parse(&text)?;
    Some((numerator / denominator) >> 20)
}

/// How many milliseconds a quantity of seconds has, as the API serves it: `87m`, `1500u`, `2`; none for what is no such quantity.
#[allow(clippy::cast_precision_loss, reason = "a latency needs no more digits than a floating-point number has")]
pub fn milliseconds(quantity: &str) -> Option<f64> {
    let Quantity { numerator, denominator } = Quantity::parse(quantity)?;
    Some(numerator as f64 / denominator as f64 * 1e3)
}

#[cfg(test)]
mod tests {
    use super::{mebibytes, milliseconds};
    use serde_json::json;

    #[test]
    fn quantities_of_bytes_are_read_as_mebibytes() {
        let cases = [
            (json!("80G"), Some(76_293)),
            (json!("80Gi"), Some(81_920)),
            (json!("1.5Gi"), Some(1_536)),
            (json!(1_048_576), Some(1)),
            (json!("8e10"), Some(76_293)),
            (json!("8.5E10"), Some(81_062)),
            (json!("1E"), Some(953_674_316_406)),
            (json!("500m"), Some(0)),
            (json!("80000000000000m"), Some(76_293)),
            (json!("80000000000000000u"), Some(76_293)),
            (json!("80000000000000000000n"), Some(76_293)),
            (json!("800e8"), Some(76_293)),
            (json!("80000000e-1"), Some(7)),
            (json!("+1Gi"), Some(1_024)),
            (json!("1e3Gi"), None),
            (json!("-1Gi"), None),
            (json!("m"), None),
            (json!("much"), None),
            (json!(""), None),
        ];
        for (quantity, expected) in cases {
            assert_eq!(mebibytes(&quantity), expected, "{quantity}");
        }
    }

    #[test]
    fn quantities_of_seconds_are_read_as_milliseconds() {
        let cases = [
            ("87m", Some(87.0)),
            ("2", Some(2000.0)),
            ("500u", Some(0.5)),
            ("250000n", Some(0.25)),
            ("1k", Some(1e6)),
            ("1M", Some(1e9)),
            ("1Ki", Some(1_024_000.0)),
            ("5e-2", Some(50.0)),
            ("1.5", Some(1500.0)),
            ("NaN", None),
            ("", None),
        ];
        for (quantity, expected) in cases {
            assert_eq!(milliseconds(quantity), expected, "{quantity}");
        }
    }
}
