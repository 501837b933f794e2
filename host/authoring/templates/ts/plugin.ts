// A {{kind}} becomes a Deployment that runs its image.
import { done, invalid, plugin, type Any, type Request, type Response } from "./pilothouse/index.js";

// What the user asks for, as in crd.yaml.
interface Spec {
  // The image that runs.
  image?: string;
  // How many Pods run it.
  replicas?: number;
}

// What the plugin reads of its child.
interface Deployment {
  status?: { readyReplicas?: number };
}

// Says what shall exist for a {{kind}}, and how it is.
function reconcile(request: Request<Spec>): Response {
  const { name } = request.object.metadata;
  const { image, replicas = 1 } = request.object.spec;
  if (!image) return invalid("spec.image is empty: say which image runs");
  const ready = request.child<Deployment>("apps/v1", "Deployment", name)?.status?.readyReplicas ?? 0;
  const isAvailable = ready >= replicas;
  const labels = { app: name };
  const deployment: Any = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, labels },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: "app", image }] } },
    },
  };
  return done()
    .child(deployment)
    .status({ readyReplicas: ready })
    .condition("Available", isAvailable, isAvailable ? "AllReady" : "Starting", `${ready} of ${replicas} Pods are ready`);
}

// What the host calls.
export const reconciler = { reconcile: plugin(reconcile) };
