// The input of one reconcile. A child is read only when it is asked for.
import type { RawRequest, Readiness, RefusedChild } from "./types.js";

// A Kubernetes object, or a part of one, without a type of its own.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Any = { [field: string]: any };

// Metadata of an object, as far as plugins read it.
export interface Metadata {
  name: string;
  namespace?: string;
  uid?: string;
  generation?: number;
  labels?: { [key: string]: string };
  annotations?: { [key: string]: string };
  creationTimestamp?: string;
  deletionTimestamp?: string;
}

// The object that is reconciled.
export interface Resource<Spec> {
  apiVersion: string;
  kind: string;
  metadata: Metadata;
  spec: Spec;
  status?: Any;
}

export class Request<Spec> {
  readonly object: Resource<Spec>;
  // The children of earlier answers that could not be written, with the reasons.
  readonly refused: RefusedChild[];
  // The plugin's configuration; null if there is none.
  readonly config: unknown;

  constructor(private readonly raw: RawRequest) {
    this.object = JSON.parse(raw.object);
    this.refused = raw.refused;
    this.config = JSON.parse(raw.config);
  }

  // The live child of that kind and name, if there is one.
  child<Kind>(apiVersion: string, kind: string, name: string): Kind | undefined {
    return this.find(apiVersion, kind, name)?.object as Kind | undefined;
  }

  // The live children of a kind, in the order of their names.
  children<Kind>(apiVersion: string, kind: string): Kind[] {
    return this.live().filter(({ object }) => object.apiVersion === apiVersion && object.kind === kind).map(({ object }) => object as Kind);
  }

  // How far the live child of that kind and name is, if there is one.
  readiness(apiVersion: string, kind: string, name: string): Readiness | undefined {
    return this.find(apiVersion, kind, name)?.readiness;
  }

  private live(): { object: Any; readiness: Readiness }[] {
    return this.raw.children.map(({ object, readiness }) => ({ object: JSON.parse(object), readiness }));
  }

  private find(apiVersion: string, kind: string, name: string) {
    return this.live().find(({ object }) => object.apiVersion === apiVersion && object.kind === kind && object.metadata.name === name);
  }
}
