// The output of one reconcile, built step by step. The host takes children, status, conditions, events and measurements with every verdict.
// Without a call of child or noChildren the children stay as they are.
import type { ChildOptions, RawResponse, Verdict } from "./types.js";

const USUAL: ChildOptions = { handling: "apply", after: [], onImmutable: "fail", onRemoval: "delete", unmanagedFields: [] };

export class Response {
  readonly raw: RawResponse;

  constructor(verdict: Verdict) {
    this.raw = { verdict, removesMany: false, conditions: [], events: [], measurements: [] };
  }

  // A child that shall exist, and what is not as usual of it.
  child(object: object, options: Partial<ChildOptions> = {}): this {
    (this.raw.children ??= []).push({ object: JSON.stringify(object), ...USUAL, ...options });
    return this;
  }

  // There shall be none.
  noChildren(): this {
    this.raw.children = [];
    return this;
  }

  // Most of the object's children are removed on purpose.
  removesMany(): this {
    this.raw.removesMany = true;
    return this;
  }

  // Conditions and observedGeneration are the host's.
  status(status: object): this {
    this.raw.status = JSON.stringify(status);
    return this;
  }

  // A condition that is true, false or, with undefined, unknown. The reason is one CamelCase word.
  condition(conditionType: string, holds: boolean | undefined, reason: string, message = ""): this {
    const status = holds === undefined ? "unknown" : holds ? "is-true" : "is-false";
    this.raw.conditions.push({ conditionType, status, reason, message });
    return this;
  }

  // An Event on the object. The reason is one CamelCase word.
  event(eventType: "normal" | "warning", reason: string, message: string): this {
    this.raw.events.push({ eventType, reason, message });
    return this;
  }

  // A sample of a metric that the manifest declares.
  measurement(name: string, value: number, labels: { [key: string]: string } = {}): this {
    this.raw.measurements.push({ name, value, labels: Object.entries(labels).map(([key, value]) => ({ key, value })) });
    return this;
  }

  // The host asks again after so many seconds, at the latest.
  requeueAfter(seconds: number): this {
    this.raw.requeueAfter = seconds;
    return this;
  }
}

// The children of the response are what the object asks for.
export const done = (): Response => new Response({ tag: "done" });

// Something outside is missing: the host asks again after so many seconds, or when a lookup changes.
export const wait = (reason: string, message: string, seconds: number): Response =>
  new Response({ tag: "wait", val: { reason, message, seconds } });

// A passing fault: the host asks again with backoff.
export const retry = (message: string): Response => new Response({ tag: "retry", val: message });

// The object cannot be satisfied as it is.
export const invalid = (message: string): Response => new Response({ tag: "invalid", val: message });
