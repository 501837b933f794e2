// What crosses between the host and a plugin, as the contract of Pilothouse (wit/0.2/plugin.wit) says it. Objects are JSON texts.

export interface KindRef {
  apiVersion: string;
  kind: string;
}

export type Scope = { tag: "own-namespace" } | { tag: "namespace"; val: string } | { tag: "all-namespaces" };

// How far a child is, by the rules of kstatus. The texts are empty where it is current.
export interface Readiness {
  status: "current" | "in-progress" | "failed" | "terminating";
  reason: string;
  message: string;
}

// A child of an earlier answer that could not be written.
export interface RefusedChild {
  kind: KindRef;
  namespace?: string | null;
  name: string;
  reason: string;
  message: string;
}

export interface RawRequest {
  object: string;
  children: { object: string; readiness: Readiness }[];
  refused: RefusedChild[];
  config: string;
}

// How the host treats a child.
export interface ChildOptions {
  // apply: it is created, and repaired; create: it is created and never changed; keep: it stays as it is. Default: apply.
  handling: "apply" | "create" | "keep";
  // The places, from 0 on, of children that were returned before it and must be as they shall be first.
  after: number[];
  // What to do where a field cannot change. Default: fail.
  onImmutable: "fail" | "recreate";
  // What becomes of it once it is no longer wanted. Default: delete.
  onRemoval: "delete" | "keep";
  // JSON pointers of fields that others set, such as /spec/replicas.
  unmanagedFields: string[];
}

export type Verdict =
  | { tag: "done" }
  | { tag: "wait"; val: { reason: string; message: string; seconds: number } }
  | { tag: "retry"; val: string }
  | { tag: "invalid"; val: string };

export interface RawResponse {
  verdict: Verdict;
  children?: ({ object: string } & ChildOptions)[];
  removesMany: boolean;
  status?: string;
  conditions: { conditionType: string; status: "is-true" | "is-false" | "unknown"; reason: string; message: string }[];
  events: { eventType: "normal" | "warning"; reason: string; message: string }[];
  measurements: { name: string; value: number; labels: { key: string; value: string }[] }[];
  requeueAfter?: number;
}
