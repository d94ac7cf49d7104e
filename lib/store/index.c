/* SPDX-License-Identifier: Apache-2.0 */
/* k3.index: open, check, look up, write. */
#define _GNU_SOURCE
#include "store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(sizeof(struct image_shard) == 128 && sizeof(struct image_ignored) == 48, "k3-index(5) states these sizes");

enum { SMALL_HEADERS = 4 << 20 };

/* ---- digests ---------------------------------------------------------------------- */

static k3_fingerprint digest(const void *data, size_t n)
{
    XXH128_hash_t h = XXH3_128bits(data, n);
    return (k3_fingerprint){h.low64, h.high64};
}

/* With the zeros that fill the last word. */
uint64_t k3_section_sum(const char *image, const struct section *s)
{
    return XXH3_64bits(image + s->offset, (s->bytes + 7) / 8 * 8);
}

/* What changes the computation or the layout; not the stop ids or the position limit. */
k3_fingerprint k3_config_digest(const k3_config *c)
{
    struct {
        uint64_t n[20];
        double x[6];
        uint8_t is_mla[K3_MAX_LAYERS];
    } v = {
        .n = {c->hidden, c->layers, c->vocab, c->dense_inter, c->first_moe, c->heads, c->q_lora_rank, c->kv_lora_rank, c->qk_nope,
              c->qk_rope, c->v_dim, c->experts, c->topk, c->shared, c->expert_inter, c->latent, c->block, c->kda_heads,
              c->kda_head_dim, c->conv_kernel},
        .x = {c->eps, c->latent_eps, c->routed_scale, c->beta, c->linear_beta, c->gate_lower_bound},
    };
    memcpy(v.is_mla, c->is_mla, sizeof v.is_mla);
    return digest(&v, sizeof v);
}

k3_fingerprint k3_index_digest(k3_fingerprint config, const struct image_shard *shards, uint32_t nshards)
{
    k3_fingerprint f = config;
    for (uint32_t s = 0; s < nshards; s++) {
        const uint64_t link[7] = {f.lo, f.hi, shards[s].size, shards[s].digest.lo, shards[s].digest.hi,
                                  shards[s].sample.lo, shards[s].sample.hi};
        f = digest(link, sizeof link);
    }
    return f;
}

void k3_part_sizes(const k3_config *c, uint64_t bytes[K3_PARTS])
{
    for (int p = 0; p < K3_PARTS; p++) {
        k3_tensor t;
        k3_schema_part(c, (k3_part_id)p, &t);
        bytes[p] = t.bytes;
    }
}

/* ---- the image ------------------------------------------------------------------------ */

static int damaged(k3_err *err, const char *name, int64_t at, const char *what)
{
    return k3_fail_at(err, K3_EDATA, name, NULL, at, "%s; run k3-index to write it anew", what);
}

static int check_head(const k3_index *ix, const char *name, k3_err *err)
{
    const struct image_head *h = (const struct image_head *)ix->image;
    size_t n = ix->image_bytes;
    if (n < 8 || memcmp(h->magic, K3_INDEX_MAGIC, 8))
        return damaged(err, name, 0, "not an index of ours");
    if (n < sizeof *h + K3_INDEX_END_BYTES)
        return damaged(err, name, (int64_t)n, "the index ends inside its head");
    if (h->version != K3_INDEX_VERSION) {
        k3_fail_at(err, K3_EDATA, name, NULL, 8, "index version %" PRIu32 ", this program reads %d%s; run k3-index to write it anew",
                   h->version, K3_INDEX_VERSION, h->version == 1 ? ", which tells weights apart" : "");
        return K3_EDATA;
    }
    if (h->head_bytes != sizeof *h || h->sum != XXH3_64bits(h, offsetof(struct image_head, sum)))
        return damaged(err, name, 0, "the head's checksum does not match");
    if (h->file_bytes != n)
        return k3_fail_at(err, K3_EDATA, name, NULL, -1, "%zu bytes, its head says %" PRIu64 "; run k3-index to write it anew", n,
                          h->file_bytes);
    if (memcmp(ix->image + n - K3_INDEX_END_BYTES, K3_INDEX_END, K3_INDEX_END_BYTES))
        return damaged(err, name, (int64_t)(n - K3_INDEX_END_BYTES), "the end mark is missing");
    return 0;
}

