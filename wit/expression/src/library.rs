//! The functions that make values: of texts, lists, maps, numbers and optional values. Each spends as many steps as what it makes is large,
//! before it makes it.

use std::{borrow::Cow, cmp::Ordering};

use super::{
    EvaluationError,
    evaluate::{Evaluated, Evaluation, wrong_type},
    node::Function,
    value::{Value, steps_of_text},
};

/// Calls one of them. There are as many arguments as it takes.
pub(super) fn call<'v>(
    evaluation: &mut Evaluation<'v>,
    function: Function,
    mut arguments: Vec<Value<'v>>,
) -> Evaluated<'v> {
    let no_result = || EvaluationError::NoResult(function.name());
    if matches!(function, Function::Greatest | Function::Least) {
        let values = match arguments.pop() {
            Some(list @ (Value::Elements(_) | Value::List(_))) if arguments.is_empty() => elements(list),
            last => arguments.into_iter().chain(last).collect(),
        };
        return extreme(evaluation, function, values);
    }
    let mut arguments = arguments.into_iter();
    let (first, second, third) = (arguments.next(), arguments.next(), arguments.next());
    match (first, second, third) {
        (None, ..) => Ok(Value::Optional(None)),
        (Some(value), None, _) => of_one(evaluation, function, value),
        (Some(one), Some(other), None) => of_two(evaluation, function, one, other),
        (Some(Value::Text(text)), Some(one), Some(other)) => of_text(evaluation, function, (text, one, Some(other))),
        (Some(other), ..) => {
            Err(if other.is_number() { no_result() } else { wrong_type(function.name(), "a string", &other) })
        }
    }
}

fn of_one<'v>(evaluation: &mut Evaluation<'v>, function: Function, value: Value<'v>) -> Evaluated<'v> {
    match (function, value) {
        (Function::TypeOf, value) => Ok(Value::Text(Cow::Borrowed(type_of(&value)))),
        (Function::OptionalOf, value) => Ok(Value::Optional(Some(Box::new(value)))),
        (Function::HasValue, Value::Optional(value)) => Ok(Value::Boolean(value.is_some())),
        (Function::OptionalValue, Value::Optional(value)) => {
            value.map(|value| *value).ok_or(EvaluationError::NoResult(function.name()))
        }
        (Function::HasValue | Function::OptionalValue, other) => {
            Err(wrong_type(function.name(), "an optional value", &other))
        }
        (Function::Quantity, value @ (Value::Integer(_) | Value::Double(_))) => Ok(value),
        (Function::ToBoolean, Value::Boolean(it)) => Ok(Value::Boolean(it)),
        (Function::Marshal, value) => marshal(evaluation, value),
        (Function::Max | Function::Min | Function::Sum | Function::Sort, value)
        | (Function::Distinct | Function::Flatten | Function::Join, value) => of_list(evaluation, function, value),
        (function, Value::Text(text)) => {
            evaluation.spend(steps_of_text(&text))?;
            of_one_text(evaluation, function, text)
        }
        (function, other) => Err(wrong_type(function.name(), "a string", &other)),
    }
}

fn of_one_text<'v>(evaluation: &mut Evaluation<'v>, function: Function, text: Cow<'v, str>) -> Evaluated<'v> {
    let no_result = EvaluationError::NoResult(function.name());
    match function {
        Function::LowerAscii => Ok(Value::Text(text.to_ascii_lowercase().into())),
        Function::UpperAscii => Ok(Value::Text(text.to_ascii_uppercase().into())),
        Function::Trim => Ok(Value::Text(text.trim().to_owned().into())),
        Function::Quantity => quantity(&text).ok_or(no_result),
        Function::IsQuantity => Ok(Value::Boolean(quantity(&text).is_some())),
        Function::ToBoolean => text.parse().map(Value::Boolean).map_err(|_| no_result),
        Function::Unmarshal => {
            // As many values as bytes at most.
            evaluation.spend(text.len())?;
            serde_json::from_str(&text).map(Value::owned).map_err(|_| no_result)
        }
        _ => Err(no_result),
    }
}

