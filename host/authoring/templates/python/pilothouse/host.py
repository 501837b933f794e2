"""What a plugin asks of the host. Outside of one, as in tests, it answers nothing."""

import json
from datetime import datetime, timezone
from typing import Optional, Sequence

from .request import Json

try:
    from componentize_py_types import Err
    from wit_world.imports import clock, lookup, trap, types
    from wit_world.imports import log as logs

    Level = logs.Level
except ImportError:
    # Not in a component.
    clock = lookup = trap = types = logs = None

    class Level:
        """How much a line of the log matters."""

        ERROR, WARN, INFO, DEBUG = range(4)


class LookupRefused(Exception):
    """The host does not answer a lookup. Left to itself, the object waits."""

    def __init__(self, message: str, is_missing: bool = False):
        super().__init__(message)
        self.is_missing = is_missing


def get(api_version: str, kind: str, name: str, namespace: Optional[str] = None, fields: Sequence[str] = ()) -> Optional[Json]:
    """An object that the plugin does not own, if there is one; without a namespace, in that of the object being reconciled.

    The host remembers each lookup, and asks the plugin again when its result changes. The manifest names the kind.
    """
    found = _ask("get", types and types.KindRef(api_version, kind), _scope(namespace), name, list(fields))
    return None if found is None else json.loads(found)


def select(
    api_version: str, kind: str, label_selector: str = "", namespace: Optional[str] = None, all_namespaces: bool = False,
    fields: Sequence[str] = (),
) -> list[Json]:
    """The objects that a label selector matches, in the order of their names; the namespace is as for get."""
    scope = lookup.Scope_AllNamespaces() if lookup and all_namespaces else _scope(namespace)
    found = _ask("select", types and types.KindRef(api_version, kind), scope, label_selector, list(fields))
    return [json.loads(text) for text in found]


def now() -> datetime:
    """The time at which the call began. A plugin that does not read it is asked only when something changes."""
    if clock is None:
        return datetime(2026, 1, 1, tzinfo=timezone.utc)
    return datetime.fromisoformat(clock.now().replace("Z", "+00:00"))


def log(level, message: str) -> None:
    """Writes a line to the log of the host."""
    if logs is not None:
        logs.write(level, message)


def explain(text: str) -> None:
    """Says why the plugin is about to trap."""
    data = text.encode()[-1024:]
    data += bytes(-len(data) % 32)
    for at in range(0, len(data), 32):
        trap.explain(*(int.from_bytes(data[at + part:at + part + 8], "little") for part in (0, 8, 16, 24)))


def _scope(namespace: Optional[str]):
    if lookup is None:
        return None
    return lookup.Scope_Namespace(namespace) if namespace else lookup.Scope_OwnNamespace()


def _ask(function: str, *arguments):
    if lookup is None:
        raise LookupRefused("there is no host to ask")
    try:
        return getattr(lookup, function)(*arguments)
    except Err as error:
        raise LookupRefused(error.value.value, isinstance(error.value, lookup.LookupError_NotInstalled)) from error
