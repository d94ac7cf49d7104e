/* SPDX-License-Identifier: Apache-2.0 */
/* A fixture checkpoint opened for tests, and its expected results. */
#ifndef MODEL_FIXTURE_H
#define MODEL_FIXTURE_H

#include "k3_model.h"
#include "k3_store.h"

#include <jansson.h>

#define FIXTURES "tests/fixtures/"

struct fixture {
    k3_index *index;
    const k3_config *c;
    const k3_kernels *k;
    k3_pool *pool;
    k3_source *source;
    k3_model *model;
    k3_state *state;
    json_t *cases; /* expected.json, its "cases" */
    json_t *root;
    const char *name;
};

/* The ids of a case: prompt and greedy continuation. */
struct ids {
    uint32_t id[512];
    size_t prompt, n;
};

/* Fails the running test on any error. name: "tiny" or "odd"; isa NULL for the best; tile: bytes. */
void fixture_open(struct fixture *f, const char *name, const char *isa, int threads, size_t tokens,
                  uint64_t tile);
void fixture_close(struct fixture *f);
void case_ids(json_t *one, struct ids *ids);
/* Feeds ids[0..n) from an empty state in passes of `step`; logits [n][vocab]. */
void feed_all(struct fixture *f, const uint32_t *ids, size_t n, size_t step, float *logits);
/* expected/CASE.KIND.npy, or data NULL where the case has none. */
void expected_array(const struct fixture *f, json_t *one, const char *kind, k3_npy *a);
size_t argmax(const float *row, size_t n);

#endif
