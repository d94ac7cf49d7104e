/* SPDX-License-Identifier: Apache-2.0 */
/* The tensor list against the released names and against the fixtures' shards. */
#include "k3_spec.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static k3_config *config(const char *dir)
{
    k3_config *c = malloc(sizeof *c);
    k3_err err = {0};
    cr_assert_eq(k3_config_load(dir, c, &err), 0, "%s", err.text);
    return c;
}

/* Tensors of the whole model, expert parts included. */
static uint64_t all_tensors(const k3_config *c)
{
    uint64_t n = c->moe_layers * c->experts * K3_PARTS;
    for (int l = -1; l < (int)c->layers; l++)
        for (int id = 0; id < K3_TENSORS; id++)
            n += k3_schema_tensor(c, l, (k3_tensor_id)id, NULL);
    return n;
}

/* ---- fixtures: every tensor of every shard ------------------------------------- */

static void check_shape(const k3_config *c, const char *name, const json_t *entry, const k3_name *n)
{
    k3_tensor t;
    const json_t *shape = json_object_get(entry, "shape");
    uint64_t dim[3] = {0}, rank = json_array_size(shape);
    for (size_t i = 0; i < rank && i < 3; i++)
        dim[i] = (uint64_t)json_integer_value(json_array_get(shape, i));
    if (n->expert >= 0) {
        cr_expect((uint64_t)n->expert < c->experts && k3_is_moe(c, (uint64_t)n->layer), "%s", name);
        k3_schema_part(c, (k3_part_id)n->part, &t);
    } else {
        cr_assert(k3_schema_tensor(c, n->layer, (k3_tensor_id)n->tensor, &t), "%s is in no such layer", name);
    }
    cr_expect_str_eq(json_string_value(json_object_get(entry, "dtype")), k3_dtype_name[t.dtype], "%s", name);
    cr_expect_eq(rank, (uint64_t)t.rank, "%s", name);
    if (n->tensor == K3_T_A_LOG)
        cr_expect(dim[0] >= t.cols, "%s", name);
    else if (t.rank == 1)
        cr_expect_eq(dim[0], t.cols, "%s", name);
    else
        cr_expect(dim[0] == t.rows && dim[rank - 1] == t.cols && (rank == 2 || dim[1] == 1), "%s", name);
    cr_expect_eq(t.bytes, t.rows * t.cols * k3_dtype_size[t.dtype]);
}

/* Returns how many of the shard's tensors are the model's. */
static uint64_t check_shard(const k3_config *c, const char *path)
{
    char *data;
    size_t size;
    uint64_t known = 0, header;
    k3_err err = {0};
    cr_assert_eq(k3_read_file(path, 64 << 20, &data, &size, &err), 0, "%s", err.text);
    memcpy(&header, data, 8);
    json_t *root = json_loadb(data + 8, header, JSON_REJECT_DUPLICATES, NULL), *entry;
    cr_assert(root != NULL, "%s", path);
    const char *name;
    json_object_foreach (root, name, entry) {
        k3_name n;
        char again[K3_NAME_MAX];
        if (k3_name_ignored(name) || !strcmp(name, "__metadata__"))
            continue;
        cr_assert(k3_name_parse(name, &n), "unknown: %s", name);
        if (n.expert >= 0)
            k3_part_name(again, n.layer, (uint64_t)n.expert, (k3_part_id)n.part);
        else
            k3_tensor_name(again, n.layer, (k3_tensor_id)n.tensor);
        cr_expect_str_eq(again, name);
        check_shape(c, name, entry, &n);
        known++;
    }
    json_decref(root);
    free(data);
    return known;
}

static void check_fixture(const char *dir, int shards)
{
    k3_config *c = config(dir);
    uint64_t known = 0;
    for (int i = 1; i <= shards; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/model-%05d-of-%06d.safetensors", dir, i, shards);
        known += check_shard(c, path);
    }
    cr_expect_eq(known, all_tensors(c), "%s: %" PRIu64 " tensors, the list has %" PRIu64, dir, known, all_tensors(c));
    free(c);
}

