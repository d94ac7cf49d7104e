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

/* Fields that mean something unknown are refused rather than ignored. `known` ends with NULL. */
static void check_fields(k3_chat *c, const char *where, json_t *object, const char *const *known)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        size_t i = 0;
        while (known[i] && strcmp(known[i], key))
            i++;
        if (!known[i] && !json_is_null(value))
            k3_seg_refuse(c, "%s has a field \"%.60s\" that is not understood", where, key);
    }
}

/* ---- messages ---- */

static void content_part(k3_chat *c, const char *where, size_t i, const json_t *part)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    const json_t *t = json_object_get(part, "text");
    if (!type)
        k3_seg_refuse(c, "%s.content[%zu] has no \"type\"", where, i);
    else if (!strcmp(type, "image") || !strcmp(type, "image_url"))
        k3_seg_control(c, MEDIA_PAD);
    else if (strcmp(type, "text"))
        k3_seg_refuse(c, "%s.content[%zu] is of type \"%.60s\", not text or image_url", where, i, type);
    else if (!json_is_string(t))
        k3_seg_refuse(c, "%s.content[%zu].text is not a string", where, i);
    else
        k3_seg_text(c, json_string_value(t), json_string_length(t));
}

static void content(k3_chat *c, const char *where, const json_t *message)
{
    const json_t *j = field(message, "content"), *part;
    size_t i;
    if (!j)
        return;
    if (json_is_string(j))
        k3_seg_text(c, json_string_value(j), json_string_length(j));
    else if (!json_is_array(j))
        k3_seg_refuse(c, "%s.content is neither a string nor an array", where);
    else
        json_array_foreach(j, i, part)
            content_part(c, where, i, part);
}

static const char *xtml_type(const json_t *j)
{
    static const char *const names[] = {"object", "array", "string", "number", "number", "boolean", "boolean", "null"};
    return names[json_typeof(j)];
}

/* One argument: a string as it is, everything else as its JSON, the literal where there is one. */
static void argument(k3_chat *c, const char *key, json_t *value, const char *literal, size_t size)
{
    k3_seg_open(c, "argument", "key", key, "type", xtml_type(value), NULL);
    if (json_is_string(value)) {
        k3_seg_text(c, json_string_value(value), json_string_length(value));
    } else if (literal) {
        k3_seg_text(c, literal, size);
    } else if (!c->status) {
        c->scratch.n = 0;
        c->status = k3_json_text(&c->scratch, value, 0, c->err);
        k3_seg_text(c, c->scratch.data, c->scratch.n);
    }
    k3_seg_close(c, "argument");
}

/* Arguments given as the text of a JSON object: their literals stay as they are. Text that is none goes as one block. */
static void argument_text(k3_chat *c, const char *where, const char *s, size_t n)
{
    json_error_t why;
    const char *key, *literal, *end = s;
    if (!n)
        return;
    json_t *j = json_loadb(s, n, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &why), *value;
    if (!j && (json_error_code(&why) == json_error_numeric_overflow || json_error_code(&why) == json_error_duplicate_key)) {
        k3_seg_refuse(c, "%s.arguments: %s", where, why.text);
    } else if (!json_is_object(j)) {
        k3_seg_open(c, "json", "type", "object", NULL);
        k3_seg_text(c, s, n);
        k3_seg_close(c, "json");
    } else {
        json_object_foreach(j, key, value) {
            literal = k3_json_next_value(end, &end);
            argument(c, key, value, literal, (size_t)(end - literal));
        }
    }
    json_decref(j);
}

static json_t *function_of(json_t *call)
{
    json_t *f = field(call, "function");
    return f ? f : call;
}

static void tool_call(k3_chat *c, const char *message, size_t i, json_t *call)
{
    char where[160], index[24];
    json_t *arguments = field(function_of(call), "arguments"), *value;
    const char *key;
    snprintf(where, sizeof where, "%s.tool_calls[%zu]", message, i);
    snprintf(index, sizeof index, "%zu", i + 1);
    const char *name = string_field(c, where, function_of(call), "name");
    if (!name)
        k3_seg_refuse(c, "%s has no function name", where);
    k3_seg_open(c, "call", "tool", name, "index", index, NULL);
    if (json_is_object(arguments))
        json_object_foreach(arguments, key, value)
            argument(c, key, value, NULL, 0);
    else if (json_is_string(arguments))
        argument_text(c, where, json_string_value(arguments), json_string_length(arguments));
    else if (arguments)
        k3_seg_refuse(c, "%s.arguments is neither an object nor the text of one", where);
    k3_seg_close(c, "call");
}

