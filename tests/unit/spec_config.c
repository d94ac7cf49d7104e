/* SPDX-License-Identifier: Apache-2.0 */
/* The config reader refuses to guess. Every case starts from the small model's
 * config and changes one thing. */
#include "k3_spec.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define TC "text_config."
#define LA TC "linear_attn_config."
#define QC TC "quantization_config."
#define W0 QC "config_groups.group_0.weights."

static json_t *load(const char *path)
{
    json_error_t e;
    json_t *root = json_load_file(path, 0, &e);
    cr_assert(root != NULL, "%s: %s", path, e.text);
    return root;
}

static json_t *tiny(void)
{
    return load("tests/fixtures/tiny/model/config.json"); /* 13 layers, MLA 4 8 12 13, 32 experts, top 4 */
}

/* The object that holds the last name of a dotted path; *name points at it. */
static json_t *owner(json_t *root, const char *path, const char **name)
{
    char part[64];
    const char *dot;
    for (; (dot = strchr(path, '.')); path = dot + 1) {
        snprintf(part, sizeof part, "%.*s", (int)(dot - path), path);
        root = json_object_get(root, part);
        cr_assert(root != NULL, "the fixture has no %s", part);
    }
    *name = path;
    return root;
}

static void set(json_t *root, const char *path, const char *value)
{
    const char *name;
    json_t *o = owner(root, path, &name);
    json_t *v = json_loads(value, JSON_DECODE_ANY, NULL);
    cr_assert(v != NULL, "not JSON: %s", value);
    json_object_set_new(o, name, v);
}

static void drop(json_t *root, const char *path)
{
    const char *name;
    json_t *o = owner(root, path, &name);
    cr_assert_eq(json_object_del(o, name), 0, "the fixture has no %s", path);
}

/* Parses and frees root. */
static int parse(json_t *root, k3_config *c, k3_err *err)
{
    char *text = json_dumps(root, 0);
    memset(err, 0, sizeof *err);
    int status = k3_config_parse(text, strlen(text), "DIR/config.json", c, err);
    free(text);
    json_decref(root);
    return status;
}

/* Refused as not understood, with the file's name and both words in one line. */
static void refused(json_t *root, const char *word, const char *other)
{
    k3_config *c = malloc(sizeof *c);
    k3_err err;
    int status = parse(root, c, &err);
    free(c);
    cr_expect_eq(status, K3_EUSAGE, "%s %s: status %d", word, other, status);
    cr_expect(!strncmp(err.text, "DIR/config.json: ", 17), "no file name: %s", err.text);
    cr_expect(strstr(err.text, word) != NULL, "\"%s\" is not in: %s", word, err.text);
    cr_expect(strstr(err.text, other) != NULL, "\"%s\" is not in: %s", other, err.text);
    cr_expect(strchr(err.text, '\n') == NULL, "more than one line: %s", err.text);
}

static const char *const required[] = {
    "text_config", "eos_token_id",
    TC "hidden_size", TC "num_hidden_layers", TC "vocab_size", TC "rms_norm_eps", TC "intermediate_size",
    TC "first_k_dense_replace", TC "moe_layer_freq", TC "num_attention_heads", TC "q_lora_rank", TC "kv_lora_rank",
    TC "qk_nope_head_dim", TC "qk_rope_head_dim", TC "v_head_dim", TC "mla_use_nope", TC "mla_use_output_gate",
    TC "num_experts", TC "num_experts_per_token", TC "num_shared_experts", TC "moe_intermediate_size",
    TC "routed_expert_hidden_size", TC "latent_moe_use_norm", TC "moe_renormalize", TC "moe_router_activation_func",
    TC "routed_scaling_factor", TC "num_expert_group", TC "hidden_act", TC "activation_situ_beta",
    TC "activation_situ_linear_beta", TC "attn_res_block_size", TC "max_position_embeddings",
    TC "num_nextn_predict_layers", TC "quantization_config", TC "linear_attn_config",
    QC "format", QC "config_groups", QC "config_groups.group_0", QC "config_groups.group_0.weights",
    W0 "num_bits", W0 "group_size",
    LA "full_attn_layers", LA "kda_layers", LA "num_heads", LA "head_dim", LA "short_conv_kernel_size",
    LA "gate_lower_bound", LA "use_full_rank_gate",
};
enum { REQUIRED = sizeof required / sizeof *required };

