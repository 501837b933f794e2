// A {{kind}} becomes a ConfigMap that shows its spec. Its types are in spec.ts.
import { done, plugin, type Any, type Request, type Response } from "./pilothouse/index.js";
import type { Spec } from "./spec.js";

// Says what shall exist for a {{kind}}, and how it is.
function reconcile(request: Request<Spec>): Response {
  const { name } = request.object.metadata;
  const configMap: Any = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name{{namespace}} },
    data: dataOf(request.object.spec),
  };
  return done().child(configMap);
}

// What the ConfigMap says of a spec: values, and of what is longer how many entries it has, or that it is set.
function dataOf(spec: Spec): { [key: string]: string } {
  const data: { [key: string]: string } = {};
{{shown}}  return data;
}

// What the host calls.
export const reconciler = { reconcile: plugin(reconcile) };
