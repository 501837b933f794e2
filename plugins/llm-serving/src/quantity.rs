//! Reads Kubernetes quantities as numbers. It keeps whole numbers only, for they are compared with labels of nodes.

use serde_json::Value;

/// Suffixes of quantities with what they stand for.
const UNITS: [(&str, u128); 12] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("Pi", 1 << 50),
    ("Ei", 1 << 60),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("P", 1_000_000_000_000_000),
    ("E", 1_000_000_000_000_000_000),
];

/// How many whole MiB a quantity of bytes has; none for what is no such quantity.
pub fn mebibytes(quantity: &Value) -> Option<u128> {
    let text = quantity.as_str().map_or_else(|| quantity.to_string(), str::to_owned);
    let (number, unit) = UNITS
        .iter()
        .find_map(|(suffix, unit)| text.strip_suffix(suffix).map(|number| (number, *unit)))
        .unwrap_or((text.as_str(), 1));
    let (number, exponent) = match number.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<u32>().ok()?),
        None => (number, 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let power = |exponent: u32| 10_u128.checked_pow(exponent);
    let scale = power(u32::try_from(fraction.len()).ok()?)?;
    Some((digits.checked_mul(unit)?.checked_mul(power(exponent)?)? / scale) >> 20)
}

/// How many milliseconds a quantity of seconds has, as the API serves it: `87m`, `1500u`, `2`; none for what is no such quantity.
pub fn milliseconds(quantity: &str) -> Option<f64> {
    let parts = [("n", 1e-6), ("u", 1e-3), ("m", 1.0), ("k", 1e6)];
    let (number, factor) = parts
        .iter()
        .find_map(|(suffix, factor)| quantity.strip_suffix(suffix).map(|number| (number, *factor)))
        .unwrap_or((quantity, 1e3));
    number.parse::<f64>().ok().filter(|number| number.is_finite()).map(|number| number * factor)
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
            (json!("500m"), None),
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
            ("1.5", Some(1500.0)),
            ("NaN", None),
            ("", None),
        ];
        for (quantity, expected) in cases {
            assert_eq!(milliseconds(quantity), expected, "{quantity}");
        }
    }
}