/* A place and its bytes lie inside a shard's data. */
static bool inside(const k3_index *ix, uint64_t place, uint64_t bytes)
{
    uint32_t s = place_shard(place);
    return s < ix->nshards && place_offset(place) >= ix->shards[s].header && place_offset(place) <= ix->shards[s].size &&
           bytes <= ix->shards[s].size - place_offset(place);
}

static bool tensors_fit(const k3_index *ix)
{
    const k3_config *c = &ix->config;
    for (int l = -1; l < (int)c->layers; l++)
        for (int id = 0; id < K3_TENSORS; id++) {
            const struct image_tensor *t = &ix->tensors[(size_t)(l + 1) * K3_TENSORS + (size_t)id];
            k3_tensor k;
            bool has = k3_schema_tensor(c, l, (k3_tensor_id)id, &k);
            if (has != (t->place != PLACE_NONE))
                return false;
            if (has && (!inside(ix, t->place, t->bytes) || t->bytes < k.bytes || (t->bytes > k.bytes && id != K3_T_A_LOG)))
                return false;
        }
    return true;
}

static bool experts_fit(const k3_index *ix)
{
    const k3_config *c = &ix->config;
    uint64_t all = k3_expert_bytes(c), rows = ix->head->section[S_SCATTERED].bytes / (8 * K3_PARTS);
    for (uint64_t e = 0; e < c->moe_layers * c->experts; e++) {
        uint64_t v = ix->experts[e];
        if (v & EXPERT_SCATTERED ? (v & ~EXPERT_SCATTERED) >= rows : !inside(ix, v, all))
            return false;
    }
    for (uint64_t i = 0; i < rows * K3_PARTS; i++)
        if (!inside(ix, ix->scattered[i], ix->part_bytes[i % K3_PARTS]))
            return false;
    return true;
}

static bool ignored_fit(const k3_index *ix)
{
    uint64_t names = ix->head->section[S_NAMES].bytes, shapes = ix->head->section[S_SHAPES].bytes / 8;
    uint64_t dtypes = 0;
    while (k3_dtype_table[dtypes].name)
        dtypes++;
    if (names && ix->names[names - 1])
        return false;
    for (uint64_t i = 0; i < ix->nignored; i++) {
        const struct image_ignored *g = &ix->ignored[i];
        if (g->name >= names || g->shape > shapes || g->rank > shapes - g->shape || g->dtype >= dtypes ||
            !inside(ix, g->place, g->bytes))
            return false;
    }
    return true;
}

static int attach_sections(k3_index *ix, const char *name, k3_err *err)
{
    static const char *const title[SECTIONS] = {"shard", "tensor", "expert", "scattered expert", "ignored tensor", "shape", "name"};
    static const uint32_t item[SECTIONS] = {sizeof(struct image_shard), sizeof(struct image_tensor), 8, 8 * K3_PARTS,
                                            sizeof(struct image_ignored), 8, 1};
    const struct image_head *h = ix->head;
    uint64_t end = ix->image_bytes - K3_INDEX_END_BYTES, at = sizeof *h;
    for (int s = 0; s < SECTIONS; s++) {
        const struct section *x = &h->section[s];
        if (x->offset != at || x->bytes > end - at || x->bytes % item[s])
            return damaged(err, name, (int64_t)offsetof(struct image_head, section), "a section begins or ends where it cannot");
        at += (x->bytes + 7) / 8 * 8;
        if (at > end || k3_section_sum(ix->image, x) != x->sum)
            return k3_fail_at(err, K3_EDATA, name, NULL, (int64_t)x->offset,
                              "the checksum of the %s table does not match; run k3-index to write it anew", title[s]);
    }
    ix->shards = (const void *)(ix->image + h->section[S_SHARDS].offset);
    ix->tensors = (const void *)(ix->image + h->section[S_TENSORS].offset);
    ix->experts = (const void *)(ix->image + h->section[S_EXPERTS].offset);
    ix->scattered = (const void *)(ix->image + h->section[S_SCATTERED].offset);
    ix->ignored = (const void *)(ix->image + h->section[S_IGNORED].offset);
    ix->shapes = (const void *)(ix->image + h->section[S_SHAPES].offset);
    ix->names = ix->image + h->section[S_NAMES].offset;
    ix->nignored = h->section[S_IGNORED].bytes / sizeof *ix->ignored;
    ix->nshards = (uint32_t)(h->section[S_SHARDS].bytes / sizeof *ix->shards);
    for (uint32_t s = 0; s < ix->nshards; s++)
        if (!k3_shard_name_valid(ix->shards[s].name, sizeof ix->shards[s].name))
            return k3_fail_at(err, K3_EDATA, name, NULL, (int64_t)(h->section[S_SHARDS].offset + s * sizeof *ix->shards),
                              "\"%.*s\" is not the name of a shard, such as model-00001-of-00002.safetensors; run k3-index",
                              (int)sizeof ix->shards[s].name, ix->shards[s].name);
    return 0;
}

