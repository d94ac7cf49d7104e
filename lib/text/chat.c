/* SPDX-License-Identifier: Apache-2.0 */
/* Chat requests to ids: what the fields of a request become. */
#include "chat.h"

#include <inttypes.h>

/* ---- fields ---- */

/* A field that is absent or null is NULL. */
static json_t *field(const json_t *object, const char *name)
{
    json_t *j = json_object_get(object, name);
    return json_is_null(j) ? NULL : j;
}

/* A string field, NULL if it is absent, null or empty; anything else is refused. */
static const char *string_field(k3_chat *c, const char *where, const json_t *object, const char *name)
{
    json_t *j = field(object, name);
    if (j && !json_is_string(j)) {
        k3_seg_refuse(c, "%s.%s is not a string", where, name);
        return NULL;
    }
    if (!j || !json_string_length(j))
        return NULL;
    if (strlen(json_string_value(j)) != json_string_length(j)) {
        k3_seg_refuse(c, "%s.%s holds a NUL", where, name);
        return NULL;
    }
    return json_string_value(j);
}

enum { STRING = 1, ARRAY = 2, OBJECT = 4, BOOLEAN = 8, NUMBER = 16 };

/* A field that an object may have. The list ends with a row whose name is NULL. */
struct known {
    const char *name;
    int types;
    const char *role; /* of the messages it is for; NULL: any */
};

static int type_of(const json_t *j)
{
    static const int types[] = {OBJECT, ARRAY, STRING, NUMBER, NUMBER, BOOLEAN, BOOLEAN, 0};
    return types[json_typeof(j)];
}

static const char *type_names(int types)
{
    switch (types) {
    case STRING:
        return "a string";
    case ARRAY:
        return "an array";
    case OBJECT:
        return "an object";
    case BOOLEAN:
        return "true or false";
    case STRING | ARRAY:
        return "a string or an array";
    case STRING | NUMBER:
        return "a string or a number";
    case NUMBER:
        return "a number";
    default:
        return "a string or an object";
    }
}

/* Whether a field holds nothing that a prompt could lack. */
static bool is_empty(const json_t *j)
{
    return json_is_string(j) ? !json_string_length(j) : json_is_array(j) && !json_array_size(j);
}

/* Refuses what could be taken for absent: fields of unknown meaning, of an unexpected type, or of another role's
 * messages. Null is absent. */
static void check_fields(k3_chat *c, const char *where, json_t *object, const struct known *known, const char *role)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        const struct known *k = known;
        if (json_is_null(value))
            continue;
        while (k->name && strcmp(k->name, key))
            k++;
        if (!k->name)
            k3_seg_refuse(c, "%s has a field \"%.60s\" that is not understood", *where ? where : "the request", key);
        else if (!(k->types & type_of(value)))
            k3_seg_refuse(c, "%s%s%s is not %s", where, *where ? "." : "", key, type_names(k->types));
        else if (k->role && role && strcmp(k->role, role) && !is_empty(value))
            k3_seg_refuse(c, "%s.%s is for messages of role %s", where, key, k->role);
    }
}

/* Every element of an array of objects. */
static void check_objects(k3_chat *c, const char *where, const json_t *array)
{
    const json_t *element;
    size_t i;
    json_array_foreach(array, i, element)
        if (!json_is_object(element))
            k3_seg_refuse(c, "%s[%zu] is not an object", where, i);
}

/* ---- messages ---- */