static void assistant(k3_chat *c, const char *where, json_t *message)
{
    json_t *calls = field(message, "tool_calls"), *call;
    size_t i;
    if (calls && !json_is_array(calls))
        k3_seg_refuse(c, "%s.tool_calls is not an array", where);
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

/* The place among the last calls of the one that the tool message answers, or -1. */
static int64_t answered(const k3_chat *c, const json_t *message)
{
    const json_t *id = field(message, "tool_call_id"), *call;
    size_t i;
    if (!id)
        id = field(message, "id");
    json_array_foreach(c->calls, i, call)
        if (json_is_string(id) && json_equal(id, json_object_get(call, "id")))
            return (int64_t)i;
    return -1;
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

/* A message of the system, the developer or the user; the first two may bring tools. */
static void plain_message(k3_chat *c, const char *where, json_t *message, const char *role)
{
    json_t *tools = field(message, "tools");
    const bool system = strcmp(role, "user") != 0;
    if (tools && (!system || !json_is_array(tools)))
        k3_seg_refuse(c, "%s.tools %s", where, system ? "is not an array" : "is for system and developer messages");
    if (json_array_size(tools))
        k3_seg_system(c, "tool-declare",
                       "## New Tools Available\nThe system dynamically extends the toolset via lazy-loading.\n"
                       "You have access to all existing and extended tools.\nHere are the specs for the extended tools.\n\n"
                       "```json\n",
                       tools, "\n```");
    if (json_array_size(tools) && !field(message, "content"))
        return;
    k3_seg_open(c, "message", "role", system ? "system" : "user", "name", string_field(c, where, message, "name"), NULL);
    content(c, where, message);
    k3_seg_end_message(c);
}

static const char *role_of(const json_t *message)
{
    const char *role = json_string_value(json_object_get(message, "role"));
    return role ? role : "";
}

static void messages(k3_chat *c, json_t *list)
{
    static const char *const known[] = {"role", "content", "name", "tools", "tool_calls", "tool_call_id", "id", "tool",
                                        "reasoning_content", "reasoning", NULL};
    char where[64];
    for (size_t i = 0, next; i < json_array_size(list) && !c->status; i = next) {
        json_t *message = json_array_get(list, i);
        const char *role = role_of(message);
        next = i + 1;
        snprintf(where, sizeof where, "messages[%zu]", i);
        if (!json_is_object(message))
            k3_seg_refuse(c, "%s is not an object", where);
        check_fields(c, where, message, known);
        if (!strcmp(role, "tool")) {
            while (!strcmp(role_of(json_array_get(list, next)), "tool"))
                next++;
            tool_results(c, list, i, next);
        } else if (!strcmp(role, "assistant")) {
            assistant(c, where, message);
        } else if (!strcmp(role, "user") || !strcmp(role, "system") || !strcmp(role, "developer")) {
            plain_message(c, where, message, role);
        } else {
            k3_seg_refuse(c, "%s.role is %s%.60s%s, not system, developer, user, assistant or tool", where, *role ? "\"" : "",
                   *role ? role : "absent", *role ? "\"" : "");
        }
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
static json_t *schema_of(json_t *format)
{
    json_t *s = field(format, "json_schema");
    json_t *inner = json_object_get(s, "schema");
    if (!inner)
        inner = json_object_get(s, "json_schema");
    return inner ? inner : s;
}

static void response_format(k3_chat *c, const json_t *request)
{
#define RAW "Your response must be raw JSON data without markdown code blocks (```json) or any additional formatting."
    json_t *format = field(request, "response_format");
    const char *type = json_is_object(format) ? json_string_value(json_object_get(format, "type")) : json_string_value(format);
    if (!format || (type && !strcmp(type, "text")))
        return;
    if (type && !strcmp(type, "json_object"))
        k3_seg_system(c, "response-format", "The system is invoked with `response_format=json_object`.\n" RAW, NULL, "");
    else if (type && !strcmp(type, "json_schema") && schema_of(format))
        k3_seg_system(c, "response-format",
                       "The system is invoked with `response_format=json_schema`.\n" RAW
                       "\nThe JSON data must match the following schema:\n```json\n",
                       schema_of(format), "\n```");
    else
        k3_seg_refuse(c, "response_format is not text, json_object or json_schema with its schema");
#undef RAW
}

/* A boolean field with a default. */
static bool flag(k3_chat *c, const char *where, const json_t *object, const char *name, bool otherwise)
{
    const json_t *j = field(object, name);
    if (j && !json_is_boolean(j))
        k3_seg_refuse(c, "%s%s is not true or false", where, name);
    return j ? json_is_true(j) : otherwise;
}

static void request(k3_chat *c, json_t *j)
{
    static const char *const known[] = {"messages", "tools", "tool_choice", "response_format", "add_generation_prompt",
                                        "template_kwargs", NULL};
    static const char *const kwargs_known[] = {"thinking", "thinking_effort", NULL};
    json_t *list = json_is_array(j) ? j : field(j, "messages"), *tools = field(j, "tools"), *kwargs = field(j, "template_kwargs");
    check_fields(c, "the request", j, known);
    if (kwargs && !json_is_object(kwargs))
        k3_seg_refuse(c, "template_kwargs is not an object");
    check_fields(c, "template_kwargs", kwargs, kwargs_known);
    if (!json_is_array(list))
        k3_seg_refuse(c, "the request has no array \"messages\"");
    if (tools && !json_is_array(tools))
        k3_seg_refuse(c, "tools is not an array");
    c->thinking = flag(c, "template_kwargs.", kwargs, "thinking", true);
    if (json_array_size(tools))
        k3_seg_system(c, "tool-declare", "# Tools\nHere are the available tools, described in JSONSchema.\n\n```json\n", tools,
                       "\n```");
    thinking_effort(c, kwargs);
    messages(c, list);
    tool_choice(c, j);
    response_format(c, j);
    if (flag(c, "", j, "add_generation_prompt", true)) {
        k3_seg_open(c, "message", "role", "assistant", NULL);
        k3_seg_open(c, c->thinking ? "think" : "response", NULL);
    }
}

int k3_chat_encode(k3_chat *c, const char *json, size_t size, const char *name, k3_ids *out, k3_err *err)
{
    json_error_t why;
    json_t *j = json_loadb(json, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (!j)
        return k3_fail_at(err, K3_EDATA, name, NULL, -1, "line %d: not JSON: %s", why.line, why.text);
    c->out = out;
    c->err = err;
    c->name = name;
    c->status = 0;
    c->calls = NULL;
    c->results = 0;
    request(c, j);
    json_decref(j);
    return c->status;
}