/* What look-ups need beside the image: the shards' paths, entries before each layer. */
static int make_lists(k3_index *ix, k3_err *err)
{
    const k3_config *c = &ix->config;
    size_t each = strlen(ix->dir) + sizeof ix->shards->name + 2, nfirst = c->layers + 2;
    ix->first = malloc(nfirst * sizeof *ix->first + ix->nshards * (sizeof *ix->paths + each));
    if (!ix->first)
        return k3_fail(err, K3_ESYS, "%s: out of memory", ix->dir);
    ix->first[0] = 0;
    for (int l = -1; l < (int)c->layers; l++) {
        uint64_t n = l >= 0 && k3_is_moe(c, (uint64_t)l) ? c->experts * K3_PARTS : 0;
        for (int id = 0; id < K3_TENSORS; id++)
            n += ix->tensors[(size_t)(l + 1) * K3_TENSORS + (size_t)id].place != PLACE_NONE;
        ix->first[l + 2] = ix->first[l + 1] + n;
    }
    ix->paths = (char **)(ix->first + nfirst);
    char *text = (char *)(ix->paths + ix->nshards);
    for (uint32_t s = 0; s < ix->nshards; s++, text += each) {
        ix->paths[s] = text;
        snprintf(text, each, "%s/%.47s", ix->dir, ix->shards[s].name);
    }
    return 0;
}

int k3_index_attach(k3_index *ix, const char *name, k3_err *err)
{
    const k3_config *c = &ix->config;
    int status = check_head(ix, name, err);
    if (status)
        return status;
    const struct image_head *h = ix->head = (const struct image_head *)ix->image;
    if (!k3_fingerprint_equal(h->config, k3_config_digest(c)))
        return k3_fail_at(err, K3_EDATA, name, NULL, -1, "stale: config.json has changed; run k3-index");
    if ((status = attach_sections(ix, name, err)))
        return status;
    k3_part_sizes(c, ix->part_bytes);
    if (h->layers != c->layers || h->tensors_per_layer != K3_TENSORS || h->moe_layers != c->moe_layers ||
        h->experts != c->experts || h->section[S_TENSORS].bytes != (c->layers + 1) * K3_TENSORS * sizeof *ix->tensors ||
        h->section[S_EXPERTS].bytes != c->moe_layers * c->experts * 8 || ix->nshards >= PLACE_SHARDS || !tensors_fit(ix) ||
        !experts_fit(ix) || !ignored_fit(ix))
        return damaged(err, name, -1, "its tables do not fit the model");
    if ((status = make_lists(ix, err)))
        return status;
    if (h->entries != ix->first[c->layers + 1] + ix->nignored)
        return damaged(err, name, -1, "its tables do not fit the model");
    return 0;
}

/* ---- open and close --------------------------------------------------------------------- */

static int read_image(k3_index *ix, const char *path, k3_err *err)
{
    int status = k3_read_file(path, UINT64_C(1) << 32, &ix->image, &ix->image_bytes, err);
    return !status && !ix->image_bytes ? damaged(err, path, -1, "empty") : status;
}

/* Whether its times are not those that it was indexed with. */
static bool is_touched(const struct image_shard *was, const struct stat *st)
{
    return shard_time(st->st_mtim) != was->mtime || shard_time(st->st_ctim) != was->ctime;
}

