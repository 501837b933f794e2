//! What stands around the Pods, where it is asked for, and what is said where the cluster lacks a kind.

use crate::case::{case, children, run, without_monitors};
use llm_serving::gateway::Pool;
use llm_serving::testing::{Children, condition};
use pilothouse_sdk::{Error, Verdict};
use serde_json::json;

#[test]
fn nothing_stands_around_pods_unless_it_is_asked_for() -> Result<(), Error> {
    assert_eq!(children("replicas: 1")?.names(), ["Deployment llmmodel-chat", "Service llmmodel-chat"]);
    Ok(())
}

#[test]
fn a_network_policy_lets_only_some_peers_in() -> Result<(), Error> {
    let from = |spec: &str| -> Result<serde_json::Value, Error> {
        Ok(children(spec)?.only("NetworkPolicy")?["spec"]["ingress"][0].clone())
    };
    let ports = json!([{ "port": 8000, "protocol": "TCP" }]);
    assert_eq!(from("networkPolicy: {}")?, json!({ "from": [{ "podSelector": {} }], "ports": ports }));
    let given = from("networkPolicy: {from: [{ipBlock: {cidr: 10.0.0.0/8}}]}")?;
    assert_eq!(given, json!({ "from": [{ "ipBlock": { "cidr": "10.0.0.0/8" } }], "ports": ports }));
    Ok(())
}

#[test]
fn monitors_scrape_the_metrics_of_the_engine() -> Result<(), Error> {
    for (kind, endpoints) in [("ServiceMonitor", "endpoints"), ("PodMonitor", "podMetricsEndpoints")] {
        let children = children(&format!("monitor: {{kind: {kind}, interval: 15s, labels: {{release: prometheus}}}}"))?;
        let monitor = children.only(kind)?;
        assert_eq!(monitor["spec"][endpoints], json!([{ "port": "http", "path": "/metrics", "interval": "15s" }]));
        assert_eq!(monitor["metadata"]["labels"]["release"], "prometheus");
        // Of a Service only that of the clients: through the headless one, too, each Pod would be scraped twice.
        let role = &monitor["spec"]["selector"]["matchLabels"]["llm.example.com/service"];
        let service = &children.only("Service")?["metadata"]["labels"]["llm.example.com/service"];
        assert_eq!((role == "clients", service), (kind == "ServiceMonitor", &json!("clients")));
    }
    Ok(())
}

#[test]
fn a_kind_that_is_not_installed_is_told_and_stops_nothing() -> Result<(), Error> {
    let answer = run(without_monitors(case("replicas: 1, monitor: {kind: ServiceMonitor}")?))?;
    assert_eq!(answer.verdict(), &Verdict::Done);
    assert_eq!(Children::of(&answer)?.names(), ["Deployment llmmodel-chat", "Service llmmodel-chat"]);
    assert_eq!(condition(&answer, "KindsInstalled"), "False KindNotInstalled");
    let message = answer.condition("KindsInstalled").map(|condition| condition.message.as_str());
    let expected = "spec.monitor needs monitoring.coreos.com/v1 ServiceMonitor, which is not installed in this cluster; install \
                    it, or remove the field";
    assert_eq!(message, Some(expected));
    Ok(())
}

#[test]
fn an_ingress_leads_to_the_service() -> Result<(), Error> {
    let children = children("ingress: {host: llm.example.com, className: nginx, tlsSecretName: certificate}")?;
    let spec = &children.only("Ingress")?["spec"];
    let service = json!({ "name": "llmmodel-chat", "port": { "name": "http" } });
    let path = json!({ "path": "/", "pathType": "Prefix", "backend": { "service": service } });
    assert_eq!(spec["rules"], json!([{ "host": "llm.example.com", "http": { "paths": [path] } }]));
    assert_eq!(spec["tls"], json!([{ "secretName": "certificate", "hosts": ["llm.example.com"] }]));
    assert_eq!(spec["ingressClassName"], "nginx");
    Ok(())
}

#[test]
fn a_route_leads_to_the_pool_or_to_the_service() -> Result<(), Error> {
    let route = "httpRoute: {gateway: {name: public}, hostnames: [llm.example.com]}";
    let pool = "inferencePool: {endpointPicker: {name: picker}}";
    let backend = |answer: &pilothouse_sdk::testing::Answer| -> Result<serde_json::Value, Error> {
        Ok(Children::of(answer)?.only("HTTPRoute")?["spec"]["rules"][0]["backendRefs"].clone())
    };
    let service = json!([{ "name": "llmmodel-chat", "port": 8000 }]);
    assert_eq!(backend(&run(case(route)?)?)?, service);
    let both = format!("{route}, {pool}");
    let of_pool = json!([{ "group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "llmmodel-chat" }]);
    assert_eq!(backend(&run(case(&both)?)?)?, of_pool);
    let without_pool = run(case(&both)?.not_installed::<Pool>())?;
    assert_eq!(backend(&without_pool)?, service);
    assert_eq!(condition(&without_pool, "KindsInstalled"), "False KindNotInstalled");
    let spec = children(pool)?.only("InferencePool")?["spec"]["endpointPickerRef"].clone();
    assert_eq!(spec, json!({ "name": "picker", "port": { "number": 9002 } }));
    Ok(())
}