fn of_two<'v>(evaluation: &mut Evaluation<'v>, function: Function, one: Value<'v>, other: Value<'v>) -> Evaluated<'v> {
    match (function, one) {
        (Function::OptionalIndex, Value::Optional(None)) => Ok(Value::Optional(None)),
        (Function::OptionalIndex, Value::Optional(Some(value))) => optional_index(*value, &other),
        (Function::OptionalIndex, value) => optional_index(value, &other),
        (Function::Or, Value::Optional(value)) => match other {
            other @ Value::Optional(_) => Ok(value.map_or(other, |value| Value::Optional(Some(value)))),
            other => Err(wrong_type("`or`", "optional values", &other)),
        },
        (Function::OrValue, Value::Optional(value)) => Ok(value.map_or(other, |value| *value)),
        (Function::Or | Function::OrValue, other) => Err(wrong_type(function.name(), "an optional value", &other)),
        (Function::Merge, one) => merge(evaluation, one, other),
        (Function::Join, list) => join(evaluation, list, &other),
        (Function::Greatest | Function::Least, _) => Err(EvaluationError::NoResult(function.name())),
        (Function::Format, Value::Text(text)) => format(evaluation, &text, other),
        (function, Value::Text(text)) => of_text(evaluation, function, (text, other, None)),
        (function, other) => Err(wrong_type(function.name(), "a string", &other)),
    }
}

/// The element or the field of that name, as an optional value.
pub(super) fn optional_index<'v>(value: Value<'v>, index: &Value<'v>) -> Evaluated<'v> {
    let found = match (value, index) {
        (Value::Null, _) => None,
        (value @ (Value::Object(_) | Value::Map(_)), Value::Text(name)) => value.into_field(name).ok().flatten(),
        (Value::Elements(elements), Value::Integer(place)) => {
            usize::try_from(*place).ok().and_then(|place| elements.get(place)).map(Value::of)
        }
        (Value::List(elements), Value::Integer(place)) => {
            usize::try_from(*place).ok().and_then(|place| elements.into_iter().nth(place))
        }
        (other, _) => return Err(wrong_type("`[?]`", "a list with an int, or a map with a string", &other)),
    };
    Ok(Value::Optional(found.map(Box::new)))
}

/// A method of a text with one or two arguments.
fn of_text<'v>(
    evaluation: &mut Evaluation<'v>,
    function: Function,
    (text, one, other): (Cow<'v, str>, Value<'v>, Option<Value<'v>>),
) -> Evaluated<'v> {
    evaluation.spend(steps_of_text(&text))?;
    match (function, one, other) {
        (Function::Replace, Value::Text(part), Some(Value::Text(new))) => {
            let places = if part.is_empty() { text.chars().count() + 1 } else { text.matches(&*part).count() };
            evaluation.spend(steps_of_text(&text) + places.saturating_mul(steps_of_text(&new)))?;
            Ok(Value::Text(text.replace(&*part, &new).into()))
        }
        (Function::Split, Value::Text(separator), limit) => split(evaluation, &text, &separator, limit),
        (Function::IndexOf, Value::Text(part), None) => {
            let place = text.find(&*part).map(|bytes| text[..bytes].chars().count());
            Ok(Value::Integer(place.and_then(|place| i64::try_from(place).ok()).unwrap_or(-1)))
        }
        (Function::Substring, Value::Integer(from), to) => substring(&text, from, to),
        (function @ Function::Substring, other, _) => Err(wrong_type(function.name(), "an int", &other)),
        (function, _, Some(other)) | (function, other, None) => Err(wrong_type(function.name(), "strings", &other)),
    }
}

fn split<'v>(evaluation: &mut Evaluation<'v>, text: &str, separator: &str, limit: Option<Value<'v>>) -> Evaluated<'v> {
    let limit = match limit {
        None => usize::MAX,
        // A negative number is no limit, as in Go.
        Some(Value::Integer(limit)) => usize::try_from(limit).unwrap_or(usize::MAX),
        Some(other) => return Err(wrong_type("`split`", "an int as its limit", &other)),
    };
    let parts: Vec<_> = match separator.is_empty() {
        true => {
            evaluation.spend(text.len())?;
            text.chars().map(|letter| letter.to_string()).take(limit).collect()
        }
        false => {
            evaluation.spend(text.matches(separator).count() + steps_of_text(text))?;
            text.splitn(limit, separator).map(str::to_owned).collect()
        }
    };
    Ok(Value::List(parts.into_iter().map(|part| Value::Text(part.into())).collect()))
}

fn substring<'v>(text: &str, from: i64, to: Option<Value<'v>>) -> Evaluated<'v> {
    let no_result = EvaluationError::NoResult("`substring`");
    let length = text.chars().count();
    let to = match to {
        None => Some(length),
        Some(Value::Integer(to)) => usize::try_from(to).ok(),
        Some(other) => return Err(wrong_type("`substring`", "ints", &other)),
    };
    match (usize::try_from(from).ok(), to) {
        (Some(from), Some(to)) if from <= to && to <= length => {
            Ok(Value::Text(text.chars().skip(from).take(to - from).collect::<String>().into()))
        }
        _ => Err(no_result),
    }
}

