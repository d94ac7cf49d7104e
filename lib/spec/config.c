/* SPDX-License-Identifier: Apache-2.0 */
/* config.json: every field that changes the computation is required and checked. */
#include "k3_spec.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { DIM_MAX = INT32_MAX };

/* Problems are gathered so that one run names them all. */
struct problems {
    char missing[1200], odd[1200];
};

static void note(char *list, size_t cap, const char *fmt, va_list ap)
{
    size_t n = strlen(list);
    if (n)
        n += (size_t)snprintf(list + n, cap - n, "; ");
    if (n < cap)
        vsnprintf(list + n, cap - n, fmt, ap);
}

__attribute__((format(printf, 2, 3))) static void missing(struct problems *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    note(p->missing, sizeof p->missing, fmt, ap);
    va_end(ap);
}

__attribute__((format(printf, 2, 3))) static void odd(struct problems *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    note(p->odd, sizeof p->odd, fmt, ap);
    va_end(ap);
}

/* The value as JSON text, short, for messages. */
static const char *shown(json_t *v, char buf[48])
{
    char *s = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15));
    snprintf(buf, 48, "%.40s", s ? s : "?");
    free(s);
    return buf;
}

static json_t *need(struct problems *p, json_t *object, const char *path, const char *name)
{
    json_t *v = object ? json_object_get(object, name) : NULL;
    if (!v && object)
        missing(p, "%s%s", path, name);
    return v;
}

static json_t *need_object(struct problems *p, json_t *object, const char *path, const char *name)
{
    char buf[48];
    json_t *v = need(p, object, path, name);
    if (v && !json_is_object(v)) {
        odd(p, "%s%s is %s, not an object", path, name, shown(v, buf));
        return NULL;
    }
    return v;
}

static void need_uint(struct problems *p, json_t *o, const char *path, const char *name, uint64_t min, uint64_t *out)
{
    char buf[48];
    json_t *v = need(p, o, path, name);
    if (!v)
        return;
    json_int_t n = json_integer_value(v);
    if (!json_is_integer(v) || n < (json_int_t)min || n > DIM_MAX)
        odd(p, "%s%s is %s, not a whole number from %" PRIu64 " to %d", path, name, shown(v, buf), min, DIM_MAX);
    else
        *out = (uint64_t)n;
}

static void need_real(struct problems *p, json_t *o, const char *path, const char *name, bool positive, double *out)
{
    char buf[48];
    json_t *v = need(p, o, path, name);
    if (!v)
        return;
    double x = json_number_value(v);
    /* The kernels compute in float32: the value must be finite and not vanish there. */
    if (!json_is_number(v) || !isfinite((float)x) || (positive && !((float)x > 0)))
        odd(p, "%s%s is %s, not a %snumber", path, name, shown(v, buf), positive ? "positive " : "finite ");
    else
        *out = x;
}

static void need_true(struct problems *p, json_t *o, const char *path, const char *name)
{
    char buf[48];
    json_t *v = need(p, o, path, name);
    if (v && !json_is_true(v))
        odd(p, "%s%s is %s; only true is supported", path, name, shown(v, buf));
}

static void need_value(struct problems *p, json_t *o, const char *path, const char *name, json_int_t want)
{
    char buf[48];
    json_t *v = need(p, o, path, name);
    if (v && (!json_is_integer(v) || json_integer_value(v) != want))
        odd(p, "%s%s is %s; only %" JSON_INTEGER_FORMAT " is supported", path, name, shown(v, buf), want);
}

static void need_string(struct problems *p, json_t *o, const char *path, const char *name, const char *want)
{
    char buf[48];
    json_t *v = need(p, o, path, name);
    if (v && (!json_is_string(v) || strcmp(json_string_value(v), want)))
        odd(p, "%s%s is %s; only \"%s\" is supported", path, name, shown(v, buf), want);
}

#define TEXT "text_config."
#define LINEAR TEXT "linear_attn_config."

static void read_topk(struct problems *p, json_t *t, k3_config *c)
{
    json_t *a = json_object_get(t, "num_experts_per_token"), *b = json_object_get(t, "num_experts_per_tok");
    if (a && b && !json_equal(a, b))
        odd(p, TEXT "num_experts_per_token and num_experts_per_tok differ");
    need_uint(p, t, TEXT, b && !a ? "num_experts_per_tok" : "num_experts_per_token", 1, &c->topk);
    if (c->topk && c->experts && c->topk > c->experts)
        odd(p, TEXT "num_experts_per_token is %" PRIu64 ", more than num_experts %" PRIu64, c->topk, c->experts);
}