Test(spec_schema, the_small_model)
{
    check_fixture("tests/fixtures/tiny/model", 15);
}

/* Here no two dimensions are alike, so a swapped pair shows. */
Test(spec_schema, the_odd_model)
{
    check_fixture("tests/fixtures/odd/model", 9);
}

/* ---- the release: every name pattern, how often and where -------------------------- */

/* "92 layers: [1, 2, 3, 4]..[91, 92]" against the layers that have it. */
static void check_layers(const char *line, const char *text, const int *has, int n)
{
    char want[128];
    if (n < 6)
        snprintf(want, sizeof want, "%d layers: [%d]..[%d]", n, has[0], has[n - 1]);
    else
        snprintf(want, sizeof want, "%d layers: [%d, %d, %d, %d]..[%d, %d]", n, has[0], has[1], has[2], has[3], has[n - 2],
                 has[n - 1]);
    cr_expect_str_eq(text, want, "%s", line);
}

/* The pattern with N for {L} and {E}. */
static void instance(char name[K3_NAME_MAX], const char *pattern, int layer)
{
    size_t n = 0;
    for (const char *p = pattern; *p; p++) {
        if (!strncmp(p, "{L}", 3) || !strncmp(p, "{E}", 3)) {
            n += (size_t)snprintf(name + n, K3_NAME_MAX - n, "%d", p[1] == 'L' ? layer : 895);
            p += 2;
        } else {
            name[n++] = *p;
        }
    }
    name[n] = 0;
}

static uint64_t check_pattern(const k3_config *c, const char *pattern, uint64_t count, const char *layers)
{
    char name[K3_NAME_MAX];
    k3_name n;
    int has[93], nhas = 0;
    if (!strstr(pattern, "{L}")) {
        cr_assert(k3_name_parse(pattern, &n), "%s", pattern);
        cr_expect(n.layer == -1 && count == 1 && k3_schema_tensor(c, -1, (k3_tensor_id)n.tensor, NULL), "%s", pattern);
        return 1;
    }
    for (int l = 0; l < 93; l++) {
        instance(name, pattern, l);
        cr_assert(k3_name_parse(name, &n), "%s", name);
        cr_expect_eq(n.layer, l);
        if (n.expert >= 0 ? k3_is_moe(c, (uint64_t)l) : k3_schema_tensor(c, l, (k3_tensor_id)n.tensor, NULL))
            has[nhas++] = l;
    }
    cr_assert(nhas > 0, "%s", pattern);
    check_layers(pattern, layers, has, nhas);
    cr_expect_eq(count, (uint64_t)nhas * (n.expert >= 0 ? c->experts : 1), "%s", pattern);
    return count;
}

Test(spec_schema, released_names)
{
    const char *real = k3_env("K3_REAL");
    if (!real)
        cr_skip_test("K3_REAL is not set");
    k3_config *c = config(real);
    char path[4096], line[512];
    snprintf(path, sizeof path, "%s/tensor_patterns.tsv", real);
    FILE *f = fopen(path, "r");
    cr_assert(f != NULL && fgets(line, sizeof line, f) != NULL);
    uint64_t known = 0, ignored = 0, patterns = 0;
    while (fgets(line, sizeof line, f)) {
        char *pattern = strtok(line, "\t"), *count = strtok(NULL, "\t"), *layers = strtok(NULL, "\t");
        cr_assert(layers != NULL);
        uint64_t n = strtoull(count, NULL, 10);
        if (k3_name_ignored(pattern)) {
            ignored += n;
            continue;
        }
        known += check_pattern(c, pattern, n, layers);
        patterns++;
    }
    fclose(f);
    /* Every pattern is the list's, and the list has no other. */
    cr_expect_eq(patterns, (uint64_t)(K3_TENSORS + K3_PARTS));
    cr_expect_eq(known, all_tensors(c));
    cr_expect_eq(known + ignored, 497220);
    cr_expect_eq(k3_expert_bytes(c), 17547264);
    free(c);
}