int k3_index_check_shard(const k3_index *ix, uint32_t s, const char *name, bool *touched, k3_err *err)
{
    const struct image_shard *was = &ix->shards[s];
    struct shard_file f;
    struct stat st;
    if (stat(ix->paths[s], &st)) {
        if (errno != ENOENT)
            return k3_fail_errno(err, was->name, "cannot stat");
        return k3_fail_at(err, K3_EDATA, was->name, NULL, -1, "is gone; %s is stale, run k3-index", name);
    }
    if ((uint64_t)st.st_size != was->size)
        return k3_fail_at(err, K3_EDATA, was->name, NULL, -1,
                          "%lld bytes now, %" PRIu64 " when it was indexed; %s is stale, run k3-index", (long long)st.st_size,
                          was->size, name);
    if (!(*touched = is_touched(was, &st)))
        return 0;
    int status = k3_shard_open(&f, ix->paths[s], was->name, err);
    if (status)
        return status;
    if (!k3_fingerprint_equal(f.digest, was->digest))
        status = k3_fail_at(err, K3_EDATA, was->name, NULL, 0, "its header has changed; %s is stale, run k3-index", name);
    k3_shard_close(&f);
    return status;
}

int k3_index_load(k3_index **out, const char *dir, const char *path, k3_err *err)
{
    k3_index *ix = calloc(1, sizeof *ix);
    int status = 0;
    *out = NULL;
    if (!ix || !(ix->dir = strdup(dir)))
        status = k3_fail(err, K3_ESYS, "%s: out of memory", dir);
    if (!status)
        status = k3_config_load(dir, &ix->config, err);
    if (!status)
        status = read_image(ix, path, err);
    if (!status)
        status = k3_index_attach(ix, path, err);
    if (status)
        k3_index_close(ix);
    else
        *out = ix;
    return status;
}

static int build_in_memory(k3_index **out, const char *dir, k3_err *err)
{
    int status = k3_index_build(out, dir, k3_threads_default(), err);
    if (!status)
        k3_note("%s: no k3.index, so the headers of all %" PRIu32 " shards were read; run k3-index to save that", dir,
                (*out)->nshards);
    return status;
}

/* Small enough that all headers are compared whenever it is opened, and the samples whenever they matter: some
 * milliseconds. */
static bool is_small(const k3_index *ix)
{
    uint64_t headers = 0;
    for (uint32_t s = 0; s < ix->nshards; s++)
        headers += ix->shards[s].header;
    return headers <= SMALL_HEADERS && k3_sample_stride(&ix->config) <= 1;
}

/* Was the index made from these shards? Says so by their times, and where that is cheap or the times differ by what
 * is in them. */
static int check_origin(const k3_index *ix, const char *path, k3_err *err)
{
    struct problems none = {.limit = 1};
    k3_index *now = NULL;
    bool touched, small = is_small(ix), any = false;
    int status = 0;
    for (uint32_t s = 0; !status && s < ix->nshards; s++) {
        touched = false;
        status = k3_index_check_shard(ix, s, path, &touched, err);
        any |= touched;
    }
    if (status || (!small && !any))
        return status;
    status = k3_index_build_headers(&now, ix->dir, small ? 1 : k3_threads_default(), &none, err);
    if (!status && !now) {
        *err = none.list[0];
        status = err->status;
    }
    if (!status)
        status = k3_index_compare(ix, now, path, err);
    k3_index_close(now);
    k3_problems_free(&none);
    return status;
}

/* What the shards are like now, for k3_index_unchanged. */
static int look_at_shards(k3_index *ix, k3_err *err)
{
    if (!(ix->seen = calloc(ix->nshards ? ix->nshards : 1, sizeof *ix->seen)))
        return k3_fail(err, K3_ESYS, "%s: out of memory", ix->dir);
    for (uint32_t s = 0; s < ix->nshards; s++) {
        struct stat st;
        if (stat(ix->paths[s], &st))
            return k3_fail_errno(err, ix->shards[s].name, "cannot stat");
        ix->seen[s] = (struct shard_state){(uint64_t)st.st_size, st.st_ino, shard_time(st.st_mtim)};
    }
    return 0;
}

int k3_index_open(k3_index **out, const char *dir, const char *file, k3_err *err)
{
    char *path = file ? strdup(file) : k3_sidecar_find(dir, "k3.index");
    k3_index *ix = NULL;
    int status = 0;
    *out = NULL;
    if (!path)
        return k3_fail(err, K3_ESYS, "%s: out of memory", dir);
    if (!file && access(path, F_OK) && errno == ENOENT)
        status = build_in_memory(&ix, dir, err);
    else if (!(status = k3_index_load(&ix, dir, path, err)))
        status = check_origin(ix, path, err);
    if (!status)
        status = look_at_shards(ix, err);
    free(path);
    if (status)
        k3_index_close(ix);
    else
        *out = ix;
    return status;
}

