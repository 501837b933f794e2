//! What compositions make of objects: order, what is waited for, what is left out, and what stays as it is.

use pilothouse_sdk::testing::{Answer, Case};
use pilothouse_sdk::{ConditionStatus, Error, Verdict, raw};
use serde_json::{Value, json};

fn parse(text: &str) -> Result<Value, Error> {
    serde_saphyr::from_str(text).map_err(|error| Error::Test(format!("{error}: {text}")))
}

/// An object with this spec and this composition beside its head.
fn case(spec: &str, composition: &str) -> Result<Case, Error> {
    let object = json!({
        "apiVersion": "example.com/v1", "kind": "Web",
        "metadata": {"name": "web", "namespace": "shop", "uid": "u", "generation": 1}, "spec": parse(spec)?,
    });
    let composition = format!("name: web\nkind: {{apiVersion: example.com/v1, kind: Web}}\n{composition}");
    Ok(Case::of(object).config(parse(&composition)?))
}

fn run(case: Case) -> Result<Answer, Error> {
    case.run_raw(compose::reconcile_raw)
}

/// The children in short: their kinds and names, with `=` for those that stay as they are; none if all do.
fn children(answer: &Answer) -> Result<Option<Vec<String>>, Error> {
    let Some(children) = &answer.response.children else { return Ok(None) };
    let short = |child: &raw::Child| {
        let object = parse(&child.object)?;
        let stays = if child.handling == raw::Handling::Keep { "=" } else { "" };
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(format!("{stays}{} {}", text("/kind"), text("/metadata/name")))
    };
    children.iter().map(short).collect::<Result<Vec<_>, Error>>().map(Some)
}

/// The first child of that kind.
fn child(answer: &Answer, kind: &str) -> Result<Value, Error> {
    let all = answer.response.children.iter().flatten().map(|child| parse(&child.object));
    let all = all.collect::<Result<Vec<_>, _>>()?;
    all.into_iter().find(|child| child["kind"] == kind).ok_or_else(|| Error::Test(format!("there is no {kind}")))
}

/// What is waited for, in short: the reason and the message.
fn waits(answer: &Answer) -> String {
    match answer.verdict() {
        Verdict::Wait(waiting) => format!("{}: {}", waiting.reason, waiting.message),
        other => format!("{other:?}"),
    }
}

const NAMED: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: first}, data: {a: '${schema.spec.a}'}}";

/// A second child that reads the first one.
const CHAIN: &str = "
resources:
- id: second
  template: {apiVersion: v1, kind: Secret, metadata: {name: second}, stringData: {uid: '${first.metadata.uid}', port: '${string(first.data.port)}'}}
- id: first
  readyWhen: ['${first.data.ok == \"yes\"}']
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: first}}
";

#[test]
fn a_child_comes_once_the_one_that_it_reads_is_there_and_ready() -> Result<(), Error> {
    let steps: &[(Option<&str>, &[&str], &str)] = &[
        (
            None,
            &["ConfigMap first"],
            "AwaitingResources: resources[0].template.stringData.port: `string(first.data.port)`: `first` is not there yet",
        ),
        (
            Some("{}"),
            &["ConfigMap first"],
            "AwaitingResources: resources[0].template.stringData.port: `string(first.data.port)`: there is no field `port`",
        ),
        (
            Some("{port: '80', ok: no}"),
            &["ConfigMap first"],
            "AwaitingResources: resources[0]: `second` waits until `first` is ready",
        ),
        (Some("{port: '80', ok: yes}"), &["Secret second", "ConfigMap first"], "Done"),
    ];
    for (data, expected, waiting) in steps {
        let mut case = case("{}", CHAIN)?;
        if let Some(data) = data {
            let data = parse(&data.replace("yes", "'yes'").replace("no}", "'no'}"))?;
            case = case.child(json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "first", "namespace": "shop", "uid": "f"}, "data": data,
            }));
        }
        let answer = run(case)?;
        assert_eq!(children(&answer)?.unwrap_or_default(), *expected, "{data:?}");
        assert!(waits(&answer).contains(waiting), "{data:?}: {}", waits(&answer));
    }
    Ok(())
}

