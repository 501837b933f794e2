//! The command line of each part. Every one names the control plane's directory, which is how its processes are
//! recognised later. Pure: nothing is started or written here.

use crate::layout::Layout;
use crate::ports::Ports;
use crate::{Options, Part, stages};
use std::path::Path;

/// A /16, so that thousands of Services find an address.
const SERVICE_RANGE: &str = "10.0.0.0/16";
/// Apart from the service range, and large enough for every Pod that fits on the node.
const POD_RANGE: &str = "10.244.0.0/16";

pub(crate) fn of(part: Part, layout: &Layout, ports: &Ports, options: &Options) -> Vec<String> {
    match part {
        Part::Etcd => etcd(layout, ports),
        Part::ApiServer => api_server(layout, ports, options),
        Part::ControllerManager => controller_manager(layout, ports, options),
        Part::Scheduler => scheduler(layout, ports),
        Part::Kwok => kwok(layout, ports),
    }
}

fn etcd(layout: &Layout, ports: &Ports) -> Vec<String> {
    let client = format!("http://127.0.0.1:{}", ports.etcd);
    vec![
        path("data-dir", &layout.etcd_data()),
        flag("listen-client-urls", &client),
        flag("advertise-client-urls", &client),
        flag("listen-peer-urls", &format!("http://127.0.0.1:{}", ports.etcd_peer)),
        // Losing the data in a power cut is fine; waiting for the disk is not.
        "--unsafe-no-fsync".into(),
        flag("log-level", "warn"),
    ]
}

fn api_server(layout: &Layout, ports: &Ports, options: &Options) -> Vec<String> {
    let mut arguments = vec![
        flag("etcd-servers", &format!("http://127.0.0.1:{}", ports.etcd)),
        flag("bind-address", "127.0.0.1"),
        flag("advertise-address", "127.0.0.1"),
        flag("secure-port", &ports.api_server.to_string()),
        // A loopback address may not stand in Endpoints; without this the server tries and fails every ten seconds.
        flag("endpoint-reconciler-type", "none"),
        flag("authorization-mode", "RBAC"),
        path("token-auth-file", &layout.tokens()),
        flag("service-account-issuer", "https://kubernetes.default.svc"),
        path("service-account-key-file", &layout.pki("accounts.pub")),
        path("service-account-signing-key-file", &layout.pki("accounts.key")),
        flag("service-cluster-ip-range", SERVICE_RANGE),
        flag("allow-privileged", "true"),
        flag("max-requests-inflight", "2000"),
        flag("max-mutating-requests-inflight", "1000"),
    ];
    arguments.extend(serving(layout));
    if !options.parts.contains(Part::ControllerManager) {
        // Without a controller manager no namespace gets a service account, and no Pod could be created.
        arguments.push(flag("disable-admission-plugins", "ServiceAccount"));
    }
    if options.audit_log {
        arguments.push(path("audit-policy-file", &layout.audit_policy()));
        arguments.push(path("audit-log-path", &layout.audit_log()));
        // Blocking: a request's line is in the file before its answer is sent.
        arguments.push(flag("audit-log-mode", "blocking"));
        arguments.push(flag("audit-log-format", "json"));
        // Never rotated, or counts would lose lines.
        arguments.push(flag("audit-log-maxsize", "100000"));
    }
    arguments.extend(options.api_args.iter().cloned());
    arguments
}

fn controller_manager(layout: &Layout, ports: &Ports, options: &Options) -> Vec<String> {
    let mut arguments = vec![
        path("service-account-private-key-file", &layout.pki("accounts.key")),
        path("root-ca-file", &layout.pki("ca.crt")),
        "--use-service-account-credentials".into(),
        flag("kube-api-qps", "500"),
        flag("kube-api-burst", "1000"),
        // Every 15 s by default, and tests wait for several rounds.
        flag("horizontal-pod-autoscaler-sync-period", "1s"),
    ];
    arguments.extend(options.controllers.map(|names| flag("controllers", &names.join(","))));
    arguments.extend(client_of_api_server(layout, ports.controller_manager));
    arguments
}

fn scheduler(layout: &Layout, ports: &Ports) -> Vec<String> {
    let mut arguments = vec![flag("kube-api-qps", "500"), flag("kube-api-burst", "1000")];
    arguments.extend(client_of_api_server(layout, ports.scheduler));
    arguments
}

fn kwok(layout: &Layout, ports: &Ports) -> Vec<String> {
    let mut arguments = vec![
        path("kubeconfig", &layout.kubeconfig(crate::ADMIN)),
        flag("manage-all-nodes", "true"),
        flag("node-lease-duration-seconds", "40"),
        flag("node-ip", "127.0.0.1"),
        flag("cidr", POD_RANGE),
        flag("server-address", &format!("127.0.0.1:{}", ports.kwok)),
    ];
    arguments.extend(stages::paths(layout).map(|stage| path("config", &stage)));
    arguments
}

/// Shared by controller manager and scheduler.
fn client_of_api_server(layout: &Layout, port: u16) -> Vec<String> {
    let mut arguments = vec![
        path("kubeconfig", &layout.kubeconfig(crate::ADMIN)),
        flag("leader-elect", "false"),
        flag("bind-address", "127.0.0.1"),
        flag("secure-port", &port.to_string()),
    ];
    arguments.extend(serving(layout));
    arguments
}

fn serving(layout: &Layout) -> [String; 2] {
    [path("tls-cert-file", &layout.pki("serving.crt")), path("tls-private-key-file", &layout.pki("serving.key"))]
}

fn flag(name: &str, value: &str) -> String {
    format!("--{name}={value}")
}

fn path(name: &str, value: &Path) -> String {
    format!("--{name}={}", value.display())
}
