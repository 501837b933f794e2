"""The output of one reconcile. The host takes children, status, conditions, events and measurements with every verdict."""

from dataclasses import dataclass, field
from typing import Any, Optional

from .request import Json


@dataclass
class Child:
    """A child that shall exist, and how the host treats it."""

    object: Json
    # apply: it is created, and repaired; create: it is created and never changed; keep: it stays as it is.
    handling: str = "apply"
    # The places, from 0 on, of children that were returned before it and must be as they shall be first.
    after: list[int] = field(default_factory=list)
    # What to do where a field cannot change: fail or recreate.
    on_immutable: str = "fail"
    # What becomes of it once it is no longer wanted: delete or keep.
    on_removal: str = "delete"
    # JSON pointers of fields that others set, such as /spec/replicas.
    unmanaged_fields: list[str] = field(default_factory=list)


@dataclass
class Condition:
    """A condition of the object's status. The reason is one CamelCase word. None is Unknown."""

    type: str
    holds: Optional[bool]
    reason: str
    message: str = ""


@dataclass
class Event:
    """An Event on the object. The reason is one CamelCase word."""

    reason: str
    message: str
    is_warning: bool = False


@dataclass
class Measurement:
    """A sample of a metric that the manifest declares."""

    name: str
    value: float
    labels: dict[str, str] = field(default_factory=dict)


@dataclass
class Response:
    """Without children (None) they stay as they are; with an empty list there shall be none. The same goes for the status."""

    verdict: str = "done"
    # A CamelCase word, where it waits.
    reason: str = ""
    message: str = ""
    seconds: int = 0
    children: Optional[list[Child]] = None
    # Set where most of the children are removed on purpose.
    removes_many: bool = False
    status: Optional[dict[str, Any]] = None
    conditions: list[Condition] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    measurements: list[Measurement] = field(default_factory=list)
    requeue_after: Optional[int] = None

    @classmethod
    def done(cls) -> "Response":
        """The children are what the object asks for."""
        return cls()

    @classmethod
    def wait(cls, reason: str, message: str, seconds: int) -> "Response":
        """Something outside is missing: the host asks again after so many seconds, or when a lookup changes."""
        return cls("wait", reason, message, seconds)

    @classmethod
    def retry(cls, message: str) -> "Response":
        """A passing fault: the host asks again with backoff."""
        return cls("retry", message=message)

    @classmethod
    def invalid(cls, message: str) -> "Response":
        """The object cannot be satisfied as it is."""
        return cls("invalid", message=message)

    def add_child(self, object: Json, **options: Any) -> None:
        """Adds a child that shall exist; the options are the fields of Child."""
        if self.children is None:
            self.children = []
        self.children.append(Child(object, **options))
