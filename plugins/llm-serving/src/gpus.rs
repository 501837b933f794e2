//! The GPUs of a Pod: how it asks for them, and on which nodes it finds them. Requests are limits: a GPU is never shared by chance.

use crate::config::GpuConfig;
use crate::parallelism::Parallelism;
use crate::quantity::mebibytes;
use crate::server_spec::ServerSpec;
use crate::spec_error::SpecError;
use pilothouse_pods::gpu::DEFAULT_RESOURCE;
use pilothouse_pods::name::{MAX_LABEL, dns_label};
use serde_json::{Value, json};

/// The name of the GPUs among the resource claims of a Pod.
const CLAIM: &str = "gpus";

/// The GPUs of each Pod of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpus<'a> {
    /// How many.
    pub count: u32,
    /// How the server is spread over them, and over nodes.
    pub parallelism: Parallelism,
    /// The type, if only one will do.
    pub gpu_type: Option<&'a str>,
    /// How the Pod asks for them.
    pub request: GpuRequest<'a>,
    /// The least memory of each, in MiB.
    memory: Option<u128>,
}

/// How a Pod asks for GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuRequest<'a> {
    /// By a resource, in limits and requests.
    Resource(&'a str),
    /// By a resource claim for devices of a class.
    Devices(&'a str),
}

impl<'a> Gpus<'a> {
    /// The GPUs of each Pod. Who asks for a type or a size of GPUs, and not for a number of them, asks for one.
    ///
    /// # Errors
    /// The memory is no quantity, or the resources ask for the GPUs once more.
    pub fn of(spec: &ServerSpec<'a>, config: &GpuConfig) -> Result<Self, SpecError> {
        let model = spec.model;
        let memory = match &model.gpu_memory {
            None => None,
            Some(value) => Some(mebibytes(value).ok_or_else(|| SpecError::InvalidQuantity {
                field: "gpuMemory",
                value: value.as_str().map_or_else(|| value.to_string(), str::to_owned),
            })?),
        };
        let gpu_type = model.gpu_type.as_deref();
        let asks_otherwise = gpu_type.is_some() || memory.is_some() || model.gpu_device_class.is_some();
        let resource = model.gpu_resource.as_deref().unwrap_or(DEFAULT_RESOURCE);
        let request = model.gpu_device_class.as_deref().map_or(GpuRequest::Resource(resource), GpuRequest::Devices);
        let tensor = spec.gpu_count.unwrap_or(u32::from(asks_otherwise));
        let parallelism = Parallelism::of(spec.spread, tensor, config.per_node());
        let count = parallelism.gpus_per_pod();
        let resources = &spec.resources;
        if count > 0 && (resources.limits.contains_key(resource) || resources.requests.contains_key(resource)) {
            return Err(SpecError::GpusGivenTwice { field: spec.gpu_count_field, resource: resource.to_owned() });
        }
        Ok(Self { count, parallelism, gpu_type, request, memory })
    }

    /// Adds the GPUs to the resources of the server's container.
    pub fn add_to(&self, resources: &mut Value) {
        match self.request {
            _ if self.count == 0 => {}
            GpuRequest::Resource(resource) => {
                for field in ["limits", "requests"] {
                    resources[field][resource] = json!(self.count.to_string());
                }
            }
            GpuRequest::Devices(_) => resources["claims"] = json!([{ "name": CLAIM }]),
        }
    }

    /// The resource by which the Pod asks for GPUs, whose taint it then tolerates.
    pub fn resource(&self) -> Option<&'a str> {
        match self.request {
            GpuRequest::Resource(resource) if self.count > 0 => Some(resource),
            _ => None,
        }
    }

    /// The affinity to nodes with the right GPUs.
    pub fn node_affinity(&self, config: &GpuConfig) -> Option<Value> {
        let mut expressions = Vec::new();
        if let Some(gpu_type) = self.gpu_type {
            let products = config.products(gpu_type).unwrap_or_else(|| vec![gpu_type.into()]);
            expressions.push(json!({ "key": config.product_label(), "operator": "In", "values": products }));
        }
        if let Some(memory) = self.memory {
            let less = memory.saturating_sub(1).to_string();
            expressions.push(json!({ "key": config.memory_label(), "operator": "Gt", "values": [less] }));
        }
        if expressions.is_empty() {
            return None;
        }
        let terms = json!({ "nodeSelectorTerms": [{ "matchExpressions": expressions }] });
        Some(json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": terms } }))
    }

    /// Whether no table knows the type.
    pub fn has_unknown_type(&self, config: &GpuConfig) -> Option<&'a str> {
        self.gpu_type.filter(|gpu_type| config.products(gpu_type).is_none())
    }

    /// The resource claims of the Pod.
    pub fn pod_claims(&self, workload: &str) -> Value {
        match self.claim_template_name(workload) {
            Some(name) => json!([{ "name": CLAIM, "resourceClaimTemplateName": name }]),
            None => Value::Null,
        }
    }

    /// The template of the Pods' resource claims. Its name follows from all that it says: it cannot be changed, and Pods are only
    /// replaced where their own template changes.
    pub fn claim_template(&self, workload: &str) -> Option<Value> {
        let (GpuRequest::Devices(class), Some(name)) = (self.request, self.claim_template_name(workload)) else {
            return None;
        };
        let exactly = json!({ "deviceClassName": class, "allocationMode": "ExactCount", "count": self.count });
        Some(json!({
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": { "name": name },
            "spec": { "spec": { "devices": { "requests": [{ "name": CLAIM, "exactly": exactly }] } } },
        }))
    }

    fn claim_template_name(&self, workload: &str) -> Option<String> {
        match self.request {
            GpuRequest::Devices(class) if self.count > 0 => {
                // Always with a hash, of parts that dots set apart: neither a workload nor a number has one.
                Some(dns_label(&format!("{workload}.{}.{class}", self.count), MAX_LABEL))
            }
            _ => None,
        }
    }
}
