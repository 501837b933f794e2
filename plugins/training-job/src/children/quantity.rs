//! Multiplies Kubernetes quantities. It keeps their unit and never converts one.

use serde_json::{Value, json};

/// So many times a quantity: 4 times `1.5Gi` is `6.0Gi`. A value that is no quantity is returned unchanged.
pub fn multiply(quantity: &Value, count: u32) -> Value {
    let text = quantity.as_str().map_or_else(|| quantity.to_string(), str::to_owned);
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let Ok(digits) = format!("{whole}{fraction}").parse::<u128>() else { return quantity.clone() };
    let product = format!("{:0>width$}", digits * u128::from(count), width = fraction.len() + 1);
    let (whole, fraction) = product.split_at(product.len() - fraction.len());
    let point = if fraction.is_empty() { "" } else { "." };
    json!(format!("{whole}{point}{fraction}{unit}"))
}

#[cfg(test)]
mod tests {
    use super::multiply;
    use serde_json::json;

    #[test]
    fn quantities_are_multiplied_in_their_own_unit() {
        let cases = [
            (json!("500m"), 4, "2000m"),
            (json!("1.5Gi"), 4, "6.0Gi"),
            (json!("0.25"), 3, "0.75"),
            (json!("0.001"), 1, "0.001"),
            (json!(2), 100, "200"),
            (json!("1e3"), 2, "2e3"),
            (json!("nonsense"), 2, "nonsense"),
        ];
        for (quantity, count, expected) in cases {
            assert_eq!(multiply(&quantity, count), json!(expected), "{quantity}");
        }
    }
}
