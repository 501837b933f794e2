"""Makes functions over requests and responses what the host calls. It keeps nothing between calls."""

import json
import traceback
from typing import Callable

from . import host
from .request import Readiness, RefusedChild, Request
from .response import Child, Condition, Event, Measurement, Response

Function = Callable[[Request], Response]


def plugin(reconcile: Function) -> type:
    """The class that is the plugin: give it the name Reconciler, in the module reconciler."""
    return type("Reconciler", (), {"reconcile": lambda _, request: _call(reconcile, request)})


def finalizer(finalize: Function) -> type:
    """The class that the host asks while an object is being deleted: give it the name Finalizer, and say `finalizes: true` in plugin.yaml.

    Only what is outside of the cluster needs that; children go by themselves.
    """
    return type("Finalizer", (), {"finalize": lambda _, request: _call(finalize, request)})


def _call(function: Function, raw):
    try:
        return _raw_response(_answer(function, _request(raw)))
    except BaseException:
        # The last line says most, and must not be cut.
        host.explain(traceback.format_exc().strip())
        raise


def _answer(function: Function, request: Request) -> Response:
    try:
        return function(request)
    except host.LookupRefused as refused:
        reason, seconds = ("KindNotInstalled", 300) if refused.is_missing else ("LookupDenied", 60)
        return Response.wait(reason, str(refused), seconds)


def _request(raw) -> Request:
    live = [(child.object, _readiness(child.readiness)) for child in raw.children]
    refused = [
        RefusedChild(child.kind.api_version, child.kind.kind, child.namespace, child.name, child.reason, child.message)
        for child in raw.refused
    ]
    return Request(json.loads(raw.object), live, refused, json.loads(raw.config))


def _readiness(raw) -> Readiness:
    return Readiness(raw.status.name.lower().replace("_", "-"), raw.reason, raw.message)


def _raw_response(response: Response):
    types = host.types
    return types.Response(
        _raw_verdict(response),
        None if response.children is None else [_raw_child(child) for child in response.children],
        response.removes_many,
        None if response.status is None else json.dumps(response.status),
        [_raw_condition(condition) for condition in response.conditions],
        [_raw_event(event) for event in response.events],
        [_raw_measurement(measurement) for measurement in response.measurements],
        response.requeue_after,
    )


def _raw_verdict(response: Response):
    types = host.types
    if response.verdict == "wait":
        return types.Verdict_Wait(types.Waiting(response.reason, response.message, response.seconds))
    if response.verdict == "retry":
        return types.Verdict_Retry(response.message)
    if response.verdict == "invalid":
        return types.Verdict_Invalid(response.message)
    return types.Verdict_Done()


def _raw_child(child: Child):
    types = host.types
    return types.Child(
        json.dumps(child.object),
        types.Handling[child.handling.upper()],
        child.after,
        types.ImmutablePolicy[child.on_immutable.upper()],
        types.RemovalPolicy[child.on_removal.upper()],
        child.unmanaged_fields,
    )


def _raw_condition(condition: Condition):
    types = host.types
    statuses = {True: types.ConditionStatus.IS_TRUE, False: types.ConditionStatus.IS_FALSE, None: types.ConditionStatus.UNKNOWN}
    return types.Condition(condition.type, statuses[condition.holds], condition.reason, condition.message)


def _raw_event(event: Event):
    types = host.types
    return types.Event(types.EventType.WARNING if event.is_warning else types.EventType.NORMAL, event.reason, event.message)


def _raw_measurement(measurement: Measurement):
    types = host.types
    labels = [types.Label(key, value) for key, value in measurement.labels.items()]
    return types.Measurement(measurement.name, float(measurement.value), labels)