static void content_part(k3_chat *c, const char *message, size_t i, json_t *part)
{
    static const struct known known[] = {{"type", STRING, NULL}, {"text", STRING, NULL},
                                         {"image", STRING | OBJECT, NULL}, {"image_url", STRING | OBJECT, NULL}, {0}};
    char where[160];
    snprintf(where, sizeof where, "%s.content[%zu]", message, i);
    const char *type = json_string_value(json_object_get(part, "type"));
    const json_t *t = json_object_get(part, "text");
    if (!json_is_object(part))
        k3_seg_refuse(c, "%s is not an object", where);
    else if (!type)
        k3_seg_refuse(c, "%s.type is not a string", where);
    else if (!strcmp(type, "image") || !strcmp(type, "image_url"))
        k3_seg_control(c, MEDIA_PAD);
    else if (strcmp(type, "text"))
        k3_seg_refuse(c, "%s is of type \"%.60s\", not text or image_url", where, type);
    else if (!json_is_string(t))
        k3_seg_refuse(c, "%s.text is not a string", where);
    else
        k3_seg_text(c, json_string_value(t), json_string_length(t));
    check_fields(c, where, part, known, NULL);
}

static void content(k3_chat *c, const char *where, const json_t *message)
{
    json_t *j = field(message, "content"), *part;
    size_t i;
    if (json_is_string(j))
        k3_seg_text(c, json_string_value(j), json_string_length(j));
    else
        json_array_foreach(j, i, part)
            content_part(c, where, i, part);
}

/* Whether content would put nothing into a message: absent, "", [] or text parts that are all empty. */
static bool content_is_empty(const json_t *message)
{
    const json_t *j = field(message, "content"), *part;
    size_t i;
    if (json_is_string(j))
        return !json_string_length(j);
    json_array_foreach(j, i, part)
        if (!json_is_string(json_object_get(part, "text")) || json_string_length(json_object_get(part, "text")))
            return false;
    return true;
}

static const char *xtml_type(const json_t *j)
{
    static const char *const names[] = {"object", "array", "string", "number", "number", "boolean", "boolean", "null"};
    return names[json_typeof(j)];
}

/* One argument. */
static void argument(k3_chat *c, const char *key, size_t key_size, const char *type, const char *text, size_t size)
{
    k3_seg_control(c, OPEN);
    k3_seg_words(c, "argument");
    k3_seg_attribute(c, "key", key, key_size);
    k3_seg_attribute(c, "type", type, strlen(type));
    k3_seg_control(c, SEP);
    k3_seg_text(c, text, size);
    k3_seg_close(c, "argument");
}

/* Arguments given as an object: a string as it is, everything else as Python writes it. */
static void argument_object(k3_chat *c, json_t *object)
{
    const char *key;
    json_t *value;
    k3_bytes text = {0};
    json_object_foreach(object, key, value) {
        text.n = 0;
        if (!c->status)
            c->status = json_is_string(value) ? k3_bytes_add(&text, json_string_value(value), json_string_length(value), c->err)
                                              : k3_json_text(&text, c->doc, value, 0, c->err);
        argument(c, key, strlen(key), xtml_type(value), text.data, text.n);
    }
    k3_bytes_free(&text);
}

/* The string whose JSON is `quoted`. */
static int read_string(k3_json *doc, struct k3_span quoted, k3_err *err)
{
    json_error_t why;
    return k3_json_read(doc, quoted.s, quoted.size, K3_JSON_ANY, &why, err);
}

static const char *type_of_text(const char *s)
{
    return *s == '{' ? "object" : *s == '[' ? "array" : *s == 't' || *s == 'f' ? "boolean" : *s == 'n' ? "null" : "number";
}

/* One member of arguments given as text: a string is decoded, other literals stay as they are. */
static void argument_member(k3_chat *c, struct k3_span name, struct k3_span value)
{
    k3_json key = {0}, string = {0};
    if (!c->status)
        c->status = read_string(&key, name, c->err);
    if (!c->status && *value.s == '"')
        c->status = read_string(&string, value, c->err);
    if (!c->status && string.root)
        argument(c, json_string_value(key.root), json_string_length(key.root), "string", json_string_value(string.root),
                 json_string_length(string.root));
    else if (!c->status)
        argument(c, json_string_value(key.root), json_string_length(key.root), type_of_text(value.s), value.s, value.size);
    k3_json_free(&key);
    k3_json_free(&string);
}

/* Arguments given as the text of a JSON object, every member as it comes. Blank text means none; text that is no
 * object goes as one block. */
