// A Website becomes a Deployment, with a volume where it wants one. It uses each part of the SDK once.
import { done, get, invalid, now, plugin, wait, type Any, type Request, type Response } from "./pilothouse/index.js";

interface Spec {
  image?: string;
  // Without it, an autoscaler sets them.
  replicas?: number;
  // A ConfigMap with the colour.
  settings?: string;
  storage?: boolean;
  // When it ends.
  until?: string;
}

interface Deployment {
  status?: { readyReplicas?: number };
}

interface Settings {
  data: { colour: string };
}

function reconcile(request: Request<Spec>): Response {
  const { name } = request.object.metadata;
  const { image, replicas, settings, storage, until } = request.object.spec;
  if (!image) return invalid("spec.image is empty: say which image runs");
  if (until && now() >= new Date(until)) return done().noChildren().removesMany().status({ readyReplicas: 0 });
  const annotations: Any = {};
  if (settings) {
    const found = get<Settings>("v1", "ConfigMap", settings);
    if (!found) {
      return wait("SettingsMissing", `there is no ConfigMap ${settings}`, 30).condition("Available", undefined, "SettingsMissing");
    }
    annotations["example.com/colour"] = found.data.colour;
  }
  const { registry } = (request.config ?? {}) as { registry?: string };
  const ready = request.child<Deployment>("apps/v1", "Deployment", name)?.status?.readyReplicas ?? 0;
  const response = done().status({ readyReplicas: ready });
  if (storage) response.child(claim(`${name}-data`), { handling: "create", onRemoval: "keep" });
  response.child(deployment(name, registry ? `${registry}/${image}` : image, annotations, replicas), {
    onImmutable: "recreate",
    unmanagedFields: replicas === undefined ? ["/spec/replicas"] : [],
  });
  tell(response, ready, replicas ?? 1);
  return until ? response.requeueAfter(60) : response;
}

function tell(response: Response, ready: number, wanted: number): void {
  const isAvailable = ready >= wanted;
  if (isAvailable) response.event("normal", "Available", `${ready} Pods are ready`);
  response
    .condition("Available", isAvailable, isAvailable ? "AllReady" : "Starting", `${ready} of ${wanted} Pods are ready`)
    .measurement("pods_ready", ready, { phase: isAvailable ? "serving" : "starting" });
}

function claim(name: string): Any {
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
  };
}

function deployment(name: string, image: string, annotations: Any, replicas?: number): Any {
  const labels = { app: name };
  const template = { metadata: { labels, annotations }, spec: { containers: [{ name: "app", image }] } };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name },
    // What is undefined is not written.
    spec: { replicas, selector: { matchLabels: labels }, template },
  };
}

export const reconciler = { reconcile: plugin(reconcile) };
