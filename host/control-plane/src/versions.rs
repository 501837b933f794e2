//! The versions of the programs. They repeat what the go.mod files pin, and a test holds the two together;
//! nothing is ever resolved to "latest".

/// Kubernetes: API server, controller manager, scheduler.
pub const KUBERNETES: &str = "v1.34.4";
/// The API server of a newer Kubernetes, for what the other one does not have yet.
pub const NEWER_KUBERNETES: &str = "v1.36.3";
/// etcd.
pub const ETCD: &str = "v3.6.16";
/// kwok.
pub const KWOK: &str = "v0.8.0";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_modules_pin_the_same_versions() {
        assert!(include_str!("../kubernetes/go.mod").contains(&format!("k8s.io/kubernetes {KUBERNETES}")));
        let newer = format!("k8s.io/kubernetes {NEWER_KUBERNETES}");
        assert!(include_str!("../kubernetes-newer/go.mod").contains(&newer));
        assert!(include_str!("../etcd/go.mod").contains(&format!("go.etcd.io/etcd/server/v3 {ETCD}")));
        assert!(include_str!("../kwok/go.mod").contains(&format!("sigs.k8s.io/kwok {KWOK}")));
    }
}