/// `%s` for any value, `%d` for ints, `%%` for a percent sign.
fn format<'v>(evaluation: &mut Evaluation<'v>, text: &str, values: Value<'v>) -> Evaluated<'v> {
    let no_result = || EvaluationError::NoResult("`format`");
    if !matches!(values, Value::Elements(_) | Value::List(_)) {
        return Err(wrong_type("`format`", "a list of values", &values));
    }
    evaluation.spend(steps_of_text(text) + values.json_steps())?;
    let (mut values, mut letters, mut formatted) = (elements(values).into_iter(), text.chars(), String::new());
    while let Some(letter) = letters.next() {
        if letter != '%' {
            formatted.push(letter);
            continue;
        }
        match letters.next() {
            Some('%') => formatted.push('%'),
            Some('s') => formatted.push_str(&text_of(values.next().ok_or_else(no_result)?)?),
            Some('d') => match values.next() {
                Some(Value::Integer(it)) => formatted.push_str(&it.to_string()),
                Some(other) => return Err(wrong_type("`%d`", "an int", &other)),
                None => return Err(no_result()),
            },
            _ => return Err(no_result()),
        }
    }
    match values.next() {
        None => Ok(Value::Text(formatted.into())),
        Some(_) => Err(no_result()),
    }
}

/// A value as text: texts as they are, others as JSON.
fn text_of(value: Value<'_>) -> Result<String, EvaluationError> {
    match value {
        Value::Text(text) => Ok(text.into_owned()),
        other => other.into_json().map(|json| json.to_string()).ok_or(EvaluationError::NoResult("`format`")),
    }
}

fn marshal<'v>(evaluation: &mut Evaluation<'v>, value: Value<'v>) -> Evaluated<'v> {
    // The text is copied twice, and escapes can make it longer.
    evaluation.spend(value.json_steps().saturating_mul(4))?;
    let json = value.into_json().ok_or(EvaluationError::NoResult("`json.marshal`"))?;
    Ok(Value::Text(json.to_string().into()))
}

fn merge<'v>(evaluation: &mut Evaluation<'v>, one: Value<'v>, other: Value<'v>) -> Evaluated<'v> {
    let mut merged = entries(one)?;
    for (name, value) in entries(other)? {
        evaluation.spend(merged.len() + 1)?;
        match merged.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => merged.push((name, value)),
        }
    }
    Ok(Value::Map(merged))
}

fn entries(value: Value<'_>) -> Result<Vec<(Cow<'_, str>, Value<'_>)>, EvaluationError> {
    match value {
        Value::Map(entries) => Ok(entries),
        Value::Object(fields) => {
            Ok(fields.iter().map(|(name, value)| (Cow::Borrowed(name.as_str()), Value::of(value))).collect())
        }
        other => Err(wrong_type("`merge`", "maps", &other)),
    }
}

fn join<'v>(evaluation: &mut Evaluation<'v>, list: Value<'v>, separator: &Value<'v>) -> Evaluated<'v> {
    let separator = match separator {
        Value::Text(separator) => separator,
        other => return Err(wrong_type("`join`", "a string between them", other)),
    };
    if !matches!(list, Value::Elements(_) | Value::List(_)) {
        return Err(wrong_type("`join`", "a list", &list));
    }
    let mut joined = String::new();
    for (place, element) in elements(list).into_iter().enumerate() {
        let text = match element {
            Value::Text(text) => text,
            other => return Err(wrong_type("`join`", "strings", &other)),
        };
        evaluation.spend(steps_of_text(&text) + steps_of_text(separator))?;
        if place > 0 {
            joined.push_str(separator);
        }
        joined.push_str(&text);
    }
    Ok(Value::Text(joined.into()))
}

fn of_list<'v>(evaluation: &mut Evaluation<'v>, function: Function, list: Value<'v>) -> Evaluated<'v> {
    if !matches!(list, Value::Elements(_) | Value::List(_)) {
        return Err(wrong_type(function.name(), "a list", &list));
    }
    if function == Function::Join {
        return join(evaluation, list, &Value::Text(Cow::Borrowed("")));
    }
    let values = elements(list);
    evaluation.spend(values.len() + 1)?;
    match function {
        Function::Max | Function::Min => extreme(evaluation, function, values),
        Function::Sum => sum(values),
        Function::Sort => sort(evaluation, values),
        Function::Distinct => {
            let mut distinct: Vec<Value<'v>> = Vec::new();
            for value in values {
                let mut is_known = false;
                for known in &distinct {
                    is_known = is_known || evaluation.equals(known, &value)?;
                }
                if !is_known {
                    distinct.push(value);
                }
            }
            Ok(Value::List(distinct))
        }
        Function::Flatten => {
            let mut flat = Vec::new();
            for value in values {
                match value {
                    Value::Elements(_) | Value::List(_) => flat.extend(elements(value)),
                    other => flat.push(other),
                }
            }
            evaluation.spend(flat.len())?;
            Ok(Value::List(flat))
        }
        _ => Err(EvaluationError::NoResult(function.name())),
    }
}