static const char *last_name(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

/* A default for any of these would compute another model without a word. */
Test(spec_config, each_missing_field_is_named)
{
    for (int i = 0; i < REQUIRED; i++) {
        json_t *root = tiny();
        drop(root, required[i]);
        if (!strcmp(required[i], "eos_token_id"))
            drop(root, TC "eos_token_id"); /* either place will do */
        refused(root, "missing", last_name(required[i]));
    }
}

/* One run names them all, first and last. */
Test(spec_config, all_missing_fields_come_in_one_message)
{
    for (int i = 0; i < REQUIRED; i += 3) {
        json_t *root = tiny();
        drop(root, TC "hidden_size");
        drop(root, LA "use_full_rank_gate");
        if (strcmp(required[i], TC "hidden_size") && !strstr(required[i], "linear") && !strstr(required[i], "token_id") &&
            strcmp(required[i], "text_config"))
            drop(root, required[i]);
        else
            continue;
        refused(json_incref(root), TC "hidden_size", last_name(required[i]));
        refused(root, LA "use_full_rank_gate", "missing");
    }
}

/* value: JSON. word: must be named beside the field. */
static const struct {
    const char *path, *value, *word;
} odd[] = {
    /* numbers that are none, or not whole */
    {TC "hidden_size", "\"128\"", "\"128\""},
    {TC "hidden_size", "128.5", "128.5"},
    {TC "hidden_size", "128.0", "128.0"},
    {TC "hidden_size", "0", "0"},
    {TC "hidden_size", "-128", "-128"},
    {TC "hidden_size", "null", "null"},
    {TC "hidden_size", "true", "true"},
    {TC "hidden_size", "[128]", "[128]"},
    {TC "hidden_size", "2147483648", "2147483648"},
    {TC "hidden_size", "9223372036854775807", "9223372036854775807"},
    {TC "num_hidden_layers", "0", "0"},
    {TC "num_hidden_layers", "4097", "4097"},
    {TC "vocab_size", "\"all\"", "all"},
    {TC "first_k_dense_replace", "14", "14"},
    {TC "first_k_dense_replace", "-1", "-1"},
    {TC "attn_res_block_size", "0", "0"},
    {TC "num_experts", "0", "0"},
    {TC "num_experts_per_token", "0", "0"},
    {TC "num_experts_per_token", "33", "33"},
    {TC "num_experts_per_token", "4.0", "4.0"},
    {LA "num_heads", "\"4\"", "\"4\""},
    {LA "head_dim", "0", "0"},
    {LA "short_conv_kernel_size", "0", "0"},
    {TC "rms_norm_eps", "0", "0"},
    {TC "rms_norm_eps", "-1e-5", "-1"},
    {TC "rms_norm_eps", "\"1e-5\"", "\"1e-5\""},
    {TC "rms_norm_eps", "1e-60", "1e-60"}, /* 0 in float32 */
    {TC "mla_latent_norm_eps", "0", "0"},
    {TC "mla_latent_norm_eps", "\"x\"", "\"x\""},
    {TC "routed_scaling_factor", "1e39", "1e39"}, /* infinite in float32 */
    {TC "routed_scaling_factor", "0", "0"},
    {TC "activation_situ_beta", "-4", "-4"},
    {TC "activation_situ_linear_beta", "null", "null"},
    {LA "gate_lower_bound", "\"-5\"", "\"-5\""},
    /* another model */
    {TC "hidden_act", "\"silu\"", "silu"},
    {TC "hidden_act", "1", "1"},
    {TC "moe_router_activation_func", "\"softmax\"", "softmax"},
    {QC "format", "\"nvfp4-pack-quantized\"", "nvfp4"},
    {W0 "group_size", "16", "16"},
    {W0 "num_bits", "8", "8"},
    {W0 "num_bits", "4.0", "4.0"},
    {TC "mla_use_nope", "false", "false"},
    {TC "mla_use_output_gate", "false", "false"},
    {TC "moe_renormalize", "false", "false"},
    {TC "latent_moe_use_norm", "false", "false"},
    {TC "moe_renormalize", "1", "1"},
    {LA "use_full_rank_gate", "false", "false"},
    {TC "num_expert_group", "8", "8"},
    {TC "moe_layer_freq", "2", "2"},
    {TC "num_nextn_predict_layers", "1", "1"},
    {"tie_word_embeddings", "true", "tie_word_embeddings"},
    {TC "tie_word_embeddings", "true", "tie_word_embeddings"},
    {TC "routed_expert_hidden_size", "48", "multiple of 32"},
    {TC "moe_intermediate_size", "33", "multiple of 32"},
    /* layer lists: 1-based, each layer in exactly one */
    {LA "full_attn_layers", "[0,4,8,12,13]", "0, outside 1..13"},
    {LA "full_attn_layers", "[4,8,12,13,14]", "14, outside 1..13"},
    {LA "full_attn_layers", "[4,8,8,12,13]", "layer 8 twice"},
    {LA "full_attn_layers", "[4,8,12]", "layer 13 is in neither"},
    {LA "full_attn_layers", "[3,4,8,12,13]", "both name layer 3"},
    {LA "full_attn_layers", "[4,8,\"12\",13]", "\"12\""},
    {LA "full_attn_layers", "[4,8,12.0,13]", "12.0"},
    {LA "full_attn_layers", "[4,8,[12],13]", "[12]"},
    {LA "full_attn_layers", "13", "13"},
    {LA "kda_layers", "[1,2,3,5,6,7,9,10,11,94]", "94, outside 1..13"},
    {LA "kda_layers", "[1,2,3,5,6,7,9,10]", "layer 11 is in neither"},
    {LA "kda_layers", "{}", "{}"},
    /* products that no longer fit */
    {LA "num_heads", "2147483647", "overflows"},
    {TC "num_attention_heads", "100000000", "overflows"},
    {TC "qk_nope_head_dim", "2147483647", "overflows"},
    {TC "v_head_dim", "2147483647", "overflows"},
    {TC "num_shared_experts", "2147483647", "overflows"},
    {TC "num_experts", "2147483647", "overflows"},
    /* containers that are none */
    {"text_config", "[]", "[]"},
    {"text_config", "\"tiny\"", "tiny"},
    {TC "linear_attn_config", "null", "null"},
    {TC "quantization_config", "4", "4"},
    {QC "config_groups", "[]", "[]"},
    {QC "config_groups.group_0", "true", "true"},
    /* ids that the vocabulary does not have */
    {"eos_token_id", "2048", "2048"},
    {"eos_token_id", "-1", "-1"},
    {"eos_token_id", "\"</s>\"", "</s>"},
    {"eos_token_id", "[1793,2048]", "2048"},
    {"eos_token_id", "[1,2,3,4,5,6,7,8,9]", "more than 8"},
};

Test(spec_config, odd_values_are_named)
{
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        json_t *root = tiny();
        set(root, odd[i].path, odd[i].value);
        refused(root, last_name(odd[i].path), odd[i].word);
    }
}