static void read_quantization(struct problems *p, json_t *t)
{
    json_t *q = need_object(p, t, TEXT, "quantization_config");
    need_string(p, q, TEXT "quantization_config.", "format", "mxfp4-pack-quantized");
    json_t *groups = need_object(p, q, TEXT "quantization_config.", "config_groups");
    json_t *g0 = need_object(p, groups, TEXT "quantization_config.config_groups.", "group_0");
    json_t *w = need_object(p, g0, TEXT "quantization_config.config_groups.group_0.", "weights");
    need_value(p, w, TEXT "quantization_config.config_groups.group_0.weights.", "num_bits", 4);
    need_value(p, w, TEXT "quantization_config.config_groups.group_0.weights.", "group_size", 32);
}

/* One of the two 1-based layer lists; marks seen[] with `kind`. */
static void read_layer_list(struct problems *p, json_t *lin, const char *name, uint8_t kind, uint64_t layers, uint8_t *seen)
{
    char buf[48];
    json_t *list = need(p, lin, LINEAR, name), *v;
    size_t i;
    if (!list)
        return;
    if (!json_is_array(list)) {
        odd(p, LINEAR "%s is %s, not a list", name, shown(list, buf));
        return;
    }
    json_array_foreach (list, i, v) {
        json_int_t n = json_integer_value(v);
        if (!json_is_integer(v) || n < 1 || n > (json_int_t)layers)
            odd(p, LINEAR "%s[%zu] is %s, outside 1..%" PRIu64, name, i, shown(v, buf), layers);
        else if (seen[n - 1] == kind)
            odd(p, LINEAR "%s names layer %" JSON_INTEGER_FORMAT " twice", name, n);
        else if (seen[n - 1])
            odd(p, LINEAR "full_attn_layers and kda_layers both name layer %" JSON_INTEGER_FORMAT, n);
        else
            seen[n - 1] = kind;
    }
}

static void read_linear(struct problems *p, json_t *t, k3_config *c)
{
    enum { MLA = 1, KDA };
    uint8_t seen[K3_MAX_LAYERS] = {0};
    json_t *lin = need_object(p, t, TEXT, "linear_attn_config");
    if (!lin)
        return;
    need_uint(p, lin, LINEAR, "num_heads", 1, &c->kda_heads);
    need_uint(p, lin, LINEAR, "head_dim", 1, &c->kda_head_dim);
    need_uint(p, lin, LINEAR, "short_conv_kernel_size", 1, &c->conv_kernel);
    need_real(p, lin, LINEAR, "gate_lower_bound", false, &c->gate_lower_bound);
    need_true(p, lin, LINEAR, "use_full_rank_gate");
    if (!c->layers)
        return;
    read_layer_list(p, lin, "full_attn_layers", MLA, c->layers, seen);
    read_layer_list(p, lin, "kda_layers", KDA, c->layers, seen);
    if (p->missing[0] || p->odd[0])
        return;
    for (uint64_t l = 0; l < c->layers; l++) {
        if (!seen[l])
            odd(p, LINEAR "full_attn_layers and kda_layers: layer %" PRIu64 " is in neither", l + 1);
        c->is_mla[l] = seen[l] == MLA;
        c->mla_layers += c->is_mla[l];
    }
    c->kda_layers = c->layers - c->mla_layers;
}

