// What a plugin asks of the host.
import * as clock from "pilothouse:plugin/clock@{{contract}}";
import * as logs from "pilothouse:plugin/log@{{contract}}";
import * as lookup from "pilothouse:plugin/lookup@{{contract}}";
import * as trap from "pilothouse:plugin/trap@{{contract}}";

import type { Scope } from "./types.js";

// The host does not answer a lookup. Left to itself, the object waits.
export class LookupRefused extends Error {
  constructor(message: string, readonly isMissing: boolean) {
    super(message);
  }
}

// An object that the plugin does not own, if there is one; without a namespace, in that of the object being reconciled. The host remembers
// each lookup, and asks the plugin again when its result changes. The manifest names the kind.
export function get<Kind>(apiVersion: string, kind: string, name: string, namespace?: string, fields: string[] = []): Kind | undefined {
  const found = ask(() => lookup.get({ apiVersion, kind }, scope(namespace), name, fields));
  return found == null ? undefined : (JSON.parse(found) as Kind);
}

// The objects that a label selector matches, in the order of their names; the namespace is as for get.
export function select<Kind>(apiVersion: string, kind: string, labelSelector: string, namespace?: string, fields: string[] = []): Kind[] {
  return ask(() => lookup.select({ apiVersion, kind }, scope(namespace), labelSelector, fields)).map((text) => JSON.parse(text) as Kind);
}

// The same in all namespaces. The manifest says allNamespaces for the kind.
export function selectInAllNamespaces<Kind>(apiVersion: string, kind: string, labelSelector: string, fields: string[] = []): Kind[] {
  const everywhere: Scope = { tag: "all-namespaces" };
  return ask(() => lookup.select({ apiVersion, kind }, everywhere, labelSelector, fields)).map((text) => JSON.parse(text) as Kind);
}

// The time at which the call began. A plugin that does not read it is asked only when something changes.
export const now = (): Date => new Date(clock.now());

// Writes a line to the log of the host.
export const log = (level: "error" | "warn" | "info" | "debug", message: string): void => logs.write(level, message);

// Says why the plugin is about to trap.
export function explain(text: string): void {
  // In ASCII, for there is no encoder of UTF-8 everywhere.
  const bytes = Array.from(text.slice(0, 1024), (letter) => (letter < "\u0080" ? letter.charCodeAt(0) : 63));
  // Six bytes in a number of eight: the engine passes numbers that are exact up to 53 bits. The zeros are left out.
  const number = (from: number) => bytes.slice(from, from + 6).reduceRight((sum, byte) => sum * 256 + byte, 0);
  for (let at = 0; at < bytes.length; at += 24) trap.explain(number(at), number(at + 6), number(at + 12), number(at + 18));
}

function scope(namespace?: string): Scope {
  return namespace ? { tag: "namespace", val: namespace } : { tag: "own-namespace" };
}

function ask<Found>(question: () => Found): Found {
  try {
    return question();
  } catch (error) {
    const refused = (error as { payload?: { tag: string; val: string } }).payload;
    if (!refused) throw error;
    throw new LookupRefused(refused.val, refused.tag === "not-installed");
  }
}

type Print = (...parts: unknown[]) => void;

declare global {
  var console: Record<"debug" | "error" | "info" | "log" | "warn", Print>;
}

const print =
  (level: "error" | "warn" | "info" | "debug"): Print =>
  (...parts) =>
    log(level, parts.map((part) => (typeof part === "string" ? part : (JSON.stringify(part) ?? String(part)))).join(" "));

// What is printed as anywhere in JavaScript are lines of the log, too.
globalThis.console = { debug: print("debug"), error: print("error"), info: print("info"), log: print("info"), warn: print("warn") };
