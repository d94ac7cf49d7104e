/* SPDX-License-Identifier: Apache-2.0 */
#include "model_fixture.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

void fixture_open(struct fixture *f, const char *name, const char *isa, int threads, size_t tokens,
                  uint64_t tile)
{
    char path[256];
    json_error_t je;
    k3_err err = {0};
    memset(f, 0, sizeof *f);
    k3_verbosity = -1;
    f->name = name;
    snprintf(path, sizeof path, FIXTURES "%s/model", name);
    cr_assert(!k3_index_build(&f->index, path, 1, &err), "%s", err.text);
    f->c = k3_index_config(f->index);
    f->k = k3_kernels_select(isa, &err);
    cr_assert(f->k, "%s", err.text);
    cr_assert(!k3_pool_new(&f->pool, threads, &err), "%s", err.text);
    cr_assert(!k3_source_plain(&f->source, f->index, 0, f->c->layers, true, tile, &err), "%s", err.text);
    cr_assert(!k3_model_new(&f->model, f->c, f->k, f->pool, tokens, 512, &err), "%s", err.text);
    cr_assert(!k3_state_new(&f->state, f->c, f->c->layers, 512, &err), "%s", err.text);
    snprintf(path, sizeof path, FIXTURES "%s/expected/expected.json", name);
    f->root = json_load_file(path, JSON_REJECT_DUPLICATES, &je);
    cr_assert(f->root, "%s: %s", path, je.text);
    f->cases = json_object_get(f->root, "cases");
    cr_assert(json_array_size(f->cases) > 0);
}

void fixture_close(struct fixture *f)
{
    json_decref(f->root);
    k3_state_free(f->state);
    k3_model_free(f->model);
    k3_source_close(f->source);
    k3_pool_free(f->pool);
    k3_index_close(f->index);
}

static void append(struct ids *ids, json_t *list)
{
    size_t i;
    json_t *v;
    json_array_foreach (list, i, v) {
        cr_assert(ids->n < 512);
        ids->id[ids->n++] = (uint32_t)json_integer_value(v);
    }
}

void case_ids(json_t *one, struct ids *ids)
{
    ids->n = 0;
    append(ids, json_object_get(one, "prompt_ids"));
    ids->prompt = ids->n;
    append(ids, json_object_get(one, "greedy_ids"));
}

void feed_all(struct fixture *f, const uint32_t *ids, size_t n, size_t step, float *logits)
{
    k3_err err = {0};
    k3_state_reset(f->state);
    for (size_t at = 0; at < n; at += step) {
        size_t part = n - at < step ? n - at : step;
        k3_span span = {f->state, ids + at, part, part, false};
        cr_assert(!k3_forward(f->model, f->source, &span, 1, f->c->layers, true, logits + at * f->c->vocab, &err), "%s", err.text);
    }
}

void expected_array(const struct fixture *f, json_t *one, const char *kind, k3_npy *a)
{
    char path[256];
    k3_err err = {0};
    a->data = NULL;
    snprintf(path, sizeof path, FIXTURES "%s/expected/%s.%s.npy", f->name, json_string_value(json_object_get(one, "name")), kind);
    FILE *from = fopen(path, "rb");
    if (!from)
        return;
    cr_assert(!k3_npy_read(from, path, a, &err), "%s", err.text);
    fclose(from);
}

size_t argmax(const float *row, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (row[i] > row[best])
            best = i;
    return best;
}