static void argument_text(k3_chat *c, const char *where, const char *s, size_t n)
{
    json_error_t why;
    k3_json doc;
    struct k3_span name, value;
    if (c->status || k3_all_space(s, n))
        return;
    int status = k3_json_read(&doc, s, n, K3_JSON_ANY, &why, c->err);
    if (status == K3_ESYS) {
        c->status = status;
    } else if (status && json_error_code(&why) == json_error_stack_overflow) {
        k3_seg_refuse(c, "%s.arguments: %s", where, why.text);
    } else if (!json_is_object(doc.root)) {
        k3_seg_open(c, "json", "type", "object", NULL);
        k3_seg_text(c, s, n);
        k3_seg_close(c, "json");
    } else {
        for (const char *p = s; k3_json_next_member(&p, &name, &value);)
            argument_member(c, name, value);
    }
    k3_json_free(&doc);
}

static json_t *function_of(json_t *call)
{
    json_t *f = field(call, "function");
    return f ? f : call;
}

/* The fields of a call, in its function if it has one. */
static void check_call(k3_chat *c, const char *where, json_t *call)
{
    static const struct known outer[] = {{"id", STRING | NUMBER, NULL}, {"type", STRING, NULL},
                                         {"index", NUMBER, NULL}, {"function", OBJECT, NULL}, {0}};
    static const struct known inner[] = {{"name", STRING, NULL}, {"arguments", STRING | OBJECT, NULL}, {0}};
    static const struct known both[] = {{"id", STRING | NUMBER, NULL}, {"type", STRING, NULL}, {"index", NUMBER, NULL},
                                        {"name", STRING, NULL}, {"arguments", STRING | OBJECT, NULL}, {0}};
    const char *type = json_string_value(json_object_get(call, "type"));
    json_t *function = field(call, "function");
    char place[192];
    if (!json_is_object(call))
        k3_seg_refuse(c, "%s is not an object", where);
    check_fields(c, where, call, function ? outer : both, NULL);
    snprintf(place, sizeof place, "%s.function", where);
    check_fields(c, place, function, inner, NULL);
    if (type && strcmp(type, "function"))
        k3_seg_refuse(c, "%s.type is \"%.60s\", not function", where, type);
}

static void tool_call(k3_chat *c, const char *message, size_t i, json_t *call)
{
    char where[160], index[24];
    json_t *arguments = field(function_of(call), "arguments");
    snprintf(where, sizeof where, "%s.tool_calls[%zu]", message, i);
    snprintf(index, sizeof index, "%zu", i + 1);
    check_call(c, where, call);
    const char *name = string_field(c, where, function_of(call), "name");
    if (!name)
        k3_seg_refuse(c, "%s has no function name", where);
    k3_seg_open(c, "call", "tool", name, "index", index, NULL);
    if (json_is_object(arguments))
        argument_object(c, arguments);
    else if (json_is_string(arguments))
        argument_text(c, where, json_string_value(arguments), json_string_length(arguments));
    k3_seg_close(c, "call");
}

static void assistant(k3_chat *c, const char *where, json_t *message)
{
    json_t *calls = field(message, "tool_calls"), *call;
    size_t i;
    k3_seg_open(c, "message", "role", "assistant", "name", string_field(c, where, message, "name"), NULL);
    if (c->thinking) {
        const char *reasoning = string_field(c, where, message, "reasoning_content");
        if (!reasoning)
            reasoning = string_field(c, where, message, "reasoning");
        k3_seg_open(c, "think", NULL);
        if (reasoning && !k3_all_space(reasoning, strlen(reasoning)))
            k3_seg_words(c, reasoning);
        k3_seg_close(c, "think");
    }
    k3_seg_open(c, "response", NULL);
    content(c, where, message);
    k3_seg_close(c, "response");
    if (json_array_size(calls)) {
        k3_seg_open(c, "tools", NULL);
        json_array_foreach(calls, i, call)
            tool_call(c, where, i, call);
        k3_seg_close(c, "tools");
    }
    k3_seg_end_message(c);
    c->calls = calls;
    c->results = 0;
}

