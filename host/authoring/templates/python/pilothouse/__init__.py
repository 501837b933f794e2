"""What a plugin of Pilothouse in Python is written with: requests and responses over the contract.

It never talks to a cluster: the host does. `pilothouse new` has put it here; a newer one comes the same way.
"""

from .export import finalizer, plugin
from .host import Level, LookupRefused, get, log, now, select
from .request import Readiness, RefusedChild, Request
from .response import Child, Condition, Event, Measurement, Response

__all__ = [
    "Child", "Condition", "Event", "Level", "LookupRefused", "Measurement", "Readiness", "RefusedChild", "Request", "Response",
    "finalizer", "get", "log", "now", "plugin", "select",
]
