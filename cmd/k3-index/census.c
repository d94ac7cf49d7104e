/* SPDX-License-Identifier: Apache-2.0 */
/* census: where the bytes and the parameters are. */
#include "index.h"

#include <inttypes.h>
#include <string.h>

enum class { ROUTED, SHARED, ATTENTION, EMBEDDING, OTHER, IGNORED, CLASSES };

static const char *const title[CLASSES] = {"routed", "shared", "attention", "embedding", "other", "ignored"};

struct tally {
    uint64_t tensors, bytes, params;
};

static bool is_packed(int part)
{
    return part == K3_P_W1_PACKED || part == K3_P_W2_PACKED || part == K3_P_W3_PACKED;
}

static enum class class_of(const k3_entry *e)
{
    if (e->ignored)
        return IGNORED;
    if (e->id.expert >= 0)
        return ROUTED;
    if (e->id.tensor == K3_T_EMBED || e->id.tensor == K3_T_HEAD)
        return EMBEDDING;
    if (e->id.tensor == K3_T_SHARED_GATE || e->id.tensor == K3_T_SHARED_UP || e->id.tensor == K3_T_SHARED_DOWN)
        return SHARED;
    return strstr(e->name, ".self_attn.") ? ATTENTION : OTHER;
}

/* Numbers that the model multiplies with: two of them in a packed byte, none in a scale.
 * Everything else counts as stored, the padding of A_log too. */
static uint64_t params_of(const k3_entry *e)
{
    uint64_t n = 1;
    for (uint64_t i = 0; i < e->rank; i++)
        n *= e->shape[i];
    if (e->ignored || e->id.expert < 0)
        return n;
    return is_packed(e->id.part) ? 2 * n : 0;
}

struct census {
    struct tally of[CLASSES], text; /* text: all but ignored */
    uint64_t experts, expert_bytes, trunk, active;
};

static void count(const k3_index *ix, struct census *c)
{
    const k3_config *config = k3_index_config(ix);
    k3_entry e;
    for (uint64_t i = 0, n = k3_index_count(ix); i < n; i++) {
        k3_index_entry(ix, i, &e);
        enum class k = class_of(&e);
        struct tally *const add[2] = {&c->of[k], &c->text};
        for (int t = 0; t < (k == IGNORED ? 1 : 2); t++) {
            add[t]->tensors++;
            add[t]->bytes += e.at.bytes;
            add[t]->params += params_of(&e);
        }
    }
    c->experts = config->moe_layers * config->experts;
    c->expert_bytes = k3_expert_bytes(config);
    c->trunk = c->of[SHARED].bytes + c->of[ATTENTION].bytes + c->of[OTHER].bytes;
    c->active = c->text.params - c->of[ROUTED].params;
}

static double bits_per_weight(const struct tally *t)
{
    return t->params ? (double)t->bytes * 8 / (double)t->params : 0;
}

static void put_row(const char *name, const struct tally *t)
{
    char a[32], b[32], c[32];
    printf("%-10s %11s %21s %21s %8.3f\n", name, with_commas(a, t->tensors), with_commas(b, t->bytes), with_commas(c, t->params),
           bits_per_weight(t));
}

/* Terabytes with three digits: 1.447 TB; less as everywhere. */
static char *big_bytes(char *buf, uint64_t bytes)
{
    if (bytes < 1000000000000)
        return k3_fmt_bytes(buf, bytes);
    snprintf(buf, 24, "%.3f TB", (double)bytes / 1e12);
    return buf;
}

static void put_census(const struct census *c)
{
    char a[32], b[32];
    printf("%-10s %11s %21s %21s %8s\n", "class", "tensors", "bytes", "parameters", "bits");
    for (int k = 0; k < CLASSES; k++)
        if (c->of[k].tensors || k != IGNORED)
            put_row(title[k], &c->of[k]);
    put_row("text model", &c->text);
    printf("\n%s experts, %s bytes each, ", with_commas(a, c->experts), with_commas(b, c->expert_bytes));
    printf("%s routed\n", big_bytes(a, c->of[ROUTED].bytes));
    printf("%s trunk, ", big_bytes(a, c->trunk));
    printf("%s embedding and head\n", big_bytes(a, c->of[EMBEDDING].bytes));
    printf("%s always-active parameters\n", with_commas(a, c->active));
}

static json_t *tally_json(const struct tally *t)
{
    return json_pack("{s:I, s:I, s:I, s:f}", "tensors", (json_int_t)t->tensors, "bytes", (json_int_t)t->bytes, "parameters",
                     (json_int_t)t->params, "bits_per_weight", bits_per_weight(t));
}

static json_t *census_json(const struct census *c)
{
    json_t *classes = json_object();
    for (int k = 0; k < CLASSES; k++)
        json_object_set_new(classes, title[k], tally_json(&c->of[k]));
    return json_pack("{s:o, s:o, s:I, s:I, s:I, s:I}", "classes", classes, "text", tally_json(&c->text), "experts",
                     (json_int_t)c->experts, "expert_bytes", (json_int_t)c->expert_bytes, "trunk_bytes", (json_int_t)c->trunk,
                     "always_active_parameters", (json_int_t)c->active);
}

int index_census(const index_opts *o, k3_err *err)
{
    struct census c = {.experts = 0};
    k3_index *ix;
    int status = k3_index_open(&ix, o->model, o->index_file, err);
    if (status)
        return status;
    count(ix, &c);
    k3_index_close(ix);
    if (o->json)
        return put_json(census_json(&c), err);
    put_census(&c);
    return 0;
}
