// What crosses between the host and a plugin, as the contract of Pilothouse (wit/0.2/plugin.wit) says it. Objects are JSON texts.

declare module "pilothouse:plugin/lookup@{{contract}}" {
  type KindRef = { apiVersion: string; kind: string };
  type Scope = { tag: "own-namespace" } | { tag: "namespace"; val: string } | { tag: "all-namespaces" };
  export function get(kind: KindRef, scope: Scope, name: string, fields: string[]): string | null | undefined;
  export function select(kind: KindRef, scope: Scope, labelSelector: string, fields: string[]): string[];
}

declare module "pilothouse:plugin/clock@{{contract}}" {
  export function now(): string;
}

declare module "pilothouse:plugin/log@{{contract}}" {
  export function write(level: "error" | "warn" | "info" | "debug", message: string): void;
}

declare module "pilothouse:plugin/trap@{{contract}}" {
  export function explain(a: number, b: number, c: number, d: number): void;
}
