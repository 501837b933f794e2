"""A {{kind}} becomes a ConfigMap that shows its spec. Its types are in spec.py."""

from pilothouse import Request, Response, plugin
from spec import Spec


def reconcile(request: Request) -> Response:
    """Says what shall exist for a {{kind}}, and how it is."""
    name = request.object["metadata"]["name"]
    response = Response.done()
    response.add_child({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name{{namespace}}},
        "data": data_of(request.object["spec"]),
    })
    return response


def data_of(spec: Spec) -> dict[str, str]:
    """What the ConfigMap says of a spec: values, and of what is longer how many entries it has, or that it is set."""
    data: dict[str, str] = {}
{{shown}}    return data


# What the host calls.
Reconciler = plugin(reconcile)