/* Dimensions that fit one by one, in tensors that do not. */
Test(spec_config, huge_tensors_are_refused)
{
    json_t *root = tiny();
    set(root, TC "hidden_size", "2147483647");
    set(root, TC "vocab_size", "2147483647");
    refused(root, "embed_tokens", "overflows");
    root = tiny();
    set(root, TC "routed_expert_hidden_size", "2147483616");
    set(root, TC "moe_intermediate_size", "1073741792");
    set(root, TC "num_shared_experts", "1");
    refused(root, "moe_intermediate_size", "overflows");
}

/* Flat configs and renamed sections are another family of models. */
Test(spec_config, renamed_sections_are_missing)
{
    static const char *const path[] = {"text_config", TC "linear_attn_config", TC "quantization_config"};
    for (size_t i = 0; i < sizeof path / sizeof *path; i++) {
        const char *name;
        json_t *root = tiny(), *o = owner(root, path[i], &name);
        json_object_set(o, "renamed", json_object_get(o, name));
        json_object_del(o, name);
        refused(root, "missing", path[i]);
    }
    json_t *flat = json_deep_copy(json_object_get(tiny(), "text_config"));
    refused(flat, "missing", "text_config");
}

Test(spec_config, both_spellings_of_top_k)
{
    k3_config *c = malloc(sizeof *c);
    k3_err err;
    json_t *root = tiny();
    drop(root, TC "num_experts_per_token");
    set(root, TC "num_experts_per_tok", "5");
    cr_expect_eq(parse(root, c, &err), 0, "%s", err.text);
    cr_expect_eq(c->topk, 5);
    root = tiny();
    set(root, TC "num_experts_per_tok", "4");
    cr_expect_eq(parse(root, c, &err), 0, "%s", err.text);
    cr_expect_eq(c->topk, 4);
    root = tiny();
    set(root, TC "num_experts_per_tok", "5");
    refused(root, "num_experts_per_token", "num_experts_per_tok differ");
    root = tiny();
    drop(root, TC "num_experts_per_token");
    set(root, TC "num_experts_per_tok", "33");
    refused(root, "num_experts_per_tok", "33");
    free(c);
}