int k3_index_check_weights(const k3_index *ix, k3_err *err)
{
    bool small = is_small(ix);
    int status = 0;
    for (uint32_t s = 0; s < ix->nshards && !status; s++) {
        struct stat st;
        if (stat(ix->paths[s], &st))
            return k3_fail_errno(err, ix->shards[s].name, "cannot stat");
        if (small || is_touched(&ix->shards[s], &st))
            status = k3_index_check_sample(ix, s, "k3.index", !small, err);
    }
    return status;
}

int k3_index_unchanged(const k3_index *ix, k3_err *err)
{
    for (uint32_t s = 0; s < ix->nshards; s++) {
        const struct shard_state *was = &ix->seen[s];
        const char *name = ix->shards[s].name;
        struct stat st;
        if (stat(ix->paths[s], &st))
            return k3_fail_errno(err, name, "cannot stat at the end of the run");
        if ((uint64_t)st.st_size != was->size || st.st_ino != was->inode || shard_time(st.st_mtim) != was->mtime)
            return k3_fail_at(err, K3_EDATA, name, NULL, -1, "was written to during the run: what was computed is not to be relied on");
    }
    return 0;
}

void k3_index_close(k3_index *ix)
{
    if (!ix)
        return;
    free(ix->image);
    free(ix->seen);
    free(ix->first);
    free(ix->dir);
    free(ix);
}

int k3_index_write(const k3_index *ix, const char *path, k3_err *err)
{
    k3_file *f;
    int status = k3_file_create(&f, path, err);
    if (status)
        return status;
    if (fwrite(ix->image, 1, ix->image_bytes, k3_file_stream(f)) != ix->image_bytes) {
        status = k3_fail_write(err, path);
        k3_file_abort(&f);
        return status;
    }
    return k3_file_commit(&f, err);
}

/* ---- look up ------------------------------------------------------------------------------ */

const k3_config *k3_index_config(const k3_index *ix)
{
    return &ix->config;
}

const char *k3_index_dir(const k3_index *ix)
{
    return ix->dir;
}

k3_fingerprint k3_index_fingerprint(const k3_index *ix)
{
    return ix->head->fingerprint;
}

static const struct image_tensor *tensor_at(const k3_index *ix, int layer, k3_tensor_id id)
{
    if (layer < -1 || layer >= (int)ix->config.layers || id >= K3_TENSORS)
        return NULL;
    const struct image_tensor *t = &ix->tensors[(size_t)(layer + 1) * K3_TENSORS + id];
    return t->place == PLACE_NONE ? NULL : t;
}

bool k3_index_tensor(const k3_index *ix, int layer, k3_tensor_id id, k3_extent *at)
{
    const struct image_tensor *t = tensor_at(ix, layer, id);
    if (!t)
        return false;
    *at = (k3_extent){place_shard(t->place), place_offset(t->place), id == K3_T_A_LOG ? ix->config.kda_heads * 4 : t->bytes};
    return true;
}

uint64_t k3_index_stored_bytes(const k3_index *ix, int layer, k3_tensor_id id)
{
    const struct image_tensor *t = tensor_at(ix, layer, id);
    return t ? t->bytes : 0;
}

bool k3_index_expert(const k3_index *ix, int layer, uint64_t expert, k3_extent part[K3_PARTS])
{
    uint64_t v = ix->experts[((uint64_t)layer - ix->config.first_moe) * ix->config.experts + expert];
    const uint64_t *row = v & EXPERT_SCATTERED ? ix->scattered + (v & ~EXPERT_SCATTERED) * K3_PARTS : NULL;
    for (int p = 0; p < K3_PARTS; p++) {
        uint64_t place = row ? row[p] : v;
        part[p] = (k3_extent){place_shard(place), place_offset(place), ix->part_bytes[p]};
        v += ix->part_bytes[p];
    }
    return !row;
}

uint32_t k3_index_shards(const k3_index *ix)
{
    return ix->nshards;
}

const char *k3_index_shard_name(const k3_index *ix, uint32_t shard)
{
    return ix->shards[shard].name;
}

const char *k3_index_shard_path(const k3_index *ix, uint32_t shard)
{
    return ix->paths[shard];
}

uint64_t k3_index_shard_size(const k3_index *ix, uint32_t shard)
{
    return ix->shards[shard].size;
}

uint64_t k3_index_shard_header(const k3_index *ix, uint32_t shard)
{
    return ix->shards[shard].header;
}
