//! The guide of compositions, `docs/compose.md`: each YAML block in it is a `Plugin` or a part of a composition, and the plugin takes it.

use serde_json::{Map, Value, json};

const GUIDE: &str = include_str!("../../../docs/compose.md");

/// The YAML blocks of the guide.
fn blocks() -> Vec<&'static str> {
    GUIDE.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

/// A block as a whole composition: a part of one gets a name and a kind.
fn composition(block: &Value) -> Value {
    if block["kind"] == "Plugin" {
        return block["spec"]["config"].clone();
    }
    let head = json!({"name": "guide", "kind": {"apiVersion": "guide.example.com/v1", "kind": "Guide"}});
    let fields = [head, block.clone()].into_iter().filter_map(|part| part.as_object().cloned());
    Value::Object(fields.flatten().collect::<Map<_, _>>())
}

#[test]
fn every_block_of_the_guide_is_right() {
    let blocks = blocks();
    assert!(blocks.len() >= 4, "the guide is written in another way: {} blocks", blocks.len());
    for block in blocks {
        let read = serde_saphyr::from_str::<Value>(block);
        assert!(read.is_ok(), "{block}\n{read:?}");
        let composition = composition(&read.unwrap_or_default());
        let told = compose::configure(&composition.to_string());
        assert!(told.is_ok(), "{block}\n{told:?}");
    }
}

/// The composition that `docs/coming-from.md` shows.
#[test]
fn the_composition_beside_other_frameworks_is_right() {
    let text = include_str!("../../../tests/fixtures/coming-from/pilothouse.yaml");
    let read = serde_saphyr::from_str::<Value>(text);
    assert!(read.is_ok(), "{read:?}");
    let told = compose::configure(&read.unwrap_or_default().to_string());
    assert!(told.is_ok(), "{told:?}");
}

/// What the guide says of functions is what there is.
#[test]
fn every_function_of_the_guide_is_there() {
    let rows = GUIDE.lines().filter(|line| {
        ["| texts |", "| lists |", "| maps |", "| numbers |", "| types |"].iter().any(|of| line.starts_with(of))
    });
    let functions = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    // How each is called with arguments that it takes.
    let of = |function: &str| {
        let name = function.split('(').next().unwrap_or_default();
        Some(match name {
            "in" => "1 in [1]".to_owned(),
            "'%s of %d'.format" => "'%s of %d'.format(['a', 1])".to_owned(),
            "size" | "lowerAscii" | "upperAscii" | "trim" => format!("'a'.{name}()"),
            "contains" | "startsWith" | "endsWith" | "indexOf" | "split" => format!("'a'.{name}('a')"),
            "replace" => "'a'.replace('a', 'b')".to_owned(),
            "substring" => "'abc'.substring(0, 1)".to_owned(),
            "join" => "['a'].join('-')".to_owned(),
            "sum" | "min" | "max" | "sort" | "distinct" => format!("[1].{name}()"),
            "flatten" => "[[1]].flatten()".to_owned(),
            "merge" => "{'a': 1}.merge({'b': 2})".to_owned(),
            "math.greatest" | "math.least" => format!("{name}(1, 2)"),
            "quantity" | "isQuantity" | "int" | "double" | "string" | "type" | "json.unmarshal" => {
                format!("{name}('1')")
            }
            "bool" => "bool('true')".to_owned(),
            "json.marshal" => "json.marshal([1])".to_owned(),
            _ => return None,
        })
    };
    let mut number = 0;
    for function in functions {
        let call = of(function);
        assert!(call.is_some(), "`{function}` has no example here");
        let config = json!({
            "name": "guide", "kind": {"apiVersion": "guide.example.com/v1", "kind": "Guide"},
            "status": {"value": format!("${{{}}}", call.unwrap_or_default())},
        });
        let told = compose::configure(&config.to_string());
        assert!(told.is_ok(), "{function}: {told:?}");
        number += 1;
    }
    assert!(number > 30, "{number} functions");
}