Test(spec_config, text_that_is_no_config)
{
    static const char *const text[] = {"", "{", "[]", "null", "{} {}", "version https://git-lfs.github.com/spec/v1\n",
                                       "{\"text_config\":{},\"text_config\":{}}", "{\"text_config\":{\"x\":1e999}}"};
    k3_config *c = malloc(sizeof *c);
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        k3_err err = {0};
        cr_expect_eq(k3_config_parse(text[i], strlen(text[i]), "X", c, &err), K3_EUSAGE, "accepted: %s", text[i]);
        cr_expect(!strncmp(err.text, "X: ", 3), "%s", err.text);
    }
    free(c);
}

/* Of two values for one field, neither is the right one. */
Test(spec_config, a_field_given_twice)
{
    json_t *root = tiny();
    char *text = json_dumps(root, 0), *twice = malloc(strlen(text) + 32);
    k3_config *c = malloc(sizeof *c);
    k3_err err = {0};
    sprintf(twice, "{\"eos_token_id\":5,%s", text + 1);
    cr_expect_eq(k3_config_parse(twice, strlen(twice), "X", c, &err), K3_EUSAGE);
    cr_expect(strstr(err.text, "eos_token_id") != NULL, "%s", err.text);
    json_decref(root);
    free(twice);
    free(text);
    free(c);
}

/* A download that stopped anywhere is not a config. */
Test(spec_config, every_prefix_is_refused)
{
    char *text;
    size_t size;
    k3_err err = {0};
    k3_config *c = malloc(sizeof *c);
    cr_assert_eq(k3_read_file("tests/fixtures/odd/model/config.json", 1 << 20, &text, &size, &err), 0, "%s", err.text);
    while (size && (text[size - 1] == '\n' || text[size - 1] == ' '))
        size--;
    for (size_t n = 0; n < size; n++)
        cr_expect_eq(k3_config_parse(text, n, "X", c, &err), K3_EUSAGE, "%zu of %zu bytes", n, size);
    cr_expect_eq(k3_config_parse(text, size, "X", c, &err), 0, "%s", err.text);
    free(text);
    free(c);
}

Test(spec_config, no_config_is_a_system_error)
{
    k3_err err = {0};
    k3_config *c = malloc(sizeof *c);
    cr_expect_eq(k3_config_load("tests/fixtures/nowhere", c, &err), K3_ESYS);
    cr_expect(strstr(err.text, "tests/fixtures/nowhere/config.json") != NULL, "%s", err.text);
    free(c);
}