/* The text of an id, a string or a number; NULL if there is none. Appended to *text. */
static bool id_text(k3_chat *c, k3_bytes *text, json_t *id)
{
    text->n = 0;
    if (c->status || (!json_is_string(id) && !json_is_number(id)))
        return false;
    c->status = json_is_string(id) ? k3_bytes_add(text, json_string_value(id), json_string_length(id), c->err)
                                   : k3_json_text(text, c->doc, id, 0, c->err);
    return !c->status;
}

/* The place among the last calls of the one that the tool message answers, or -1. */
static int64_t answered(k3_chat *c, const json_t *message)
{
    json_t *id = field(message, "tool_call_id");
    k3_bytes want = {0}, have = {0};
    int64_t found = -1;
    if (id_text(c, &want, id ? id : field(message, "id")))
        for (size_t i = 0; i < json_array_size(c->calls) && found < 0; i++)
            if (id_text(c, &have, json_object_get(json_array_get(c->calls, i), "id")) && have.n == want.n &&
                (!have.n || !memcmp(have.data, want.data, have.n)))
                found = (int64_t)i;
    k3_bytes_free(&want);
    k3_bytes_free(&have);
    return found;
}

static void tool_result(k3_chat *c, const char *where, json_t *message, int64_t call)
{
    char index[24];
    const char *name = NULL;
    c->results++;
    if (call < 0 && !(name = string_field(c, where, message, "tool")))
        name = string_field(c, where, message, "name");
    if (!name)
        name = string_field(c, where, function_of(json_array_get(c->calls, call < 0 ? c->results - 1 : (size_t)call)), "name");
    if (!name)
        k3_seg_refuse(c, "%s answers no tool call of the assistant's message before it", where);
    snprintf(index, sizeof index, "%zu", c->results);
    k3_seg_open(c, "message", "role", "tool", "tool", name, "index", index, NULL);
    content(c, where, message);
    k3_seg_end_message(c);
}

/* A run of tool messages [first, last) goes in the order of the calls if each answers one. */
static void tool_results(k3_chat *c, json_t *messages, size_t first, size_t last)
{
    bool all = true;
    char where[64];
    for (size_t i = first; i < last; i++)
        all &= answered(c, json_array_get(messages, i)) >= 0;
    for (size_t k = 0; k < (all ? json_array_size(c->calls) : 1); k++)
        for (size_t i = first; i < last; i++) {
            json_t *message = json_array_get(messages, i);
            snprintf(where, sizeof where, "messages[%zu]", i);
            if (!all || answered(c, message) == (int64_t)k)
                tool_result(c, where, message, all ? (int64_t)k : -1);
        }
}

/* A message of the system, the developer or the user; the first two may bring tools, and may then have no content. */
static void plain_message(k3_chat *c, const char *where, json_t *message, const char *role)
{
    json_t *tools = field(message, "tools");
    char place[128];
    snprintf(place, sizeof place, "%s.tools", where);
    check_objects(c, place, tools);
    if (json_array_size(tools))
        k3_seg_system(c, "tool-declare",
                       "## New Tools Available\nThe system dynamically extends the toolset via lazy-loading.\n"
                       "You have access to all existing and extended tools.\nHere are the specs for the extended tools.\n\n"
                       "```json\n",
                       tools, "\n```");
    if (json_array_size(tools) && content_is_empty(message))
        return;
    k3_seg_open(c, "message", "role", strcmp(role, "user") ? "system" : "user", "name", string_field(c, where, message, "name"), NULL);
    content(c, where, message);
    k3_seg_end_message(c);
}

static const char *role_of(const json_t *message)
{
    const char *role = json_string_value(json_object_get(message, "role"));
    return role ? role : "";
}

