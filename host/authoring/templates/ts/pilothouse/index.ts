// What a plugin of Pilothouse in TypeScript is written with: typed requests and responses over the contract. It never talks to a cluster: the
// host does. `pilothouse new` has put it here; a newer one comes the same way.
import { explain, LookupRefused } from "./host.js";
import { Request } from "./request.js";
import { wait, type Response } from "./response.js";
import type { RawRequest, RawResponse } from "./types.js";

export { get, log, LookupRefused, now, select, selectInAllNamespaces } from "./host.js";
export { Request, type Any, type Metadata, type Resource } from "./request.js";
export { done, invalid, Response, retry, wait } from "./response.js";
export type { ChildOptions, Readiness, RefusedChild } from "./types.js";

// Makes of a function over requests and responses what the host calls: as `reconciler.reconcile`, and for a plugin with `finalizes: true` in
// plugin.yaml as `finalizer.finalize`, which is asked while an object is being deleted.
export function plugin<Spec>(answer: (request: Request<Spec>) => Response): (request: RawRequest) => RawResponse {
  return (raw) => {
    try {
      return answer(new Request<Spec>(raw)).raw;
    } catch (error) {
      if (error instanceof LookupRefused) {
        return wait(error.isMissing ? "KindNotInstalled" : "LookupDenied", error.message, error.isMissing ? 300 : 60).raw;
      }
      explain(error instanceof Error ? `${error}\n${error.stack ?? ""}` : String(error));
      throw error;
    }
  };
}
