//! What is wrong with a composition is told when it is installed: where, what, and what to write instead.

use serde_json::Value;

/// A composition that is right, with this in the place of its resources.
const HEAD: &str = "name: web\nkind: {apiVersion: example.com/v1, kind: Web}\n";

/// What is written beside name and kind, and what is told of it.
#[rustfmt::skip]
const MISTAKES: &[(&str, &str)] = &[
    // Its fields.
    ("resource: []", "unknown field `resource`, expected one of `name`, `version`, `kind`, `lookups`, `variables`, `resources`, `status`, `conditions`; did you mean `resources`?"),
    ("resources: [{id: a, templat: {}}]", "resources[0].templat: unknown field `templat`"),
    ("resources: [{id: a, templat: {}}]", "did you mean `template`?"),
    ("resources: [{id: a}]", "resources[0]: missing field `template`"),
    ("resources: [{id: a, template: {}, onRemoval: Delet}]", "resources[0].onRemoval: unknown variant `Delet`, expected `Delete` or `Keep`"),
    ("resources: {}", "resources: invalid type: map, expected a sequence"),
    // Names.
    ("variables: [{id: My-Name, value: 1}]", "variables[0].id: `My-Name` is no name for expressions: it must begin with a small letter and go on with letters and digits, such as `webServer`"),
    ("variables: [{id: schema, value: 1}]", "variables[0].id: `schema` means something else in expressions; take another name"),
    ("variables: [{id: json, value: 1}]", "variables[0].id: `json` means something else in expressions; take another name"),
    ("variables: [{id: a, value: 1}, {id: a, value: 2}]", "variables[1].id: `a` is the name at variables[0].id already; take another one"),
    // Expressions.
    ("variables: [{id: a, value: '${shema.spec}'}]", "variables[0].value: `shema.spec`: there is nothing called `shema`; there are schema and a; did you mean `schema`?"),
    ("variables: [{id: a, value: {b: ['x${schema.spec +}']}}]", "variables[0].value.b[0]: `schema.spec +`: line 1, column"),
    ("variables: [{id: a, value: '${schema.spec'}]", "variables[0].value: an expression begins with ${ and does not end; close it with }, or write $${ for the text itself"),
    ("variables: [{id: a, value: '${schema.spec.name.matches(\"x\")}'}]", "variables[0].value: `schema.spec.name.matches(\"x\")`: there is no function `matches` for these arguments; there are size,"),
    ("variables: [{id: a, value: {'${schema.spec.key}': 1}}]", "the name of a field cannot have an expression; write the whole object as one, such as ${{schema.spec.key: 'value'}}"),
    ("status: {phase: '${deployment.status}'}", "status.phase: `deployment.status`: there is nothing called `deployment`; the object is `schema`"),
    // Children.
    ("resources: [{id: a, template: [1]}]", "resources[0].template: it must be an object with apiVersion, kind and metadata.name"),
    ("resources: [{id: a, template: {kind: Pod, metadata: {name: a}}}]", "resources[0].template.apiVersion: it is missing; write it out, such as `apiVersion: apps/v1`"),
    ("resources: [{id: a, template: {apiVersion: v1, kind: '${schema.spec.kind}', metadata: {name: a}}}]", "resources[0].template.kind: it cannot be an expression: what the plugin may write must be known when it is installed"),
    ("resources: [{id: a, template: {apiVersion: apps, kind: pod, metadata: {name: a}}}]", "resources[0].template.apiVersion: `apps` is no API version, such as apps/v1, or v1 for the core group; resources[0].template.kind: `pod` is no kind, such as Deployment"),
    ("resources: [{id: a, template: {apiVersion: v1, kind: Pod, metadata: {}}}]", "resources[0].template.metadata.name: it is missing; children are known by their names, such as ${schema.metadata.name}"),
    ("resources: [{id: a, template: {apiVersion: v1, kind: Pod, metadata: {name: a}, status: {}}}]", "resources[0].template.status: the status of a child belongs to its controller; leave it out"),
    ("resources: [{id: a, template: {apiVersion: example.com/v2, kind: Web, metadata: {name: a}}}]", "resources[0].template.kind: it is of the kind that the composition is about; children must be of another one"),
    ("resources: [{id: a, template: {apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}}, {id: b, template: {apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: b}}}]",
        "resources[1].template.apiVersion: resources[0] has the same kind in apps/v1, and an object is one in all versions of its kind; take that version"),
    ("resources: [{id: a, readyWhen: ['a.ok'], template: {apiVersion: v1, kind: Pod, metadata: {name: a}}}]", "resources[0].readyWhen[0]: it must be one expression in CEL, such as ${schema.spec.enabled}; write ${a.ok}"),
    ("resources: [{id: a, includeWhen: ['${a.ok}'], template: {apiVersion: v1, kind: Pod, metadata: {name: a}}}]", "resources[0].includeWhen: `a` cannot say by itself whether it is there; read something else"),
    ("resources: [{id: a, forEach: [{x: '${[1]}', y: '${[2]}'}], template: {apiVersion: v1, kind: Pod, metadata: {name: a}}}]", "resources[0].forEach[0]: it must be one name with a list, such as {port: \"${schema.spec.ports}\"}"),
    ("resources: [{id: a, forEach: [{a: '${[1]}'}], template: {apiVersion: v1, kind: Pod, metadata: {name: a}}}]", "resources[0].forEach[0]: `a` is a name already; take another one"),
    // Circles.
    ("resources: [{id: a, template: {apiVersion: v1, kind: Pod, metadata: {name: '${a.metadata.uid}'}}}]", "`a` reads `a`: that is a circle, in which nothing can be made first; take one of these references away"),
    ("variables: [{id: c, value: '${a.metadata.uid}'}]\nresources: [{id: a, template: {apiVersion: v1, kind: Pod, metadata: {name: '${b.metadata.uid}'}}}, {id: b, template: {apiVersion: v1, kind: Pod, metadata: {name: '${c}'}}}]",
        "`c` reads `a` reads `b` reads `c`: that is a circle"),
    // Lookups.
    ("lookups: [{id: a, apiVersion: v1, kind: Pod}]", "lookups[0]: it needs either `name`, for one object, or `labelSelector`, for a list of them"),
    ("lookups: [{id: a, apiVersion: v1, kind: Pod, name: a, labelSelector: b}]", "lookups[0]: it needs either `name`, for one object, or `labelSelector`, for a list of them"),
    ("lookups: [{id: a, apiVersion: v1, kind: Pod, name: a, allNamespaces: true}]", "lookups[0].allNamespaces: allNamespaces goes with labelSelector, and not with namespace"),
    ("lookups: [{id: a, apiVersion: v1, kind: pods, name: a}]", "lookups[0].kind: `pods` is no kind, such as Deployment"),
    ("lookups: [{id: a, apiVersion: v1, kind: Pod, name: a, missing: {reason: Not found, message: ''}}]", "lookups[0].missing.reason: it must be one word, such as ModelNotFound"),
    // What is told.
    ("status: {conditions: []}", "status.conditions: the host writes them; say yours under `conditions` beside `status`"),
    ("status: {observedGeneration: 1}", "status.observedGeneration: the host writes it; leave it out"),
    ("conditions: [{type: Reconciling, status: true, reason: A}]", "conditions[0].type: `Reconciling` is the host's own; take another type"),
    ("conditions: [{type: ready, status: true, reason: A}]", "conditions[0].type: `ready` is no type of a condition, such as Ready"),
    ("conditions: [{type: A, status: true, reason: A}, {type: A, status: true, reason: A}]", "conditions[1].type: there is a condition `A` already; take another type"),
];

