// A Website becomes a Deployment, with a volume where it wants one. It uses each part of the SDK once.
#include <stdio.h>
#include <string.h>

#include "pilothouse/pilothouse.h"

static void tell(ph_response *response, int ready, int wanted) {
  bool is_available = ready >= wanted;
  static ph_label phase;
  phase = (ph_label){ph_text_of("phase"), ph_text_of(is_available ? "serving" : "starting")};
  if (is_available) ph_add_event(response, PH_NORMAL, "Available", "%d Pods are ready", ready);
  ph_add_condition(response, "Available", is_available, is_available ? "AllReady" : "Starting", "%d of %d Pods are ready", ready, wanted);
  ph_add_measurement(response, "pods_ready", ready, &phase, 1);
}

static void add_claim(ph_response *response, const char *name) {
  char claim[300];
  snprintf(claim, sizeof claim, "%s-data", name);
  ph_child *child = ph_add_child(response, ph_json(
    "{\"apiVersion\": \"v1\", \"kind\": \"PersistentVolumeClaim\", \"metadata\": {\"name\": %s},"
    " \"spec\": {\"accessModes\": [\"ReadWriteOnce\"], \"resources\": {\"requests\": {\"storage\": \"1Gi\"}}}}", claim));
  child->handling = PH_CREATE;
  child->on_removal = PH_ORPHAN;
}

static void add_deployment(ph_response *response, const char *name, const char *image, const char *colour, int replicas) {
  cJSON *object = ph_json(
    "{\"apiVersion\": \"apps/v1\", \"kind\": \"Deployment\", \"metadata\": {\"name\": %s},"
    " \"spec\": {\"selector\": {\"matchLabels\": {\"app\": %s}},"
    "  \"template\": {\"metadata\": {\"labels\": {\"app\": %s}, \"annotations\": {}},"
    "   \"spec\": {\"containers\": [{\"name\": \"app\", \"image\": %s}]}}}}", name, name, name, image);
  if (colour) cJSON_AddStringToObject((cJSON *)ph_at(object, "/spec/template/metadata/annotations"), "example.com/colour", colour);
  static ph_text unmanaged;
  unmanaged = ph_text_of("/spec/replicas");
  if (replicas >= 0) cJSON_AddNumberToObject((cJSON *)ph_at(object, "/spec"), "replicas", replicas);
  ph_child *child = ph_add_child(response, object);
  child->on_immutable = PH_RECREATE;
  if (replicas < 0) child->unmanaged = (ph_texts){&unmanaged, 1};
}

// Both are RFC 3339 in UTC.
static bool is_over(const char *until) {
  if (!until) return false;
  ph_text now = ph_now();
  return strncmp(now.data, until, now.length) >= 0;
}

void ph_reconcile(const ph_request *request, ph_response *response) {
  const char *name = ph_string(request->object, "/metadata/name", "");
  const char *image = ph_string(request->object, "/spec/image", "");
  const char *settings = ph_string(request->object, "/spec/settings", NULL), *colour = NULL;
  const char *until = ph_string(request->object, "/spec/until", NULL);
  const char *registry = ph_string(request->config, "/registry", NULL);
  // Without it, an autoscaler sets them.
  int replicas = (int)ph_number(request->object, "/spec/replicas", -1);
  if (!*image) {
    ph_invalid(response, "spec.image is empty: say which image runs");
    return;
  }
  if (is_over(until)) {
    ph_no_children(response);
    response->removes_many = true;
    ph_set_status(response, ph_json("{\"readyReplicas\": 0}"));
    return;
  }
  if (settings) {
    ph_lookup found = ph_get("v1", "ConfigMap", NULL, settings);
    if (found.status >= PH_DENIED) {
      ph_refused(response, &found);
      return;
    }
    if (found.status == PH_NOT_FOUND) {
      ph_wait(response, "SettingsMissing", 30, "there is no ConfigMap %s", settings);
      ph_add_condition(response, "Available", false, "SettingsMissing", "%s", "");
      response->conditions.items[0].status = PH_UNKNOWN;
      return;
    }
    colour = ph_string(found.found, "/data/colour", "");
  }
  char full[1024];
  snprintf(full, sizeof full, "%s%s%s", registry ? registry : "", registry ? "/" : "", image);
  const ph_live_child *live = ph_child_of(request, "apps/v1", "Deployment", name);
  int ready = live ? (int)ph_number(ph_parse(live->object), "/status/readyReplicas", 0) : 0;
  ph_set_status(response, ph_json("{\"readyReplicas\": %d}", ready));
  if (cJSON_IsTrue(ph_at(request->object, "/spec/storage"))) add_claim(response, name);
  add_deployment(response, name, full, colour, replicas);
  tell(response, ready, replicas < 0 ? 1 : replicas);
  if (until) ph_requeue_after(response, 60);
}
