"""A {{kind}} becomes a Deployment that runs its image."""

from pilothouse import Condition, Request, Response, plugin


def reconcile(request: Request) -> Response:
    """Says what shall exist for a {{kind}}, and how it is."""
    name, spec = request.object["metadata"]["name"], request.object["spec"]
    image, replicas = spec.get("image"), spec.get("replicas", 1)
    if not image:
        return Response.invalid("spec.image is empty: say which image runs")
    live = request.child("apps/v1", "Deployment", name) or {}
    ready = live.get("status", {}).get("readyReplicas", 0)
    is_available = ready >= replicas
    labels = {"app": name}
    response = Response.done()
    response.add_child({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "app", "image": image}]},
            },
        },
    })
    response.status = {"readyReplicas": ready}
    reason = "AllReady" if is_available else "Starting"
    response.conditions.append(Condition("Available", is_available, reason, f"{ready} of {replicas} Pods are ready"))
    return response


# What the host calls.
Reconciler = plugin(reconcile)
