// What a plugin of Pilothouse in C is written with: the types of the contract, laid out as they cross, and what one does with them.
// Nothing here talks to a cluster: the host does. `pilothouse new` has put it here; a newer one comes the same way.
//
// Memory need not be freed: an instance lives for one call. JSON is that of cJSON (cjson/cJSON.h).
#ifndef PILOTHOUSE_H
#define PILOTHOUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cjson/cJSON.h"

// UTF-8, without a zero at its end.
typedef struct {
  const char *data;
  size_t length;
} ph_text;

// A list of texts; lists of other types look the same.
typedef struct {
  ph_text *items;
  size_t length;
} ph_texts;

// As in a manifest file of Kubernetes: "apps/v1" and "Deployment".
typedef struct {
  ph_text api_version, kind;
} ph_kind;

enum { PH_CURRENT, PH_IN_PROGRESS, PH_FAILED, PH_TERMINATING };

// A child that exists, as JSON, and how far it is.
typedef struct {
  ph_text object;
  uint8_t readiness;
  ph_text reason, message;
} ph_live_child;

// A child of an earlier answer that could not be written.
typedef struct {
  ph_kind kind;
  bool has_namespace;
  ph_text namespace_, name, reason, message;
} ph_refused_child;

// The input of one reconcile. `object` and `config` are read already; the rest when it is asked for.
typedef struct {
  cJSON *object, *config;
  const ph_live_child *children;
  size_t children_length;
  const ph_refused_child *refused;
  size_t refused_length;
} ph_request;

enum { PH_APPLY, PH_CREATE, PH_KEEP };
enum { PH_FAIL, PH_RECREATE };
enum { PH_DELETE, PH_ORPHAN };

// A child that shall exist. `handling` says what the host does with it, `after` which children of this answer it waits for, `unmanaged`
// which fields others set, as JSON pointers. All zeros suits most children.
typedef struct {
  ph_text object;
  uint8_t handling;
  struct {
    uint32_t *items;
    size_t length;
  } after;
  uint8_t on_immutable, on_removal;
  ph_texts unmanaged;
} ph_child;

enum { PH_TRUE, PH_FALSE, PH_UNKNOWN };

typedef struct {
  ph_text type;
  uint8_t status;
  ph_text reason, message;
} ph_condition;

enum { PH_NORMAL, PH_WARNING };

typedef struct {
  uint8_t type;
  ph_text reason, message;
} ph_event;

typedef struct {
  ph_text key, value;
} ph_label;

typedef struct {
  ph_text name;
  double value;
  struct {
    ph_label *items;
    size_t length;
  } labels;
} ph_measurement;

// The output of one reconcile, as it crosses. Use the functions below.
typedef struct {
  uint8_t verdict;
  // The reason where the plugin waits, else the message.
  ph_text why, waiting_message;
  uint32_t waiting_seconds;
  // Without them, the children stay as they are.
  bool has_children;
  struct {
    ph_child *items;
    size_t length;
  } children;
  // Set where most of the children are removed on purpose.
  bool removes_many;
  _Alignas(4) bool has_status;
  ph_text status;
  struct {
    ph_condition *items;
    size_t length;
  } conditions;
  struct {
    ph_event *items;
    size_t length;
  } events;
  struct {
    ph_measurement *items;
    size_t length;
  } measurements;
  bool has_requeue_after;
  uint32_t requeue_after;
} ph_response;

// The plugin: says what shall exist for the object, and how it is. It is called whenever the object, a child or a lookup has changed. The
// response is `done`, without anything else, until a function below changes it.
void ph_reconcile(const ph_request *request, ph_response *response);

// Makes a function of the same form what the host calls instead while an object is being deleted, until it is done. Only what is outside
// of the cluster needs that; children go by themselves.
#define PH_FINALIZE(function)                                                                                                         \
  __attribute__((export_name("pilothouse:plugin/finalizer@{{contract}}#finalize"))) ph_response *ph_finalize_export(                 \
      PH_PARAMETERS) {                                                                                                                \
    return ph_call(PH_ARGUMENTS, function);                                                                                           \
  }
