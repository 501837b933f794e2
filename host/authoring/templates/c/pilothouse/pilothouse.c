// What the functions of pilothouse.h do that need no host. It keeps nothing between calls.
#define _POSIX_C_SOURCE 200809L

#include "pilothouse.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// As the contract lays them out.
_Static_assert(sizeof(ph_live_child) == 28 && sizeof(ph_refused_child) == 52, "what comes");
_Static_assert(sizeof(ph_child) == 32 && sizeof(ph_condition) == 28 && sizeof(ph_event) == 20, "what goes");
_Static_assert(sizeof(ph_measurement) == 24 && sizeof(ph_response) == 84, "what goes");

static void *allocate(size_t size) {
  void *memory = calloc(1, size ? size : 1);
  if (!memory) abort();
  return memory;
}

static char *format_list(const char *format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  size_t length = (size_t)vsnprintf(NULL, 0, format, arguments) + 1;
  char *text = allocate(length);
  vsnprintf(text, length, format, again);
  va_end(again);
  return text;
}

#define FORMAT(text, last)                \
  char *text;                             \
  do {                                    \
    va_list arguments;                    \
    va_start(arguments, last);            \
    text = format_list(last, arguments);  \
    va_end(arguments);                    \
  } while (0)

_Noreturn void ph_fail(const char *message, ...) {
  FORMAT(text, message);
  fprintf(stderr, "%s\n", text);
  abort();
}

ph_text ph_text_of(const char *string) { return (ph_text){string, strlen(string)}; }

cJSON *ph_parse(ph_text text) {
  cJSON *json = cJSON_ParseWithLength(text.data, text.length);
  if (!json) ph_fail("malformed JSON: %.*s", (int)text.length, text.data);
  return json;
}

static ph_text print(const cJSON *json) {
  char *text = cJSON_PrintUnformatted(json);
  if (!text) ph_fail("JSON that cannot be written");
  return ph_text_of(text);
}

// The format with each %s of a string's place filled by the string as JSON writes it; %d and the like are printf's.
cJSON *ph_json(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  size_t capacity = strlen(format) + 1, length = 0;
  char *text = allocate(capacity);
  for (const char *at = format; *at; at++) {
    char number[32] = {*at, 0};
    const char *piece = number;
    if (*at == '%') {
      at++;
      if (*at == 's') piece = print(cJSON_CreateString(va_arg(arguments, const char *))).data;
      else if (*at == 'd') snprintf(number, sizeof number, "%d", va_arg(arguments, int));
      else if (*at == 'g') snprintf(number, sizeof number, "%.17g", va_arg(arguments, double));
      else ph_fail("ph_json knows %%s, %%d and %%g, and not %%%c", *at);
    }
    size_t more = strlen(piece);
    if (length + more >= capacity) {
      capacity = 2 * (length + more) + 1;
      text = realloc(text, capacity);
      if (!text) abort();
    }
    memcpy(text + length, piece, more + 1);
    length += more;
  }
  va_end(arguments);
  return ph_parse((ph_text){text, length});
}

const cJSON *ph_at(const cJSON *json, const char *pointer) {
  while (json && *pointer == '/') {
    char key[256];
    size_t length = 0;
    for (pointer++; *pointer && *pointer != '/'; pointer++) {
      if (length + 1 == sizeof key) return NULL;
      char letter = *pointer;
      if (letter == '~' && pointer[1] == '0') pointer++;
      else if (letter == '~' && pointer[1] == '1') pointer++, letter = '/';
      key[length++] = letter;
    }
    key[length] = 0;
    json = cJSON_IsArray(json) ? cJSON_GetArrayItem(json, atoi(key)) : cJSON_GetObjectItemCaseSensitive(json, key);
  }
  return json;
}

const char *ph_string(const cJSON *json, const char *pointer, const char *otherwise) {
  const cJSON *found = ph_at(json, pointer);
  return cJSON_IsString(found) ? found->valuestring : otherwise;
}

double ph_number(const cJSON *json, const char *pointer, double otherwise) {
  const cJSON *found = ph_at(json, pointer);
  return cJSON_IsNumber(found) ? found->valuedouble : otherwise;
}

