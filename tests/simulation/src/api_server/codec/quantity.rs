//! Quantities: `500m`, `1Gi`. The server writes them in one canonical form.

use std::cmp::Ordering;

/// The suffixes with a power of ten, the greatest first.
const DECIMAL: [(&str, i32); 10] =
    [("E", 18), ("P", 15), ("T", 12), ("G", 9), ("M", 6), ("k", 3), ("", 0), ("m", -3), ("u", -6), ("n", -9)];

/// The suffixes with a power of 1024, the greatest first.
const BINARY: [(&str, u32); 6] = [("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];

/// How a quantity was written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Decimal,
    Binary,
    Exponent,
}

/// The canonical form; none if the text is no quantity.
pub fn canonical_quantity(text: &str) -> Option<String> {
    let (nanos, format) = parse(text)?;
    Some(match format {
        // Small and fractional values have no binary suffix.
        Format::Binary if nanos.abs() >= 1024 * NANO && nanos % NANO == 0 => binary(nanos / NANO),
        Format::Exponent => exponent(nanos),
        _ => decimal(nanos),
    })
}

/// Which of two quantities is greater; none if one is no quantity.
pub fn compare_quantities(a: &str, b: &str) -> Option<Ordering> {
    Some(parse(a)?.0.cmp(&parse(b)?.0))
}

/// One, in the smallest unit.
const NANO: i128 = 1_000_000_000;

fn parse(text: &str) -> Option<(i128, Format)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && !['+', '-', '.'].contains(&c)).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (mantissa, scale) = mantissa(number)?;
    if let Some((_, bits)) = BINARY.iter().find(|(known, _)| *known == suffix) {
        return Some((shift(mantissa.checked_mul(1_i128 << bits)?, scale + 9)?, Format::Binary));
    }
    if let Some((_, power)) = DECIMAL.iter().find(|(known, _)| *known == suffix) {
        return Some((shift(mantissa, scale + 9 + power)?, Format::Decimal));
    }
    let power: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((shift(mantissa, scale + 9 + power)?, Format::Exponent))
}

/// The digits of a number, and the power of ten that they are multiplied with.
fn mantissa(number: &str) -> Option<(i128, i32)> {
    let (sign, digits) = match number.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    if all.is_empty() || !all.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    let value: i128 = all.parse().ok()?;
    Some((sign * value, -i32::try_from(fraction.len()).ok()?))
}

/// Multiplies with a power of ten. What is smaller than the smallest unit is rounded away from zero.
fn shift(value: i128, power: i32) -> Option<i128> {
    let factor = 10_i128.checked_pow(power.unsigned_abs())?;
    if power >= 0 {
        return value.checked_mul(factor);
    }
    let (whole, rest) = (value / factor, value % factor);
    Some(if rest == 0 { whole } else { whole + value.signum() })
}

fn decimal(nanos: i128) -> String {
    if nanos == 0 {
        return "0".to_owned();
    }
    let fits = |power: i32| {
        let unit = shift(1, power + 9)?;
        (nanos % unit == 0).then_some(nanos / unit)
    };
    let found = DECIMAL.iter().find_map(|(suffix, power)| Some(format!("{}{suffix}", fits(*power)?)));
    found.unwrap_or_else(|| format!("{nanos}n"))
}

fn exponent(nanos: i128) -> String {
    let (mut value, mut power) = (nanos, -9);
    while value != 0 && value % 1000 == 0 {
        value /= 1000;
        power += 3;
    }
    if power == 0 || value == 0 { value.to_string() } else { format!("{value}e{power}") }
}

fn binary(value: i128) -> String {
    let found = BINARY.iter().find(|(_, bits)| value % (1_i128 << bits) == 0);
    found.map_or_else(|| value.to_string(), |(suffix, bits)| format!("{}{suffix}", value / (1_i128 << bits)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_has_one_form() {
        for (text, expected) in [
            ("1000m", Some("1")),
            ("0.5", Some("500m")),
            ("1024Mi", Some("1Gi")),
            ("1000Mi", Some("1000Mi")),
            ("1.5Gi", Some("1536Mi")),
            ("1000k", Some("1M")),
            ("0", Some("0")),
            ("1e3", Some("1e3")),
            ("100", Some("100")),
            ("1Ki", Some("1Ki")),
            ("-1", Some("-1")),
            ("", None),
            ("a", None),
            ("1x", None),
            ("1.2.3", None),
        ] {
            assert_eq!(canonical_quantity(text).as_deref(), expected, "{text}");
        }
        assert_eq!(compare_quantities("1", "1000m"), Some(Ordering::Equal));
    }
}