/* Refuses what is no message, and the fields that its role does not have. */
static void check_message(k3_chat *c, const char *where, json_t *message)
{
    static const struct known known[] = {
        {"role", STRING, NULL},
        {"content", STRING | ARRAY, NULL},
        {"name", STRING, NULL},
        {"tools", ARRAY, "system"},
        {"tool_calls", ARRAY, "assistant"},
        {"reasoning_content", STRING, "assistant"},
        {"reasoning", STRING, "assistant"},
        {"tool_call_id", STRING | NUMBER, "tool"},
        {"id", STRING | NUMBER, NULL},
        {"tool", STRING, "tool"},
        {"unfinished", BOOLEAN, "assistant"}, /* as parse marks it; the prompt closes the message */
        {0}};
    const char *role = role_of(message);
    if (!json_is_object(message)) {
        k3_seg_refuse(c, "%s is not an object", where);
        return;
    }
    check_fields(c, where, message, known, strcmp(role, "developer") ? role : "system");
    if (strcmp(role, "tool") && strcmp(role, "assistant") && strcmp(role, "user") && strcmp(role, "system") &&
        strcmp(role, "developer"))
        k3_seg_refuse(c, "%s.role is %s%.60s%s, not system, developer, user, assistant or tool", where, *role ? "\"" : "",
               *role ? role : "absent", *role ? "\"" : "");
}

static void messages(k3_chat *c, json_t *list)
{
    char where[64];
    for (size_t i = 0, next; i < json_array_size(list) && !c->status; i = next) {
        json_t *message = json_array_get(list, i);
        const char *role = role_of(message);
        for (next = i; next == i || (!strcmp(role, "tool") && !strcmp(role_of(json_array_get(list, next)), "tool")); next++) {
            snprintf(where, sizeof where, "messages[%zu]", next);
            check_message(c, where, json_array_get(list, next));
        }
        snprintf(where, sizeof where, "messages[%zu]", i);
        if (!strcmp(role, "tool"))
            tool_results(c, list, i, next);
        else if (!strcmp(role, "assistant"))
            assistant(c, where, message);
        else
            plain_message(c, where, message, role);
    }
}

/* ---- the request ---- */

static void thinking_effort(k3_chat *c, const json_t *kwargs)
{
    char body[512];
    const json_t *j = json_object_get(kwargs, "thinking_effort");
    const char *effort = j ? json_string_value(j) : "max";
    if (!c->thinking || json_is_null(j))
        return;
    if (!effort || (strcmp(effort, "low") && strcmp(effort, "high") && strcmp(effort, "max"))) {
        k3_seg_refuse(c, "template_kwargs.thinking_effort is not low, high or max");
        return;
    }
    snprintf(body, sizeof body,
             "`thinking_effort` guides on how much to think in your thinking channel (not including the response channel), "
             "supported values include `low`, `medium`, `high`, and `max`.\n"
             "Now the system is invoked with `thinking_effort=%s`.",
             effort);
    k3_seg_system(c, "thinking-effort", body, NULL, "");
}

static void tool_choice(k3_chat *c, const json_t *request)
{
    const json_t *j = field(request, "tool_choice");
    const char *choice = j ? json_string_value(j) : "auto";
    if (choice && !strcmp(choice, "required"))
        k3_seg_system(c, "tool-choice",
                       "The system is invoked with `tool_choice=required`.\nYou MUST call tools in the next message.", NULL, "");
    else if (choice && !strcmp(choice, "none"))
        k3_seg_system(c, "tool-choice",
                       "The system is invoked with `tool_choice=none`.\nYou MUST NOT call any tools in the next message.", NULL, "");
    else if (!choice || strcmp(choice, "auto"))
        k3_seg_refuse(c, "tool_choice is not auto, required or none");
}

/* The schema may be wrapped once more, or be the field itself. */
static json_t *schema_of(k3_chat *c, const json_t *format)
{
    json_t *s = field(format, "json_schema");
    json_t *inner = json_object_get(s, "schema");
    if (!inner)
        inner = json_object_get(s, "json_schema");
    if (inner && !json_is_object(inner) && !json_is_boolean(inner))
        k3_seg_refuse(c, "the schema in response_format.json_schema is not an object");
    return inner ? inner : s;
}