const ph_live_child *ph_child_of(const ph_request *request, const char *api_version, const char *kind, const char *name) {
  for (size_t i = 0; i < request->children_length; i++) {
    cJSON *object = ph_parse(request->children[i].object);
    bool is_it = !strcmp(ph_string(object, "/apiVersion", ""), api_version) && !strcmp(ph_string(object, "/kind", ""), kind) &&
                 !strcmp(ph_string(object, "/metadata/name", ""), name);
    cJSON_Delete(object);
    if (is_it) return &request->children[i];
  }
  return NULL;
}

enum { DONE, WAIT, RETRY, INVALID };

void ph_wait(ph_response *response, const char *reason, uint32_t seconds, const char *message, ...) {
  FORMAT(text, message);
  response->verdict = WAIT;
  response->why = ph_text_of(reason);
  response->waiting_message = ph_text_of(text);
  response->waiting_seconds = seconds;
}

void ph_retry(ph_response *response, const char *message, ...) {
  FORMAT(text, message);
  response->verdict = RETRY;
  response->why = ph_text_of(text);
}

void ph_invalid(ph_response *response, const char *message, ...) {
  FORMAT(text, message);
  response->verdict = INVALID;
  response->why = ph_text_of(text);
}

void ph_refused(ph_response *response, const ph_lookup *lookup) {
  bool is_missing = lookup->status == PH_NOT_INSTALLED;
  ph_wait(response, is_missing ? "KindNotInstalled" : "LookupDenied", is_missing ? 300 : 60, "%.*s", (int)lookup->why.length,
          lookup->why.data);
}

// Room for one more item in a list, which is a pointer and a length.
static void *more(void *list, size_t size) {
  struct {
    char *items;
    size_t length;
  } *grown = list;
  grown->items = realloc(grown->items, (grown->length + 1) * size);
  if (!grown->items) abort();
  void *item = grown->items + grown->length++ * size;
  return memset(item, 0, size);
}

ph_child *ph_add_child(ph_response *response, const cJSON *object) {
  response->has_children = true;
  ph_child *child = more(&response->children, sizeof *child);
  child->object = print(object);
  return child;
}

void ph_no_children(ph_response *response) {
  response->has_children = true;
  response->children.length = 0;
}

void ph_set_status(ph_response *response, const cJSON *status) {
  response->has_status = true;
  response->status = print(status);
}

void ph_add_condition(ph_response *response, const char *type, bool holds, const char *reason, const char *message, ...) {
  FORMAT(text, message);
  ph_condition *condition = more(&response->conditions, sizeof *condition);
  *condition = (ph_condition){ph_text_of(type), holds ? PH_TRUE : PH_FALSE, ph_text_of(reason), ph_text_of(text)};
}

void ph_add_event(ph_response *response, uint8_t type, const char *reason, const char *message, ...) {
  FORMAT(text, message);
  ph_event *event = more(&response->events, sizeof *event);
  *event = (ph_event){type, ph_text_of(reason), ph_text_of(text)};
}

void ph_add_measurement(ph_response *response, const char *name, double value, const ph_label *labels, size_t labels_length) {
  ph_measurement *measurement = more(&response->measurements, sizeof *measurement);
  measurement->name = ph_text_of(name);
  measurement->value = value;
  measurement->labels.items = (ph_label *)labels;
  measurement->labels.length = labels_length;
}

void ph_requeue_after(ph_response *response, uint32_t seconds) {
  response->has_requeue_after = true;
  response->requeue_after = seconds;
}

ph_response *ph_call(PH_PARAMETERS, void (*function)(const ph_request *, ph_response *)) {
  ph_request request = {
      ph_parse((ph_text){object, object_length}), ph_parse((ph_text){config, config_length}), children, children_length, refused,
      refused_length};
  ph_response *response = allocate(sizeof *response);
  function(&request, response);
  // What was printed without the end of its line belongs to this call.
  fflush(stdout);
  fsync(STDOUT_FILENO);
  return response;
}
