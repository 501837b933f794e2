// A {{kind}} becomes a ConfigMap that shows its spec. The names of its fields are in spec.h.
#include <stdio.h>

#include "pilothouse/pilothouse.h"
#include "spec.h"

// Adds a value as a text.
static inline void show_value(cJSON *data, const char *key, const cJSON *value) {
  if (cJSON_IsString(value)) {
    cJSON_AddStringToObject(data, key, value->valuestring);
  } else if (cJSON_IsBool(value)) {
    cJSON_AddStringToObject(data, key, cJSON_IsTrue(value) ? "true" : "false");
  } else if (cJSON_IsNumber(value)) {
    char text[64];
    snprintf(text, sizeof text, "%.0f", value->valuedouble);
    cJSON_AddStringToObject(data, key, text);
  }
}

// Adds how many entries a list or a map has.
static inline void show_count(cJSON *data, const char *key, const cJSON *value) {
  if (cJSON_IsArray(value) || cJSON_IsObject(value)) {
    char text[16];
    snprintf(text, sizeof text, "%d", cJSON_GetArraySize(value));
    cJSON_AddStringToObject(data, key, text);
  }
}

// Adds that there is a value.
static inline void show_presence(cJSON *data, const char *key, const cJSON *value) {
  if (value && !cJSON_IsNull(value)) {
    cJSON_AddStringToObject(data, key, "set");
  }
}

// What the ConfigMap says of a spec: values, and of what is longer how many entries it has, or that it is set.
static cJSON *data_of(const ph_request *request) {
  cJSON *data = cJSON_CreateObject();
{{shown}}  return data;
}

// Says what shall exist for a {{kind}}, and how it is.
void ph_reconcile(const ph_request *request, ph_response *response) {
  const char *name = ph_string(request->object, "/metadata/name", "");
  cJSON *config_map = ph_json("{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": %s{{namespace}}}}", name);
  cJSON_AddItemToObject(config_map, "data", data_of(request));
  ph_add_child(response, config_map);
}
