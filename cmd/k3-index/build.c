/* SPDX-License-Identifier: Apache-2.0 */
/* build and config: what a checkpoint is, in short. */
#define _GNU_SOURCE
#include "index.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int index_build(const index_opts *o, k3_err *err)
{
    char print[K3_FINGERPRINT_TEXT], size[24], count[32], *path;
    double start = k3_now();
    k3_index *ix;
    int status = k3_index_build(&ix, o->model, o->threads ? o->threads : k3_threads_default(), err);
    if (status)
        return status;
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < k3_index_shards(ix); s++)
        bytes += k3_index_shard_size(ix, s);
    path = o->index_file ? strdup(o->index_file) : k3_sidecar_place(o->model, "k3.index");
    status = path ? k3_index_write(ix, path, err) : k3_fail(err, K3_ESYS, "%s: out of memory", o->model);
    if (status == K3_ESYS && (errno == EACCES || errno == EROFS) && !o->index_file)
        snprintf(err->text + strlen(err->text), sizeof err->text - strlen(err->text), "; --index FILE or K3_SIDECAR=FOLDER writes it elsewhere");
    if (!status && o->json)
        status = put_json(json_pack("{s:s, s:I, s:I, s:I, s:s, s:f}", "index", path, "shards", (json_int_t)k3_index_shards(ix),
                                    "tensors", (json_int_t)k3_index_count(ix), "bytes", (json_int_t)bytes, "fingerprint",
                                    k3_fingerprint_text(print, k3_index_fingerprint(ix)), "seconds", k3_now() - start),
                          err);
    else if (!status)
        k3_note("%s: %s tensors in %" PRIu32 " shards, %s, indexed in %.2f s", path, with_commas(count, k3_index_count(ix)),
                k3_index_shards(ix), k3_fmt_bytes(size, bytes), k3_now() - start);
    free(path);
    k3_index_close(ix);
    return status;
}

struct field {
    const char *name;
    uint64_t value;
};

static json_t *config_json(const k3_config *c, const struct field *f, size_t n)
{
    json_t *o = json_object(), *mla = json_array(), *eos = json_array();
    for (size_t i = 0; i < n; i++)
        json_object_set_new(o, f[i].name, json_integer((json_int_t)f[i].value));
    json_object_set_new(o, "eps", json_real(c->eps));
    json_object_set_new(o, "latent_eps", json_real(c->latent_eps));
    json_object_set_new(o, "routed_scale", json_real(c->routed_scale));
    json_object_set_new(o, "situ_beta", json_real(c->beta));
    json_object_set_new(o, "situ_linear_beta", json_real(c->linear_beta));
    json_object_set_new(o, "gate_lower_bound", json_real(c->gate_lower_bound));
    for (uint64_t l = 0; l < c->layers; l++)
        if (c->is_mla[l])
            json_array_append_new(mla, json_integer((json_int_t)l));
    json_object_set_new(o, "mla", mla);
    for (int i = 0; i < c->neos; i++)
        json_array_append_new(eos, json_integer(c->eos[i]));
    json_object_set_new(o, "eos", eos);
    return o;
}

static void put_config(const k3_config *c, const struct field *f, size_t n)
{
    printf("%" PRIu64 " MLA + %" PRIu64 " KDA | experts %" PRIu64 " top%" PRIu64 " shared%" PRIu64 " | latent %" PRIu64 "\n",
           c->mla_layers, c->kda_layers, c->experts, c->topk, c->shared, c->latent);
    for (size_t i = 0; i < n; i++)
        printf("%-18s %" PRIu64 "\n", f[i].name, f[i].value);
    printf("%-18s %g\n%-18s %g\n%-18s %g\n", "eps", c->eps, "latent_eps", c->latent_eps, "routed_scale", c->routed_scale);
    printf("%-18s %g\n%-18s %g\n%-18s %g\n", "situ_beta", c->beta, "situ_linear_beta", c->linear_beta, "gate_lower_bound",
           c->gate_lower_bound);
    printf("%-18s", "mla");
    for (uint64_t l = 0; l < c->layers; l++)
        if (c->is_mla[l])
            printf(" %" PRIu64, l);
    printf("\n%-18s", "eos");
    for (int i = 0; i < c->neos; i++)
        printf(" %" PRIu32, c->eos[i]);
    putchar('\n');
}

int index_config(const index_opts *o, k3_err *err)
{
    k3_config *c = malloc(sizeof *c);
    int status = c ? k3_config_load(o->model, c, err) : k3_fail(err, K3_ESYS, "out of memory");
    if (status) {
        free(c);
        return status;
    }
    const struct field f[] = {
        {"hidden", c->hidden},           {"layers", c->layers},           {"vocab", c->vocab},
        {"dense_layers", c->first_moe},  {"dense_inter", c->dense_inter}, {"mla_heads", c->heads},
        {"q_lora_rank", c->q_lora_rank}, {"kv_lora_rank", c->kv_lora_rank}, {"qk_nope", c->qk_nope},
        {"qk_rope", c->qk_rope},         {"v_dim", c->v_dim},             {"kda_heads", c->kda_heads},
        {"kda_head_dim", c->kda_head_dim}, {"conv_kernel", c->conv_kernel}, {"experts", c->experts},
        {"topk", c->topk},               {"shared", c->shared},           {"expert_inter", c->expert_inter},
        {"latent", c->latent},           {"expert_bytes", k3_expert_bytes(c)}, {"attn_res_block", c->block},
        {"max_positions", c->max_positions},
    };
    size_t n = sizeof f / sizeof *f;
    if (o->json)
        status = put_json(config_json(c, f, n), err);
    else
        put_config(c, f, n);
    free(c);
    return status;
}