#[test]
fn a_child_that_lives_stays_and_is_kept_right_whatever_becomes_of_the_one_that_it_reads() -> Result<(), Error> {
    let second = "{apiVersion: v1, kind: Secret, metadata: {name: second, namespace: shop, uid: s}}";
    let first = |data: &str| {
        format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: first, namespace: shop, uid: f}}, data: {data}}}")
    };
    let with = |first: Option<String>| -> Result<Answer, Error> {
        let case = case("{}", CHAIN)?.child_yaml(second);
        run(match first {
            Some(first) => case.child_yaml(&first),
            None => case,
        })
    };
    let unready = with(Some(first("{port: '80', ok: 'no'}")))?;
    assert_eq!(children(&unready)?.unwrap_or_default(), ["Secret second", "ConfigMap first"], "its value is known");
    assert!(
        waits(&unready)
            .contains("NotReady: resources[1].readyWhen[0]: `first.data.ok == \"yes\"` is not true of `first`")
    );
    for gone in [None, Some(first("{}"))] {
        let answer = with(gone)?;
        assert_eq!(children(&answer)?.unwrap_or_default(), ["=Secret second", "ConfigMap first"]);
        assert!(waits(&answer).starts_with("AwaitingResources"));
    }
    Ok(())
}

#[test]
fn children_whose_names_are_not_known_yet_stay() -> Result<(), Error> {
    let composition = "
resources:
- id: first
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: first}}
- id: named
  template: {apiVersion: v1, kind: Secret, metadata: {name: '${first.data.name}'}}
- id: listed
  forEach: [{name: '${first.data.names.split(\",\")}'}]
  template: {apiVersion: v1, kind: Service, metadata: {name: '${name}'}}
";
    let mut case = case("{}", composition)?;
    for (kind, name) in [("Secret", "one"), ("Service", "two"), ("Service", "three")] {
        case = case.child(
            json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "shop", "uid": name}}),
        );
    }
    let answer = run(case)?;
    let expected = ["ConfigMap first", "=Secret one", "=Service two", "=Service three"];
    assert_eq!(children(&answer)?.unwrap_or_default(), expected, "an error or a wait deletes nothing");
    Ok(())
}

#[test]
fn what_is_not_included_is_not_there_nor_is_what_reads_it() -> Result<(), Error> {
    let composition = "
resources:
- id: ingress
  includeWhen: ['${schema.spec.public}', '${schema.spec.replicas > 0}']
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: ingress}}
- id: follower
  template: {apiVersion: v1, kind: Secret, metadata: {name: '${ingress.metadata.name}-tls'}}
status: {address: '${ingress.metadata.name}', isPublic: '${ingress != null}'}
conditions: [{type: Exposed, status: '${ingress.metadata.name != \"\"}', reason: Exposed}]
";
    let answer = run(case("{public: false, replicas: 1}", composition)?)?;
    assert_eq!((children(&answer)?.unwrap_or_default().len(), answer.verdict()), (0, &Verdict::Done));
    assert_eq!(answer.status::<Value>()?, json!({"isPublic": false}));
    assert_eq!(answer.response.conditions, []);
    let there = "{apiVersion: v1, kind: ConfigMap, metadata: {name: ingress, namespace: shop, uid: i}}";
    let answer = run(case("{public: true, replicas: 1}", composition)?.child_yaml(there))?;
    assert_eq!(children(&answer)?.unwrap_or_default(), ["ConfigMap ingress", "Secret ingress-tls"]);
    assert_eq!(answer.status::<Value>()?, json!({"address": "ingress", "isPublic": true}));
    assert_eq!(answer.condition("Exposed").map(|it| it.status), Some(ConditionStatus::IsTrue));
    Ok(())
}

#[test]
fn there_is_a_child_for_each_element_of_all_lists() -> Result<(), Error> {
    let composition = "
resources:
- id: shard
  forEach: [{zone: '${schema.spec.zones}'}, {size: '${schema.spec.sizes}'}]
  readyWhen: ['${each.data.ready == \"yes\"}']
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: 'shard-${zone}-${size}'}, data: {zone: '${zone}'}}
status: {shards: '${shard.map(s, s.metadata.name)}'}
";
    let shard = |name: &str, ready: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop", "uid": name}, "data": {"ready": ready}});
    let spec = "{zones: [a, b], sizes: [1, 2]}";
    let names = ["shard-a-1", "shard-a-2", "shard-b-1", "shard-b-2"];
    let answer = run(case(spec, composition)?)?;
    let expected: Vec<_> = names.iter().map(|name| format!("ConfigMap {name}")).collect();
    assert_eq!(children(&answer)?.unwrap_or_default(), expected);
    assert_eq!(answer.status::<Value>()?, json!({}), "it is not known before all of them are there");
    let live = |ready: &'static str| {
        names.iter().map(move |name| shard(name, if *name == "shard-b-1" { ready } else { "yes" }))
    };
    let answer = run(live("no").fold(case(spec, composition)?, Case::child))?;
    assert!(waits(&answer).contains("`each.data.ready == \"yes\"` is not true of `shard`"), "{}", waits(&answer));
    let answer = run(live("yes").fold(case(spec, composition)?, Case::child))?;
    assert_eq!((answer.verdict(), answer.status::<Value>()?), (&Verdict::Done, json!({"shards": names})));
    let fewer = run(live("yes").fold(case("{zones: [a], sizes: [1]}", composition)?, Case::child))?;
    assert_eq!(children(&fewer)?.unwrap_or_default(), ["ConfigMap shard-a-1"], "the others go");
    Ok(())
}