fn told(composition: &str) -> Option<String> {
    let config = serde_saphyr::from_str::<Value>(composition);
    assert!(config.is_ok(), "{composition}: {config:?}");
    compose::configure(&config.ok()?.to_string()).err().map(|all| all.join("; "))
}

#[test]
fn each_mistake_is_told_with_its_place_and_with_what_is_right() {
    for (written, expected) in MISTAKES {
        let told = told(&format!("{HEAD}{written}\n"));
        assert!(
            told.as_ref().is_some_and(|told| told.contains(expected)),
            "{written}\n  told:     {told:?}\n  expected: {expected}"
        );
    }
}

#[test]
fn the_head_is_checked_too() {
    for (written, expected) in [
        ("kind: {apiVersion: example.com/v1, kind: Web}", "missing field `name`"),
        (
            "name: Web_1\nkind: {apiVersion: example.com/v1, kind: Web}",
            "name: it must be a DNS label: at most 63 of a-z, 0-9 and -",
        ),
        (
            "name: web\nkind: {apiVersion: v1, kind: Pod}",
            "kind.apiVersion: it must have a group, such as apps.example.com/v1",
        ),
        (
            "name: web\nkind: {apiVersion: example.com/one, kind: web}",
            "kind.apiVersion: `example.com/one` is no API version",
        ),
        ("name: web\nkind: {apiVersion: example.com/v1}", "kind: missing field `kind`"),
    ] {
        let told = told(written);
        assert!(told.as_ref().is_some_and(|told| told.contains(expected)), "{written}: {told:?}");
    }
}

#[test]
fn all_mistakes_are_told_at_once() {
    let told = told(&format!(
        "{HEAD}variables: [{{id: a, value: '${{x}}'}}, {{id: b, value: '${{y}}'}}]\nstatus: {{conditions: 1, z: '${{z}}'}}\n"
    ));
    let told = told.unwrap_or_default();
    for expected in ["variables[0].value: `x`", "variables[1].value: `y`", "status.conditions", "status.z: `z`"] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
}

#[test]
fn an_expression_that_is_wrong_is_told_once() {
    let told = told(&format!(
        "{HEAD}resources: [{{id: a, readyWhen: ['${{b.ok}}'], template: {{apiVersion: v1, kind: Pod, metadata: {{name: a}}}}}}]\n"
    ));
    let expected =
        "resources[0].readyWhen[0]: `b.ok`: there is nothing called `b`; there are schema and a; did you mean `a`?";
    assert_eq!(told.as_deref(), Some(expected));
}

#[test]
fn what_is_right_is_told_nothing_of() {
    for written in ["", "version: 1.2.3", "resources: []", "status: {a: 1}", "variables: [{id: a, value: '$${x}'}]"] {
        assert_eq!(told(&format!("{HEAD}{written}\n")), None, "{written}");
    }
}