#define PH_PARAMETERS                                                                                                                 \
  const char *object, size_t object_length, const ph_live_child *children, size_t children_length, const ph_refused_child *refused,   \
      size_t refused_length, const char *config, size_t config_length
#define PH_ARGUMENTS object, object_length, children, children_length, refused, refused_length, config, config_length
ph_response *ph_call(PH_PARAMETERS, void (*function)(const ph_request *, ph_response *));

// The verdicts other than `done`. Messages are formatted as by printf.
void ph_wait(ph_response *response, const char *reason, uint32_t seconds, const char *message, ...)
    __attribute__((format(printf, 4, 5)));
void ph_retry(ph_response *response, const char *message, ...) __attribute__((format(printf, 2, 3)));
void ph_invalid(ph_response *response, const char *message, ...) __attribute__((format(printf, 2, 3)));

// Adds a child that shall exist. What is not as usual of it can be set in the result, until the next one is added.
ph_child *ph_add_child(ph_response *response, const cJSON *object);
// There shall be no children.
void ph_no_children(ph_response *response);
// Conditions and observedGeneration are the host's.
void ph_set_status(ph_response *response, const cJSON *status);
void ph_add_condition(ph_response *response, const char *type, bool holds, const char *reason, const char *message, ...)
    __attribute__((format(printf, 5, 6)));
void ph_add_event(ph_response *response, uint8_t type, const char *reason, const char *message, ...)
    __attribute__((format(printf, 4, 5)));
void ph_add_measurement(ph_response *response, const char *name, double value, const ph_label *labels, size_t labels_length);
void ph_requeue_after(ph_response *response, uint32_t seconds);

// The live child of that kind and name; NULL if there is none.
const ph_live_child *ph_child_of(const ph_request *request, const char *api_version, const char *kind, const char *name);
// A value in JSON by its JSON pointer, such as "/metadata/name"; NULL if there is none. `ph_string` and `ph_number` give another value
// where it is missing or of another type.
const cJSON *ph_at(const cJSON *json, const char *pointer);
const char *ph_string(const cJSON *json, const char *pointer, const char *otherwise);
double ph_number(const cJSON *json, const char *pointer, double otherwise);
// JSON from a text; stops the plugin if it is malformed.
cJSON *ph_parse(ph_text text);
// A JSON object from a text that is formatted as by printf, with %s where a string goes: with its quotes, escaped. Stops the plugin if it
// is malformed.
cJSON *ph_json(const char *format, ...);
ph_text ph_text_of(const char *string);

enum { PH_OWN_NAMESPACE, PH_NAMESPACE, PH_ALL_NAMESPACES };
enum { PH_FOUND, PH_NOT_FOUND, PH_DENIED, PH_NOT_INSTALLED, PH_TOO_LARGE };

// What a lookup found: a status as above, one object or a list of them, and where it was refused, why.
typedef struct {
  int status;
  cJSON *found;
  ph_text why;
} ph_lookup;

// Reads an object that the plugin does not own. A namespace of NULL is that of the object being reconciled. The host remembers each lookup,
// and asks the plugin again when its result changes. The manifest names the kind.
ph_lookup ph_get(const char *api_version, const char *kind, const char *namespace_, const char *name);
// Those that a label selector matches. `scope` is one of the three above.
ph_lookup ph_select(const char *api_version, const char *kind, int scope, const char *namespace_, const char *label_selector);
// The verdict that fits where a lookup was refused.
void ph_refused(ph_response *response, const ph_lookup *lookup);

// The time at which the call began, as RFC 3339 in UTC. A plugin that does not read it is asked only when something changes.
ph_text ph_now(void);

enum { PH_ERROR, PH_WARN, PH_INFO, PH_DEBUG };
void ph_log(uint32_t level, const char *message, ...) __attribute__((format(printf, 2, 3)));
// Stops the plugin: the message is shown on the object.
_Noreturn void ph_fail(const char *message, ...) __attribute__((format(printf, 1, 2)));

#endif
