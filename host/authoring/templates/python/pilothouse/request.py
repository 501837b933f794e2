"""The input of one reconcile. A child is read only when it is asked for."""

import json
from dataclasses import dataclass, field
from typing import Any, Optional

# A Kubernetes object, or a part of one.
Json = dict[str, Any]


@dataclass
class Readiness:
    """How far a child is, by the rules of kstatus: current, in-progress, failed or terminating. The texts are empty where it is current."""

    status: str
    reason: str = ""
    message: str = ""


@dataclass
class RefusedChild:
    """A child of an earlier answer that could not be written, with the reason."""

    api_version: str
    kind: str
    namespace: Optional[str]
    name: str
    reason: str
    message: str


@dataclass
class Request:
    """The object being reconciled, its live children as JSON texts, and the configuration of the plugin."""

    object: Json
    live: list[tuple[str, Readiness]] = field(default_factory=list)
    refused: list[RefusedChild] = field(default_factory=list)
    config: Any = None

    def children(self, api_version: str, kind: str) -> list[Json]:
        """The live children of a kind, in the order of their names."""
        return [child for child, _ in self._of(api_version, kind)]

    def child(self, api_version: str, kind: str, name: str) -> Optional[Json]:
        """The live child of that kind and name, if there is one."""
        found = (child for child, _ in self._of(api_version, kind) if child["metadata"]["name"] == name)
        return next(found, None)

    def readiness(self, api_version: str, kind: str, name: str) -> Optional[Readiness]:
        """How far the live child of that kind and name is, if there is one."""
        found = (readiness for child, readiness in self._of(api_version, kind) if child["metadata"]["name"] == name)
        return next(found, None)

    def _of(self, api_version: str, kind: str):
        for text, readiness in self.live:
            child = json.loads(text)
            if (child["apiVersion"], child["kind"]) == (api_version, kind):
                yield child, readiness
