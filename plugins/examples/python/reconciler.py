"""A Website becomes a Deployment, with a volume where it wants one. It uses each part of the SDK once."""

from datetime import datetime

from pilothouse import Condition, Event, Measurement, Request, Response, get, now, plugin


def reconcile(request: Request) -> Response:
    """The spec: image, replicas (without them, an autoscaler sets them), settings (a ConfigMap), storage, until."""
    name, spec = request.object["metadata"]["name"], request.object["spec"]
    image, replicas, until = spec.get("image"), spec.get("replicas"), spec.get("until")
    if not image:
        return Response.invalid("spec.image is empty: say which image runs")
    if until and now() >= datetime.fromisoformat(until.replace("Z", "+00:00")):
        return Response(children=[], removes_many=True, status={"readyReplicas": 0})
    annotations = {}
    if settings := spec.get("settings"):
        found = get("v1", "ConfigMap", settings)
        if found is None:
            response = Response.wait("SettingsMissing", f"there is no ConfigMap {settings}", 30)
            response.conditions.append(Condition("Available", None, "SettingsMissing"))
            return response
        annotations["example.com/colour"] = found["data"]["colour"]
    if registry := (request.config or {}).get("registry"):
        image = f"{registry}/{image}"
    live = request.child("apps/v1", "Deployment", name) or {}
    ready = live.get("status", {}).get("readyReplicas", 0)
    response = Response(status={"readyReplicas": ready}, requeue_after=60 if until else None)
    if spec.get("storage"):
        response.add_child(claim(f"{name}-data"), handling="create", on_removal="keep")
    unmanaged = ["/spec/replicas"] if replicas is None else []
    child = deployment(name, image, annotations, replicas)
    response.add_child(child, on_immutable="recreate", unmanaged_fields=unmanaged)
    tell(response, ready, 1 if replicas is None else replicas)
    return response


def tell(response: Response, ready: int, wanted: int) -> None:
    """How it is: a condition, an event and a measurement."""
    is_available = ready >= wanted
    reason, phase = ("AllReady", "serving") if is_available else ("Starting", "starting")
    if is_available:
        response.events.append(Event("Available", f"{ready} Pods are ready"))
    response.conditions.append(Condition("Available", is_available, reason, f"{ready} of {wanted} Pods are ready"))
    response.measurements.append(Measurement("pods_ready", ready, {"phase": phase}))


def claim(name: str):
    """A volume."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }


def deployment(name: str, image: str, annotations, replicas):
    """What runs the image."""
    labels = {"app": name}
    spec = {
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels, "annotations": annotations},
            "spec": {"containers": [{"name": "app", "image": image}]},
        },
    }
    if replicas is not None:
        spec["replicas"] = replicas
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


Reconciler = plugin(reconcile)