/// What its user writes does not come by itself: the object is refused, with the place, and nothing is deleted.
#[test]
fn a_mistake_in_the_object_is_told_and_deletes_nothing() -> Result<(), Error> {
    let composition = format!("resources: [{{id: first, template: {NAMED}}}]");
    let live = "{apiVersion: v1, kind: ConfigMap, metadata: {name: first, namespace: shop, uid: f}}";
    for (spec, expected) in [
        ("{}", "resources[0].template.data.a: `schema.spec.a`: there is no field `a`"),
        ("[]", "resources[0].template.data.a: `schema.spec.a`: a field needs a map, not a list"),
    ] {
        let answer = run(case(spec, &composition)?.child_yaml(live))?;
        assert_eq!(answer.verdict(), &Verdict::Invalid(expected.to_owned()), "{spec}");
        assert_eq!(children(&answer)?.unwrap_or_default(), ["=ConfigMap first"], "{spec}");
    }
    Ok(())
}

const LOOKUP: &str = "
lookups:
- {id: model, apiVersion: example.com/v1, kind: Model, name: '${schema.spec.model}'}
- {id: extra, apiVersion: example.com/v1, kind: Extra, name: extra, optional: true}
- {id: peers, apiVersion: v1, kind: Service, labelSelector: 'team=${schema.spec.team}', namespace: '${schema.spec.of}'}
resources:
- id: first
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: first}
    data: {image: '${model.spec.image}', extra: '${extra.?spec.?text.orValue(\"none\")}', peers: '${peers.map(p, p.metadata.name).join(\",\")}'}
conditions: [{type: ModelFound, status: '${model != null}', reason: '${model == null ? \"Missing\" : \"Found\"}'}]
";

#[test]
fn objects_of_others_are_read_and_waited_for() -> Result<(), Error> {
    let spec = "{model: small, team: red, of: other}";
    let object = |kind: &str, version: &str, name: &str, namespace: &str, spec: Value| json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace, "labels": {"team": "red"}}, "spec": spec});
    let peer = object("Service", "v1", "peer", "other", json!({}));
    let missing = run(case(spec, LOOKUP)?.found(peer.clone()))?;
    assert_eq!(children(&missing)?, None, "everything stays as it is");
    assert_eq!(
        waits(&missing),
        "LookupMissing: Model 'small' of example.com/v1 does not exist; create it. Until then everything stays as it is"
    );
    assert_eq!(
        missing.condition("ModelFound").map(|it| (it.status, it.reason.as_str())),
        Some((ConditionStatus::IsFalse, "Missing"))
    );
    let model = |spec: Value| object("Model", "example.com/v1", "small", "shop", spec);
    let late = run(case(spec, LOOKUP)?.found(peer.clone()).found(model(json!({}))))?;
    assert!(waits(&late).contains(
        "AwaitingResources: resources[0].template.data.image: `model.spec.image`: there is no field `image`"
    ));
    let there = run(case(spec, LOOKUP)?.found(peer.clone()).found(model(json!({"image": "x:1"}))))?;
    assert_eq!(child(&there, "ConfigMap")?["data"], json!({"image": "x:1", "extra": "none", "peers": "peer"}));
    let extra = object("Extra", "example.com/v1", "extra", "shop", json!({"text": "more"}));
    let all = run(case(spec, LOOKUP)?.found(peer).found(model(json!({"image": "x:1"}))).found(extra))?;
    assert_eq!(child(&all, "ConfigMap")?["data"]["extra"], "more");
    Ok(())
}

