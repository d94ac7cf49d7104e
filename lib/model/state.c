/* SPDX-License-Identifier: Apache-2.0 */
/* What a sequence carries from token to token. */
#define _GNU_SOURCE
#include "pass.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static uint64_t history_floats(const k3_config *c)
{
    return 3 * (c->conv_kernel - 1) * c->kda_width;
}

static uint64_t kda_floats(const k3_config *c)
{
    return c->kda_width * c->kda_head_dim + history_floats(c);
}

static uint64_t latent_row(const k3_config *c)
{
    return c->kv_lora_rank + c->qk_rope;
}

/* Floats of one layer in memory, a multiple of 16 so that layers stay aligned. */
static uint64_t layer_floats(const k3_config *c, uint64_t layer, uint64_t positions, bool spilled)
{
    uint64_t n = c->is_mla[layer] ? positions * latent_row(c) : spilled ? 0 : kda_floats(c);
    return (n + 15) / 16 * 16;
}

static uint32_t kda_count(const k3_config *c, uint64_t layers)
{
    uint32_t n = 0;
    for (uint64_t l = 0; l < layers; l++)
        n += !c->is_mla[l];
    return n;
}

uint64_t k3_state_bytes(const k3_config *c, uint64_t layers, uint64_t positions, bool spilled)
{
    uint64_t n = 0;
    for (uint64_t l = 0; l < layers; l++)
        n += layer_floats(c, l, positions, spilled);
    return n * sizeof(float) + (spilled && kda_count(c, layers) ? k3_spill_memory(kda_floats(c)) : 0);
}

/* Points a layer's KDA arrays at their place. */
static void place_kda(const k3_config *c, struct layer_state *ls, float *at)
{
    *ls = (struct layer_state){.S = at, .history = at + c->kda_width * c->kda_head_dim};
}

/* Zeroed memory for the layers, touched as it is used; NULL and *err if there is none. */
static float *map_block(const k3_config *c, uint64_t layers, uint64_t positions, bool spilled, size_t *bytes, k3_err *err)
{
    *bytes = 64;
    for (uint64_t l = 0; l < layers; l++)
        *bytes += layer_floats(c, l, positions, spilled) * sizeof(float);
    float *p = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED)
        return p;
    k3_fail(err, K3_ESYS, "out of memory: %zu bytes of state for %" PRIu64 " positions", *bytes, positions);
    return NULL;
}

static int state_new(k3_state **out, const k3_config *c, uint64_t layers, uint64_t positions, const char *scratch, k3_err *err)
{
    bool spilled = scratch != NULL;
    size_t bytes = 0;
    *out = NULL;
    k3_state *s = calloc(1, sizeof *s);
    struct layer_state *ls = s ? calloc(layers, sizeof *ls) : NULL;
    float *p = ls ? map_block(c, layers, positions, spilled, &bytes, err) : NULL;
    if (!p) {
        int status = ls ? K3_ESYS : k3_fail(err, K3_ESYS, "out of memory for a state");
        free(ls);
        free(s);
        return status;
    }
    *s = (k3_state){.c = c, .layers = layers, .positions = positions, .block = p, .block_bytes = bytes, .layer = ls};
    for (uint64_t l = 0; l < layers; l++) {
        if (c->is_mla[l])
            ls[l].latent = p;
        else if (!spilled)
            place_kda(c, &ls[l], p);
        p += layer_floats(c, l, positions, spilled);
    }
    uint32_t n = kda_count(c, layers);
    int status = spilled && n ? k3_spill_new(&s->spill, scratch, n, kda_floats(c), err) : 0;
    if (status) {
        k3_state_free(s);
        return status;
    }
    *out = s;
    return 0;
}

int k3_state_grow(k3_state *s, uint64_t positions, k3_err *err)
{
    const k3_config *c = s->c;
    size_t bytes;
    if (positions <= s->positions)
        return 0;
    float *block = map_block(c, s->layers, positions, s->spill, &bytes, err), *p = block;
    if (!p)
        return K3_ESYS;
    for (uint64_t l = 0; l < s->layers; l++) {
        struct layer_state *ls = &s->layer[l];
        if (c->is_mla[l]) {
            memcpy(p, ls->latent, s->position * latent_row(c) * sizeof *p);
            ls->latent = p;
        } else if (!s->spill) {
            memcpy(p, ls->S, kda_floats(c) * sizeof *p);
            place_kda(c, ls, p);
        }
        p += layer_floats(c, l, positions, s->spill);
    }
    munmap(s->block, s->block_bytes);
    s->block = block;
    s->block_bytes = bytes;
    s->positions = positions;
    return 0;
}

int k3_state_new(k3_state **out, const k3_config *c, uint64_t layers, uint64_t positions, k3_err *err)
{
    return state_new(out, c, layers, positions, NULL, err);
}

int k3_state_new_spilled(k3_state **out, const k3_config *c, uint64_t layers, uint64_t positions, const char *scratch,
                         k3_err *err)
{
    return state_new(out, c, layers, positions, scratch, err);
}

int k3_state_enter(k3_state *s, int layer, k3_err *err)
{
    float *at;
    if (!s->spill || s->c->is_mla[layer])
        return 0;
    int status = k3_spill_enter(s->spill, kda_count(s->c, (uint64_t)layer), &at, err);
    if (!status)
        place_kda(s->c, &s->layer[layer], at);
    return status;
}

void k3_state_leave(k3_state *s, int layer)
{
    if (s->spill && !s->c->is_mla[layer])
        k3_spill_leave(s->spill);
}

void k3_state_traffic(const k3_state *s, uint64_t *read_bytes, uint64_t *write_bytes)
{
    *read_bytes = *write_bytes = 0;
    if (s->spill)
        k3_spill_traffic(s->spill, read_bytes, write_bytes);
}

uint64_t k3_state_draft_bytes(const k3_config *c, uint64_t layers, size_t tokens)
{
    return kda_count(c, layers) * (tokens * draft_row(c) * sizeof(float) + 64);
}

int k3_state_allow_drafts(k3_state *s, size_t tokens, k3_err *err)
{
    if (!(s->draft = calloc(s->layers, sizeof *s->draft)))
        return k3_fail(err, K3_ESYS, "out of memory");
    for (uint64_t l = 0; l < s->layers; l++)
        if (!s->c->is_mla[l] && !(s->draft[l] = malloc(tokens * draft_row(s->c) * sizeof(float))))
            return k3_fail(err, K3_ESYS, "out of memory for drafts of %zu tokens", tokens);
    s->draft_most = tokens;
    return 0;
}

void k3_state_accept(k3_state *s, size_t n)
{
    s->position = s->position - s->draft_n + n;
    s->settle = n;
    s->draft_n = 0;
}

void k3_state_free(k3_state *s)
{
    if (!s)
        return;
    for (uint64_t l = 0; s->draft && l < s->layers; l++)
        free(s->draft[l]);
    free(s->draft);
    k3_spill_free(s->spill);
    munmap(s->block, s->block_bytes);
    free(s->layer);
    free(s);
}

void k3_state_reset(k3_state *s)
{
    /* Latent rows are written before they are read; only the KDA part must be zero. */
    for (uint64_t l = 0; l < s->layers; l++)
        if (s->layer[l].S)
            memset(s->layer[l].S, 0, kda_floats(s->c) * sizeof(float));
    s->position = 0;
    s->settle = s->draft_n = 0;
}

uint64_t k3_state_position(const k3_state *s)
{
    return s->position;
}