Test(spec_config, what_the_small_model_says)
{
    k3_config *c = malloc(sizeof *c);
    k3_err err = {0};
    cr_assert_eq(k3_config_load("tests/fixtures/tiny/model", c, &err), 0, "%s", err.text);
    cr_expect_eq(c->layers, 13);
    cr_expect_eq(c->kda_layers, 9);
    cr_expect_eq(c->mla_layers, 4);
    cr_expect_eq(c->moe_layers, 12);
    for (int l = 0; l < 13; l++)
        cr_expect_eq(c->is_mla[l], l == 3 || l == 7 || l == 11 || l == 12, "layer %d", l);
    cr_expect_eq(c->latent_eps, c->eps);
    cr_expect(!k3_is_moe(c, 0) && k3_is_moe(c, 1));
    /* blocks of 3: layer 0 mixes nothing, layers 1..3 one snapshot, 4..6 two, the head all five */
    static const uint64_t snapshots[] = {0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5};
    for (uint64_t l = 0; l <= 13; l++)
        cr_expect_eq(k3_snapshots_before(c, l), snapshots[l], "layer %" PRIu64, l);
    free(c);
}

Test(spec_config, optional_and_border_values)
{
    k3_config *c = malloc(sizeof *c);
    k3_err err;
    json_t *root = tiny();
    set(root, TC "mla_latent_norm_eps", "1e-6");
    set(root, TC "first_k_dense_replace", "13"); /* no routed layer at all */
    set(root, TC "num_experts_per_token", "32");
    set(root, LA "gate_lower_bound", "0");
    set(root, "eos_token_id", "[2047,0]");
    cr_assert_eq(parse(root, c, &err), 0, "%s", err.text);
    cr_expect_eq(c->latent_eps, 1e-6);
    cr_expect_eq(c->eps, 1e-5);
    cr_expect_eq(c->moe_layers, 0);
    cr_expect(c->neos == 2 && c->eos[0] == 2047 && c->eos[1] == 0);
    root = tiny();
    set(root, TC "first_k_dense_replace", "0");
    drop(root, TC "eos_token_id");
    drop(root, "tie_word_embeddings");
    drop(root, TC "tie_word_embeddings");
    cr_assert_eq(parse(root, c, &err), 0, "%s", err.text);
    cr_expect_eq(c->moe_layers, 13);
    free(c);
}

Test(spec_config, the_release)
{
    const char *real = k3_env("K3_REAL");
    if (!real)
        cr_skip_test("K3_REAL is not set");
    k3_config *c = malloc(sizeof *c);
    k3_err err = {0};
    cr_assert_eq(k3_config_load(real, c, &err), 0, "%s", err.text);
    cr_expect(c->hidden == 7168 && c->layers == 93 && c->vocab == 163840 && c->dense_inter == 33792 && c->first_moe == 1);
    cr_expect(c->heads == 96 && c->q_lora_rank == 1536 && c->kv_lora_rank == 512 && c->qk_nope == 128 && c->qk_rope == 64);
    cr_expect(c->v_dim == 128 && c->experts == 896 && c->topk == 16 && c->shared == 2 && c->expert_inter == 3072);
    cr_expect(c->latent == 3584 && c->block == 12 && c->max_positions == 1048576 && c->kda_heads == 96);
    cr_expect(c->kda_head_dim == 128 && c->conv_kernel == 4 && c->eps == 1e-5 && c->routed_scale == 1);
    cr_expect(c->beta == 4 && c->linear_beta == 25 && c->gate_lower_bound == -5);
    cr_expect(c->kda_width == 12288 && c->shared_width == 6144 && c->kda_layers == 69 && c->mla_layers == 24);
    cr_expect(c->moe_layers == 92 && c->neos == 1 && c->eos[0] == 163586);
    for (int l = 0; l < 93; l++)
        cr_expect_eq(c->is_mla[l], l % 4 == 3 || l == 92, "layer %d", l);
    free(c);
}