#[test]
fn a_condition_that_is_not_known_yet_says_so_and_ready_is_the_hosts_meanwhile() -> Result<(), Error> {
    let composition = "
resources: [{id: first, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: first}}}]
conditions:
- {type: Known, status: '${schema.spec.on}', reason: Known, message: 'it is ${schema.spec.on}'}
- {type: Later, status: '${first.data.on == \"yes\"}', reason: Later}
- {type: Ready, status: true, reason: Ready}
";
    let answer = run(case("{on: true}", composition)?)?;
    let said = |name: &str| answer.condition(name).map(|it| (it.status, it.reason.as_str(), it.message.as_str()));
    assert_eq!(said("Known"), Some((ConditionStatus::IsTrue, "Known", "it is true")));
    let why = "conditions[1].status: `first.data.on == \"yes\"`: `first` is not there yet";
    let later = answer
        .condition("Later")
        .map(|it| (it.status, it.reason.as_str(), it.message.contains("`first` is not there")));
    assert_eq!(later, Some((ConditionStatus::Unknown, "NotKnownYet", true)), "{why}");
    assert_eq!(said("Ready").map(|it| it.0), Some(ConditionStatus::IsTrue));
    let mut waiting =
        case("{on: true}", &format!("{composition}\nlookups: [{{id: gone, apiVersion: v1, kind: Node, name: x}}]"))?;
    waiting = waiting.child_yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: first, namespace: shop, uid: f}}");
    assert_eq!(run(waiting)?.condition("Ready"), None);
    Ok(())
}

#[test]
fn how_the_host_treats_a_child_is_said_beside_its_template() -> Result<(), Error> {
    let composition = "
resources:
- id: first
  handling: Create
  onImmutable: Recreate
  onRemoval: Keep
  unmanagedFields: [/data/x]
  template: {apiVersion: v1, kind: Secret, metadata: {name: first}}
";
    let answer = run(case("{}", composition)?)?;
    let child = answer.response.children.iter().flatten().next();
    let treated = child.map(|it| (it.handling, it.on_immutable, it.on_removal, it.unmanaged_fields.clone()));
    let expected =
        (raw::Handling::Create, raw::ImmutablePolicy::Recreate, raw::RemovalPolicy::Keep, vec!["/data/x".to_owned()]);
    assert_eq!(treated, Some(expected));
    Ok(())
}

#[test]
fn lists_that_are_too_long_are_refused() -> Result<(), Error> {
    let composition = "
resources:
- id: many
  forEach: [{a: '${schema.spec.list}'}, {b: '${schema.spec.list}'}]
  template: {apiVersion: v1, kind: Secret, metadata: {name: 'n-${a}-${b}'}}
";
    let list: Vec<_> = (0..30).collect();
    let answer = run(case(&json!({"list": list}).to_string(), composition)?)?;
    let expected = "resources[0].forEach[1].b: it makes more than 500 children";
    assert_eq!(answer.verdict(), &Verdict::Invalid(expected.to_owned()));
    Ok(())
}

/// The manifest of a composition is as narrow as its expressions allow.
#[test]
fn a_plugin_asks_for_what_its_expressions_read() -> Result<(), Error> {
    let composition = format!("name: web\nkind: {{apiVersion: example.com/v1, kind: Web}}\n{LOOKUP}");
    let text = compose::configure(&parse(&composition)?.to_string()).map_err(|all| Error::Test(all.join("; ")))?;
    let manifest = parse(&text)?;
    assert_eq!(
        manifest["lookups"],
        json!([
            {"apiVersion": "example.com/v1", "kind": "Model"},
            {"apiVersion": "example.com/v1", "kind": "Extra"},
            {"apiVersion": "v1", "kind": "Service", "allNamespaces": true},
        ])
    );
    assert_eq!(manifest["reads"], json!(["/spec/model", "/spec/of", "/spec/team"]));
    let fixed = "name: web
kind: {apiVersion: example.com/v1, kind: Web}
lookups:
- {id: pods, apiVersion: v1, kind: Pod, labelSelector: app=web}
- {id: node, apiVersion: v1, kind: Node, name: first}
status: {number: '${pods.size()}', zone: '${node.metadata.labels.zone}', whole: '${schema}'}
";
    let text = compose::configure(&parse(fixed)?.to_string()).map_err(|all| Error::Test(all.join("; ")))?;
    let manifest = parse(&text)?;
    assert_eq!(
        manifest["lookups"],
        json!([
            {"apiVersion": "v1", "kind": "Pod", "labelSelector": "app=web"},
            {"apiVersion": "v1", "kind": "Node", "metadataOnly": true},
        ])
    );
    assert_eq!(manifest.get("reads"), None, "it reads all of the object");
    Ok(())
}