/* ---- names ---------------------------------------------------------------------------- */

Test(spec_schema, names_that_are_none)
{
    static const char *const bad[] = {
        "",
        "lm_head.weight",
        "language_model.",
        "language_model.lm_head",
        "language_model.lm_head.weight ",
        "language_model.lm_head.weight.x",
        "language_model.LM_head.weight",
        "language_model.model.model.norm.weight",
        "language_model.self_attn.q_proj.weight",
        "language_model.model.layers.3.lm_head.weight",
        "language_model.model.layers.3.model.norm.weight",
        "language_model.model.layers..self_attn.q_proj.weight",
        "language_model.model.layers.03.self_attn.q_proj.weight",
        "language_model.model.layers.-1.self_attn.q_proj.weight",
        "language_model.model.layers.+1.self_attn.q_proj.weight",
        "language_model.model.layers.4096.self_attn.q_proj.weight",
        "language_model.model.layers.4294967297.self_attn.q_proj.weight",
        "language_model.model.layers.18446744073709551617.self_attn.q_proj.weight",
        "language_model.model.layers.1",
        "language_model.model.layers.1.",
        "language_model.model.layers.1.self_attn.q_proj.bias",
        "language_model.model.layers.1.block_sparse_moe.experts.w1.weight_packed",
        "language_model.model.layers.1.block_sparse_moe.experts.00.w1.weight_packed",
        "language_model.model.layers.1.block_sparse_moe.experts.1.w4.weight_packed",
        "language_model.model.layers.1.block_sparse_moe.experts.1.w1.weight",
        "language_model.model.layers.1.block_sparse_moe.experts.1.w1.weight_packed2",
        "language_model.model.layers.1.block_sparse_moe.experts.99999999999.w1.weight_packed",
        "vision_tower.encoder.final_layernorm.weight",
    };
    k3_name n;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_expect(!k3_name_parse(bad[i], &n), "taken: %s", bad[i]);
    cr_expect(k3_name_ignored("vision_tower.encoder.final_layernorm.weight"));
    cr_expect(k3_name_ignored("mm_projector.post_norm.weight"));
    cr_expect(!k3_name_ignored("language_model.unknown"), "an unknown tensor of the language model must not pass silently");
}

Test(spec_schema, border_names)
{
    k3_name n;
    cr_expect(k3_name_parse("language_model.model.layers.4095.self_attn.A_log", &n) && n.layer == 4095 && n.tensor == K3_T_A_LOG &&
              n.expert == -1 && n.part == -1);
    cr_expect(k3_name_parse("language_model.model.layers.0.block_sparse_moe.experts.0.w3.weight_scale", &n) && n.layer == 0 &&
              n.expert == 0 && n.part == K3_P_W3_SCALE && n.tensor == -1);
    cr_expect(k3_name_parse("language_model.model.layers.1.block_sparse_moe.experts.1234567.w2.weight_packed", &n) &&
              n.expert == 1234567 && n.part == K3_P_W2_PACKED);
    cr_expect(k3_name_parse("language_model.model.norm.weight", &n) && n.layer == -1 && n.tensor == K3_T_FINAL_NORM);
}

/* No layer beyond the last, no layer tensor outside layers. */
Test(spec_schema, layers_end)
{
    k3_config *c = config("tests/fixtures/odd/model");
    cr_expect(k3_schema_tensor(c, 6, K3_T_G, NULL) && !k3_schema_tensor(c, 7, K3_T_G, NULL));
    cr_expect(!k3_schema_tensor(c, -1, K3_T_G, NULL) && k3_schema_tensor(c, -1, K3_T_HEAD, NULL));
    cr_expect(!k3_schema_tensor(c, 0, K3_T_HEAD, NULL) && !k3_schema_tensor(c, 0, K3_T_ROUTER, NULL));
    cr_expect(k3_schema_tensor(c, 0, K3_T_DENSE_UP, NULL) && !k3_schema_tensor(c, 1, K3_T_DENSE_UP, NULL));
    free(c);
}