static void read_text(struct problems *p, json_t *t, k3_config *c)
{
    json_t *v;
    need_uint(p, t, TEXT, "hidden_size", 1, &c->hidden);
    need_uint(p, t, TEXT, "num_hidden_layers", 1, &c->layers);
    if (c->layers > K3_MAX_LAYERS) {
        odd(p, TEXT "num_hidden_layers is %" PRIu64 ", more than %d", c->layers, K3_MAX_LAYERS);
        c->layers = 0;
    }
    need_uint(p, t, TEXT, "vocab_size", 1, &c->vocab);
    need_real(p, t, TEXT, "rms_norm_eps", true, &c->eps);
    need_uint(p, t, TEXT, "intermediate_size", 1, &c->dense_inter);
    need_uint(p, t, TEXT, "first_k_dense_replace", 0, &c->first_moe);
    if (c->layers && c->first_moe > c->layers)
        odd(p, TEXT "first_k_dense_replace is %" PRIu64 ", more than num_hidden_layers %" PRIu64, c->first_moe, c->layers);
    need_value(p, t, TEXT, "moe_layer_freq", 1);
    need_uint(p, t, TEXT, "num_attention_heads", 1, &c->heads);
    need_uint(p, t, TEXT, "q_lora_rank", 1, &c->q_lora_rank);
    need_uint(p, t, TEXT, "kv_lora_rank", 1, &c->kv_lora_rank);
    need_uint(p, t, TEXT, "qk_nope_head_dim", 1, &c->qk_nope);
    need_uint(p, t, TEXT, "qk_rope_head_dim", 1, &c->qk_rope);
    need_uint(p, t, TEXT, "v_head_dim", 1, &c->v_dim);
    need_true(p, t, TEXT, "mla_use_nope");
    need_true(p, t, TEXT, "mla_use_output_gate");
    need_uint(p, t, TEXT, "num_experts", 1, &c->experts);
    read_topk(p, t, c);
    need_uint(p, t, TEXT, "num_shared_experts", 1, &c->shared);
    need_uint(p, t, TEXT, "moe_intermediate_size", 1, &c->expert_inter);
    need_uint(p, t, TEXT, "routed_expert_hidden_size", 1, &c->latent);
    need_true(p, t, TEXT, "latent_moe_use_norm");
    need_true(p, t, TEXT, "moe_renormalize");
    need_string(p, t, TEXT, "moe_router_activation_func", "sigmoid");
    need_real(p, t, TEXT, "routed_scaling_factor", true, &c->routed_scale);
    need_value(p, t, TEXT, "num_expert_group", 1);
    need_string(p, t, TEXT, "hidden_act", "situ");
    need_real(p, t, TEXT, "activation_situ_beta", true, &c->beta);
    need_real(p, t, TEXT, "activation_situ_linear_beta", true, &c->linear_beta);
    need_uint(p, t, TEXT, "attn_res_block_size", 1, &c->block);
    need_uint(p, t, TEXT, "max_position_embeddings", 1, &c->max_positions);
    need_value(p, t, TEXT, "num_nextn_predict_layers", 0);
    c->latent_eps = c->eps;
    if (json_object_get(t, "mla_latent_norm_eps"))
        need_real(p, t, TEXT, "mla_latent_norm_eps", true, &c->latent_eps);
    if ((v = json_object_get(t, "tie_word_embeddings")) && !json_is_false(v))
        odd(p, TEXT "tie_word_embeddings is not false");
    read_quantization(p, t);
    read_linear(p, t, c);
}

static void read_eos(struct problems *p, json_t *root, json_t *t, k3_config *c)
{
    char buf[48];
    json_t *eos = json_object_get(root, "eos_token_id"), *v;
    if (!eos && t)
        eos = json_object_get(t, "eos_token_id");
    if (!eos) {
        missing(p, "eos_token_id");
        return;
    }
    size_t n = json_is_array(eos) ? json_array_size(eos) : 1;
    for (size_t i = 0; i < n; i++) {
        v = json_is_array(eos) ? json_array_get(eos, i) : eos;
        if (!json_is_integer(v) || json_integer_value(v) < 0 || (c->vocab && json_integer_value(v) >= (json_int_t)c->vocab))
            odd(p, "eos_token_id is %s, no id of the vocabulary", shown(v, buf));
        else if (c->neos == K3_MAX_EOS)
            odd(p, "eos_token_id lists more than %d ids", K3_MAX_EOS);
        else
            c->eos[c->neos++] = (uint32_t)json_integer_value(v);
    }
}

/* A derived width: the product must stay a plain dimension. */
static void product(struct problems *p, uint64_t a, const char *an, uint64_t b, const char *bn, uint64_t *out)
{
    uint64_t v;
    if (!k3_mul_u64(a, b, &v) || v > DIM_MAX)
        odd(p, "%s %" PRIu64 " times %s %" PRIu64 " overflows", an, a, bn, b);
    else if (out)
        *out = v;
}

static void derive(struct problems *p, k3_config *c)
{
    product(p, c->kda_heads, LINEAR "num_heads", c->kda_head_dim, LINEAR "head_dim", &c->kda_width);
    product(p, c->shared, TEXT "num_shared_experts", c->expert_inter, TEXT "moe_intermediate_size", &c->shared_width);
    product(p, c->heads, TEXT "num_attention_heads", c->qk_nope + c->qk_rope, TEXT "qk_nope_head_dim + qk_rope_head_dim", NULL);
    product(p, c->heads, TEXT "num_attention_heads", c->qk_nope + c->v_dim, TEXT "qk_nope_head_dim + v_head_dim", NULL);
    product(p, c->layers, TEXT "num_hidden_layers", c->experts, TEXT "num_experts", NULL);
    if (c->experts > UINT16_MAX)
        odd(p, TEXT "num_experts is %" PRIu64 ", more than %d", c->experts, UINT16_MAX);
    if (c->latent % 32)
        odd(p, TEXT "routed_expert_hidden_size is %" PRIu64 ", not a multiple of 32", c->latent);
    if (c->expert_inter % 32)
        odd(p, TEXT "moe_intermediate_size is %" PRIu64 ", not a multiple of 32", c->expert_inter);
    c->moe_layers = c->layers - c->first_moe;
}