/// The largest or the smallest of numbers, texts or booleans.
fn extreme<'v>(evaluation: &mut Evaluation<'v>, function: Function, values: Vec<Value<'v>>) -> Evaluated<'v> {
    let wanted = match function {
        Function::Greatest | Function::Max => Ordering::Greater,
        _ => Ordering::Less,
    };
    let mut values = values.into_iter();
    let mut extreme = values.next().ok_or(EvaluationError::NoResult(function.name()))?;
    for value in values {
        evaluation.spend(value.copy_steps())?;
        match value.compare(&extreme) {
            Some(ordering) if ordering == wanted => extreme = value,
            Some(_) => {}
            None => return Err(wrong_type(function.name(), "values of one type", &value)),
        }
    }
    Ok(extreme)
}

fn sum(values: Vec<Value<'_>>) -> Evaluated<'_> {
    let no_result = || EvaluationError::NoResult("`sum`");
    let mut sum = Value::Integer(0);
    for value in values {
        sum = match (sum, value) {
            (Value::Integer(one), Value::Integer(other)) => {
                Value::Integer(one.checked_add(other).ok_or_else(no_result)?)
            }
            #[allow(clippy::cast_precision_loss)]
            (Value::Integer(one), Value::Double(other)) => Value::Double(one as f64 + other),
            #[allow(clippy::cast_precision_loss)]
            (Value::Double(one), Value::Integer(other)) => Value::Double(one + other as f64),
            (Value::Double(one), Value::Double(other)) => Value::Double(one + other),
            (_, other) => return Err(wrong_type("`sum`", "numbers", &other)),
        };
    }
    Ok(sum)
}

fn sort<'v>(evaluation: &mut Evaluation<'v>, mut values: Vec<Value<'v>>) -> Evaluated<'v> {
    let steps: usize = values.iter().map(Value::json_steps).sum();
    // Each is compared with the logarithm of their number of others.
    evaluation.spend(steps.saturating_mul(values.len().checked_ilog2().unwrap_or(0) as usize + 1))?;
    if let Some(pair) = values.windows(2).find(|pair| matches!(pair, [one, other] if one.compare(other).is_none())) {
        return Err(wrong_type("`sort`", "values of one type", &pair[1]));
    }
    values.sort_by(|one, other| one.compare(other).unwrap_or(Ordering::Equal));
    Ok(Value::List(values))
}

fn elements(list: Value<'_>) -> Vec<Value<'_>> {
    list.into_elements().into_iter().flatten().collect()
}

fn type_of(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Boolean(_) => "bool",
        Value::Integer(_) => "int",
        Value::Double(_) => "double",
        Value::Text(_) => "string",
        Value::Elements(_) | Value::List(_) => "list",
        Value::Object(_) | Value::Map(_) => "map",
        Value::Optional(_) => "optional",
    }
}

/// A quantity of Kubernetes as a number: an int where it is a whole one, or else a double.
fn quantity<'v>(text: &str) -> Option<Value<'v>> {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && !matches!(letter, '.' | '+' | '-'));
    let (number, suffix) = match end {
        Some(end) => text.split_at(end),
        None => (text, ""),
    };
    let factor = match suffix {
        "" => 1.0,
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => 1024_f64.powi(1),
        "Mi" => 1024_f64.powi(2),
        "Gi" => 1024_f64.powi(3),
        "Ti" => 1024_f64.powi(4),
        "Pi" => 1024_f64.powi(5),
        "Ei" => 1024_f64.powi(6),
        exponent => 10_f64.powi(exponent.strip_prefix(['e', 'E'])?.parse().ok()?),
    };
    let value = number.parse::<f64>().ok()? * factor;
    // Beyond this, doubles and integers do not meet.
    #[allow(clippy::cast_possible_truncation)]
    match value.fract() == 0.0 && value.abs() < 9e15 {
        true => Some(Value::Integer(value as i64)),
        false if value.is_finite() => Some(Value::Double(value)),
        false => None,
    }
}