static void response_format(k3_chat *c, const json_t *request)
{
#define RAW "Your response must be raw JSON data without markdown code blocks (```json) or any additional formatting."
    static const struct known known[] = {{"type", STRING, NULL}, {"json_schema", OBJECT, NULL}, {0}};
    json_t *format = field(request, "response_format");
    const char *type = json_is_object(format) ? json_string_value(json_object_get(format, "type")) : json_string_value(format);
    check_fields(c, "response_format", format, known, NULL);
    if (!format || (type && !strcmp(type, "text")))
        return;
    if (type && !strcmp(type, "json_object"))
        k3_seg_system(c, "response-format", "The system is invoked with `response_format=json_object`.\n" RAW, NULL, "");
    else if (type && !strcmp(type, "json_schema") && schema_of(c, format))
        k3_seg_system(c, "response-format",
                       "The system is invoked with `response_format=json_schema`.\n" RAW
                       "\nThe JSON data must match the following schema:\n```json\n",
                       schema_of(c, format), "\n```");
    else
        k3_seg_refuse(c, "response_format is not text, json_object or json_schema with its schema");
#undef RAW
}

/* A boolean field with a default. */
static bool flag(const json_t *object, const char *name, bool otherwise)
{
    const json_t *j = field(object, name);
    return j ? json_is_true(j) : otherwise;
}

static void request(k3_chat *c, json_t *j)
{
    static const struct known known[] = {{"messages", ARRAY, NULL}, {"tools", ARRAY, NULL}, {"tool_choice", STRING | OBJECT, NULL},
                                         {"response_format", STRING | OBJECT, NULL}, {"add_generation_prompt", BOOLEAN, NULL},
                                         {"template_kwargs", OBJECT, NULL}, {0}};
    static const struct known kwargs_known[] = {{"thinking", BOOLEAN, NULL}, {"thinking_effort", STRING, NULL}, {0}};
    json_t *list = json_is_array(j) ? j : field(j, "messages"), *tools = field(j, "tools"), *kwargs = field(j, "template_kwargs");
    check_fields(c, "", j, known, NULL);
    check_fields(c, "template_kwargs", kwargs, kwargs_known, NULL);
    if (!list)
        k3_seg_refuse(c, "the request has no array \"messages\"");
    check_objects(c, "tools", tools);
    c->thinking = flag(kwargs, "thinking", true);
    if (json_array_size(tools))
        k3_seg_system(c, "tool-declare", "# Tools\nHere are the available tools, described in JSONSchema.\n\n```json\n", tools,
                       "\n```");
    thinking_effort(c, kwargs);
    messages(c, list);
    tool_choice(c, j);
    response_format(c, j);
    if (flag(j, "add_generation_prompt", true)) {
        k3_seg_open(c, "message", "role", "assistant", NULL);
        k3_seg_open(c, c->thinking ? "think" : "response", NULL);
    }
}

int k3_chat_encode(k3_chat *c, const char *json, size_t size, const char *name, k3_ids *out, k3_err *err)
{
    json_error_t why;
    k3_json doc;
    if (k3_byte_order_mark(json, size))
        return k3_fail_at(err, K3_EDATA, name, NULL, -1, "%s", k3_byte_order_mark(json, size));
    int status = k3_json_read(&doc, json, size, K3_JSON_DISTINCT, &why, err);
    if (status == K3_EDATA)
        return k3_fail_at(err, K3_EDATA, name, NULL, -1, "line %d: not JSON: %s", why.line, why.text);
    if (status)
        return status;
    c->out = out;
    c->err = err;
    c->name = name;
    c->doc = &doc;
    c->status = 0;
    c->calls = NULL;
    c->results = 0;
    request(c, doc.root);
    c->doc = NULL;
    k3_json_free(&doc);
    return c->status;
}