/* Every tensor must fit in 2^62 bytes, so that sums of offsets cannot wrap. */
static void check_sizes(struct problems *p, const k3_config *c)
{
    for (int layer = -1; layer < (int)c->layers; layer++)
        for (int id = 0; id < K3_TENSORS; id++) {
            k3_tensor t;
            uint64_t n;
            if (k3_schema_tensor(c, layer, (k3_tensor_id)id, &t) &&
                (!k3_mul_u64(t.rows, t.cols, &n) || n > (UINT64_C(1) << 60))) {
                odd(p, "%s: its size %" PRIu64 " x %" PRIu64 " overflows", t.name, t.rows, t.cols);
                return;
            }
        }
    uint64_t one, all;
    if (!k3_mul_u64(c->latent, c->expert_inter, &one) || !k3_mul_u64(one, 2, &one) ||
        !k3_mul_u64(one, c->experts * c->layers, &all) || all > (UINT64_C(1) << 62))
        odd(p, TEXT "routed_expert_hidden_size %" PRIu64 " times moe_intermediate_size %" PRIu64 " overflows", c->latent,
            c->expert_inter);
}

/* The first name on a line of the text, in quotes and with ": " after it, or "". A number that JSON's reader cannot
 * hold is known by its line only. */
static const char *name_on_line(const char *text, size_t size, int line, char buf[80])
{
    const char *at = text, *end = text + size, *stop, *quote;
    while (--line > 0 && (at = memchr(at, '\n', (size_t)(end - at))))
        at++;
    stop = at ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    at = at ? memchr(at, '"', (size_t)((stop ? stop : end) - at)) : NULL;
    quote = at ? memchr(at + 1, '"', (size_t)((stop ? stop : end) - at - 1)) : NULL;
    if (!quote || quote - at > 70 || at == quote - 1)
        return "";
    snprintf(buf, 80, "%.*s: ", (int)(quote - at - 1), at + 1);
    return buf;
}

int k3_config_parse(const char *text, size_t size, const char *file, k3_config *c, k3_err *err)
{
    struct problems p = {0};
    json_error_t je;
    memset(c, 0, sizeof *c);
    if (k3_byte_order_mark(text, size))
        return k3_fail(err, K3_EUSAGE, "%s: %s", file, k3_byte_order_mark(text, size));
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &je);
    if (!root) {
        char name[80];
        bool number = json_error_code(&je) == json_error_numeric_overflow;
        return k3_fail(err, K3_EUSAGE, "%s: line %d: %s%s", file, je.line, number ? name_on_line(text, size, je.line, name) : "", je.text);
    }
    json_t *t = json_is_object(root) ? need_object(&p, root, "", "text_config") : NULL;
    if (!json_is_object(root))
        odd(&p, "the config is not an object");
    if (t) {
        json_t *tie = json_object_get(root, "tie_word_embeddings");
        if (tie && !json_is_false(tie))
            odd(&p, "tie_word_embeddings is not false");
        read_text(&p, t, c);
        read_eos(&p, root, t, c);
    }
    if (!p.missing[0] && !p.odd[0])
        derive(&p, c);
    if (!p.missing[0] && !p.odd[0])
        check_sizes(&p, c);
    json_decref(root);
    if (p.missing[0])
        return k3_fail(err, K3_EUSAGE, "%s: missing: %s%s%s", file, p.missing, p.odd[0] ? "; " : "", p.odd);
    if (p.odd[0])
        return k3_fail(err, K3_EUSAGE, "%s: %s", file, p.odd);
    return 0;
}

int k3_config_load(const char *dir, k3_config *c, k3_err *err)
{
    char path[4096], *text;
    size_t size;
    snprintf(path, sizeof path, "%s/config.json", dir);
    int status = k3_read_file(path, 16 << 20, &text, &size, err);
    if (status)
        return status == K3_EDATA ? (err->status = K3_EUSAGE) : status;
    status = k3_config_parse(text, size, path, c, err);
    free(text);
    return status;
}
