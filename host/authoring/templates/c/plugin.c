// A {{kind}} becomes a Deployment that runs its image.
#include "pilothouse/pilothouse.h"

// Says what shall exist for a {{kind}}, and how it is.
void ph_reconcile(const ph_request *request, ph_response *response) {
  const char *name = ph_string(request->object, "/metadata/name", "");
  const char *image = ph_string(request->object, "/spec/image", "");
  int replicas = (int)ph_number(request->object, "/spec/replicas", 1);
  if (!*image) {
    ph_invalid(response, "spec.image is empty: say which image runs");
    return;
  }
  const ph_live_child *live = ph_child_of(request, "apps/v1", "Deployment", name);
  int ready = live ? (int)ph_number(ph_parse(live->object), "/status/readyReplicas", 0) : 0;
  bool is_available = ready >= replicas;

  ph_add_child(response, ph_json(
    "{\"apiVersion\": \"apps/v1\", \"kind\": \"Deployment\","
    " \"metadata\": {\"name\": %s, \"labels\": {\"app\": %s}},"
    " \"spec\": {\"replicas\": %d, \"selector\": {\"matchLabels\": {\"app\": %s}},"
    "  \"template\": {\"metadata\": {\"labels\": {\"app\": %s}},"
    "   \"spec\": {\"containers\": [{\"name\": \"app\", \"image\": %s}]}}}}",
    name, name, replicas, name, name, image));
  ph_set_status(response, ph_json("{\"readyReplicas\": %d}", ready));
  ph_add_condition(response, "Available", is_available, is_available ? "AllReady" : "Starting",
    "%d of %d Pods are ready", ready, replicas);
}
