// What crosses between the plugin and the host, by the names and layouts of the contract (wit/0.2/plugin.wit of Pilothouse).
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pilothouse.h"

#define HOST(interface, function) \
  __attribute__((import_module("pilothouse:plugin/" interface "@{{contract}}"), import_name(function)))

// A result of a lookup: an error and its text, or what was found.
typedef struct {
  uint8_t is_error;
  union {
    struct {
      uint8_t is_found;
      ph_text object;
    } one;
    ph_texts all;
    struct {
      uint8_t refusal;
      ph_text why;
    } error;
  } value;
} lookup_result;

HOST("lookup", "get")
void host_get(const char *, size_t, const char *, size_t, uint32_t, const char *, size_t, const char *, size_t, const ph_text *, size_t,
              lookup_result *);
HOST("lookup", "select")
void host_select(const char *, size_t, const char *, size_t, uint32_t, const char *, size_t, const char *, size_t, const ph_text *, size_t,
                 lookup_result *);
HOST("clock", "now") void host_now(ph_text *);
HOST("log", "write") void host_log(uint32_t, const char *, size_t);

__attribute__((export_name("cabi_realloc"))) void *ph_realloc(void *memory, size_t old_size, size_t alignment, size_t size) {
  (void)old_size;
  (void)alignment;
  memory = realloc(memory, size ? size : 1);
  if (!memory) abort();
  return memory;
}

__attribute__((export_name("pilothouse:plugin/reconciler@{{contract}}#reconcile"))) ph_response *ph_reconcile_export(PH_PARAMETERS) {
  return ph_call(PH_ARGUMENTS, ph_reconcile);
}

static ph_lookup refused(const lookup_result *result) {
  return (ph_lookup){PH_DENIED + result->value.error.refusal, NULL, result->value.error.why};
}

ph_lookup ph_get(const char *api_version, const char *kind, const char *namespace_, const char *name) {
  lookup_result result;
  uint32_t scope = namespace_ && *namespace_ ? PH_NAMESPACE : PH_OWN_NAMESPACE;
  if (!namespace_) namespace_ = "";
  host_get(api_version, strlen(api_version), kind, strlen(kind), scope, namespace_, strlen(namespace_), name, strlen(name), NULL, 0,
           &result);
  if (result.is_error) return refused(&result);
  if (!result.value.one.is_found) return (ph_lookup){PH_NOT_FOUND, NULL, {"", 0}};
  return (ph_lookup){PH_FOUND, ph_parse(result.value.one.object), {"", 0}};
}

ph_lookup ph_select(const char *api_version, const char *kind, int scope, const char *namespace_, const char *label_selector) {
  lookup_result result;
  if (!namespace_) namespace_ = "";
  host_select(api_version, strlen(api_version), kind, strlen(kind), (uint32_t)scope, namespace_, strlen(namespace_), label_selector,
              strlen(label_selector), NULL, 0, &result);
  if (result.is_error) return refused(&result);
  cJSON *list = cJSON_CreateArray();
  for (size_t i = 0; i < result.value.all.length; i++) cJSON_AddItemToArray(list, ph_parse(result.value.all.items[i]));
  return (ph_lookup){PH_FOUND, list, {"", 0}};
}

ph_text ph_now(void) {
  ph_text now;
  host_now(&now);
  return now;
}

void ph_log(uint32_t level, const char *message, ...) {
  va_list arguments;
  va_start(arguments, message);
  char text[1024];
  int length = vsnprintf(text, sizeof text, message, arguments);
  va_end(arguments);
  if (length < 0) return;
  host_log(level, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}
