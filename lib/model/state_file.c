/* SPDX-License-Identifier: Apache-2.0 */
/* The state file, k3-state(5): what a sequence carries, to go on with later.
 *
 * Head, section of ids, one section a layer, end mark. Every section has its
 * own head and checksum; all sizes follow from the file's head, so they are
 * known, and compared with the file's size, before any of them is used. */
#include "pass.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define MAGIC "K3STATE"
#define END "K3STATE-END\n\0\0\0" /* 16 bytes with its last NUL */
enum { VERSION = 1, END_BYTES = 16, SUM_BYTES = 8, READ_BYTES = 1 << 20, TEXT = 64 };

/* Little endian, as everything here. */
struct file_head {
    char magic[8];
    uint32_t version, head_bytes;
    uint64_t file_bytes;
    k3_fingerprint model;
    uint32_t first, layers;
    uint64_t position, ids;
    uint32_t kda_heads, kda_head_dim, conv_kernel, kv_lora_rank, qk_rope, zero;
    uint64_t sum; /* XXH3-64 of what is before it */
};

struct section_head {
    char kind[4];   /* "IDS", "KDA", "MLA" */
    uint32_t layer; /* 0 for the ids */
    uint64_t bytes; /* of the payload; its XXH3-64 with this head follows it */
};

struct section {
    struct section_head head;
    uint64_t offset; /* of the payload */
};

struct k3_state_file {
    char *path;
    int fd;
    struct file_head head;
    k3_state_info info;
    struct section *section; /* [1 + layers], the ids first */
    XXH3_state_t *hash;
    char *buf; /* [READ_BYTES] */
};

/* ---- sizes ------------------------------------------------------------------------ */

static struct file_head head_for(const k3_config *c)
{
    return (struct file_head){.magic = MAGIC,
                              .version = VERSION,
                              .head_bytes = sizeof(struct file_head),
                              .kda_heads = (uint32_t)c->kda_heads,
                              .kda_head_dim = (uint32_t)c->kda_head_dim,
                              .conv_kernel = (uint32_t)c->conv_kernel,
                              .kv_lora_rank = (uint32_t)c->kv_lora_rank,
                              .qk_rope = (uint32_t)c->qk_rope};
}

/* Payload of a KDA layer: S [heads][D][D], then q, k, v each [conv_kernel-1][heads*D]. False on overflow. */
static bool kda_bytes(const struct file_head *h, uint64_t *bytes)
{
    uint64_t width, rows = (uint64_t)h->kda_head_dim + 3 * ((uint64_t)h->conv_kernel - 1);
    return h->conv_kernel && k3_mul_u64(h->kda_heads, h->kda_head_dim, &width) && k3_mul_u64(width, rows, &width) &&
           k3_mul_u64(width, sizeof(float), bytes);
}

/* Payload of an MLA layer: [position][kv_lora_rank + qk_rope]. False on overflow. */
static bool mla_bytes(const struct file_head *h, uint64_t *bytes)
{
    uint64_t row = ((uint64_t)h->kv_lora_rank + h->qk_rope) * sizeof(float);
    return k3_mul_u64(h->position, row, bytes);
}

static uint64_t head_sum(const struct file_head *h)
{
    return XXH3_64bits(h, offsetof(struct file_head, sum));
}

/* ---- writing ------------------------------------------------------------------------ */

static int put(FILE *to, const char *path, const void *data, uint64_t bytes, k3_err *err)
{
    return !bytes || fwrite(data, 1, bytes, to) == bytes ? 0 : k3_fail_write(err, path);
}

static int put_section(FILE *to, const char *path, XXH3_state_t *hash, const char *kind, uint32_t layer,
                       const void *data, uint64_t bytes, k3_err *err)
{
    struct section_head head = {.layer = layer, .bytes = bytes};
    memcpy(head.kind, kind, sizeof head.kind);
    XXH3_64bits_reset(hash);
    XXH3_64bits_update(hash, &head, sizeof head);
    if (bytes)
        XXH3_64bits_update(hash, data, bytes);
    uint64_t sum = XXH3_64bits_digest(hash);
    int status;
    if ((status = put(to, path, &head, sizeof head, err)) || (status = put(to, path, data, bytes, err)))
        return status;
    return put(to, path, &sum, sizeof sum, err);
}

/* Layers in order, each entered and left, which is what a spilled state asks for. */
static int put_layers(k3_state *s, uint64_t first, const struct file_head *h, FILE *to, const char *path,
                      XXH3_state_t *hash, k3_err *err)
{
    uint64_t kda = 0, mla = 0;
    kda_bytes(h, &kda);
    mla_bytes(h, &mla);
    for (uint64_t l = first; l < s->layers; l++) {
        bool is_mla = s->c->is_mla[l];
        int status = k3_state_enter(s, (int)l, err);
        if (status)
            return status;
        status = put_section(to, path, hash, is_mla ? "MLA" : "KDA", (uint32_t)l,
                             is_mla ? s->layer[l].latent : s->layer[l].S, is_mla ? mla : kda, err);
        k3_state_leave(s, (int)l);
        if (status)
            return status;
    }
    return 0;
}

static uint64_t file_bytes(const k3_state *s, uint64_t first, const struct file_head *h)
{
    uint64_t kda = 0, mla = 0, per = sizeof(struct section_head) + SUM_BYTES;
    kda_bytes(h, &kda);
    mla_bytes(h, &mla);
    uint64_t n = sizeof *h + per + h->ids * sizeof(uint32_t) + END_BYTES;
    for (uint64_t l = first; l < s->layers; l++)
        n += per + (s->c->is_mla[l] ? mla : kda);
    return n;
}

int k3_state_save(k3_state *s, uint64_t first, k3_fingerprint model, const uint32_t *ids, size_t nids,
                  const char *path, k3_err *err)
{
    k3_file *file = NULL;
    struct file_head h = head_for(s->c);
    /* Accepted drafts that the KDA state has not seen are fed again after loading. */
    s->position -= s->settle;
    s->settle = 0;
    if (nids && nids < s->position)
        return k3_fail(err, K3_EUSAGE, "%s: %zu ids for a state that has seen %" PRIu64, path, nids, s->position);
    h.model = model;
    h.first = (uint32_t)first;
    h.layers = (uint32_t)(s->layers - first);
    h.position = s->position;
    h.ids = nids;
    h.file_bytes = file_bytes(s, first, &h);
    h.sum = head_sum(&h);

    XXH3_state_t *hash = XXH3_createState();
    int status = hash ? k3_file_create(&file, path, err) : k3_fail(err, K3_ESYS, "out of memory");
    if (status)
        goto done;
    FILE *to = k3_file_stream(file);
    if ((status = put(to, path, &h, sizeof h, err)) ||
        (status = put_section(to, path, hash, "IDS", 0, ids, nids * sizeof *ids, err)) ||
        (status = put_layers(s, first, &h, to, path, hash, err)) || (status = put(to, path, END, END_BYTES, err)))
        goto done;
    status = k3_file_commit(&file, err);
done:
    k3_file_abort(&file);
    XXH3_freeState(hash);
    return status;
}

/* ---- opening ------------------------------------------------------------------------ */

static int bad(const k3_state_file *f, k3_err *err, uint64_t at, const char *what)
{
    return k3_fail_at(err, K3_EDATA, f->path, NULL, (int64_t)at, "damaged state file: %s", what);
}

static int read_head(k3_state_file *f, uint64_t size, k3_err *err)
{
    struct file_head *h = &f->head;
    if (size < sizeof *h)
        return k3_fail(err, K3_EDATA, "%s: %" PRIu64 " bytes, a state file has at least %zu", f->path, size,
                       sizeof *h);
    int status = k3_pread_full(f->fd, f->path, h, sizeof *h, 0, err);
    if (status)
        return status;
    if (memcmp(h->magic, MAGIC, sizeof h->magic))
        return k3_fail(err, K3_EDATA, "%s: not a state file", f->path);
    if (h->version != VERSION)
        return k3_fail(err, K3_EDATA, "%s: state file of version %" PRIu32 ", this program reads %d", f->path,
                       h->version, VERSION);
    if (h->head_bytes != sizeof *h || h->sum != head_sum(h))
        return bad(f, err, 0, "the head does not match its checksum");
    if (h->file_bytes != size)
        return k3_fail(err, K3_EDATA, "%s: %" PRIu64 " bytes, the state file had %" PRIu64 " when it was written",
                       f->path, size, h->file_bytes);
    if (!h->layers || h->layers > K3_MAX_LAYERS || h->first > K3_MAX_LAYERS - h->layers ||
        (h->ids && h->ids < h->position))
        return bad(f, err, 0, "the head contradicts itself");
    return 0;
}

/* The payload size that section i must have; false if there is no such kind or the size overflows. */
static bool section_bytes(const k3_state_file *f, uint32_t i, const struct section_head *s, uint64_t *want)
{
    if (!i)
        return !memcmp(s->kind, "IDS", 4) && !s->layer && k3_mul_u64(f->head.ids, sizeof(uint32_t), want);
    if (s->layer != f->head.first + i - 1)
        return false;
    if (!memcmp(s->kind, "KDA", 4))
        return kda_bytes(&f->head, want);
    return !memcmp(s->kind, "MLA", 4) && mla_bytes(&f->head, want);
}

/* Walks through the section heads; afterwards all offsets and sizes lie inside the file. */
static int read_sections(k3_state_file *f, k3_err *err)
{
    uint64_t at = sizeof f->head, end = f->head.file_bytes, want = 0;
    char mark[END_BYTES];
    int status;
    for (uint32_t i = 0; i <= f->head.layers; i++) {
        struct section *s = &f->section[i];
        if (end - at < sizeof s->head)
            return bad(f, err, at, "it ends before its last section");
        if ((status = k3_pread_full(f->fd, f->path, &s->head, sizeof s->head, at, err)))
            return status;
        if (!section_bytes(f, i, &s->head, &want) || s->head.bytes != want)
            return bad(f, err, at, "a section's head does not fit the file's");
        at += sizeof s->head;
        if (end - at < SUM_BYTES || end - at - SUM_BYTES < want)
            return bad(f, err, at, "a section reaches past the end");
        s->offset = at;
        at += want + SUM_BYTES;
        f->info.kda_layers += s->head.kind[0] == 'K';
        f->info.mla_layers += s->head.kind[0] == 'M';
    }
    if (end - at != END_BYTES)
        return bad(f, err, at, "no end mark where the sections end");
    if ((status = k3_pread_full(f->fd, f->path, mark, END_BYTES, at, err)))
        return status;
    return memcmp(mark, END, END_BYTES) ? bad(f, err, at, "the end mark is wrong") : 0;
}

static int open_it(k3_state_file *f, k3_err *err)
{
    struct stat st;
    if (!f->path || !f->buf || !f->hash)
        return k3_fail(err, K3_ESYS, "out of memory");
    if ((f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0)
        return k3_fail_errno(err, f->path, "cannot open");
    if (fstat(f->fd, &st))
        return k3_fail_errno(err, f->path, "cannot stat");
    if (!S_ISREG(st.st_mode))
        return k3_fail(err, K3_ESYS, "%s: not a regular file", f->path);
    int status = read_head(f, (uint64_t)st.st_size, err);
    if (status)
        return status;
    if (!(f->section = calloc(f->head.layers + 1, sizeof *f->section)))
        return k3_fail(err, K3_ESYS, "out of memory");
    f->info = (k3_state_info){.version = f->head.version,
                              .model = f->head.model,
                              .first = f->head.first,
                              .layers = f->head.layers,
                              .position = f->head.position,
                              .ids = f->head.ids,
                              .bytes = f->head.file_bytes};
    return read_sections(f, err);
}

int k3_state_open(k3_state_file **out, const char *path, k3_err *err)
{
    *out = NULL;
    k3_state_file *f = calloc(1, sizeof *f);
    if (!f)
        return k3_fail(err, K3_ESYS, "out of memory");
    *f = (k3_state_file){.fd = -1, .path = strdup(path), .buf = malloc(READ_BYTES), .hash = XXH3_createState()};
    int status = open_it(f, err);
    if (status)
        k3_state_close(f);
    else
        *out = f;
    return status;
}

void k3_state_close(k3_state_file *f)
{
    if (!f)
        return;
    if (f->fd >= 0)
        close(f->fd);
    XXH3_freeState(f->hash);
    free(f->section);
    free(f->path);
    free(f->buf);
    free(f);
}

const k3_state_info *k3_state_describe(const k3_state_file *f)
{
    return &f->info;
}

/* ---- reading ------------------------------------------------------------------------ */

/* Reads a section into `to`, or nowhere if that is NULL, and compares its checksum. */
static int read_section(k3_state_file *f, const struct section *s, void *to, k3_err *err)
{
    uint64_t sum, n;
    int status;
    XXH3_64bits_reset(f->hash);
    XXH3_64bits_update(f->hash, &s->head, sizeof s->head);
    for (uint64_t done = 0; done < s->head.bytes; done += n) {
        char *p = to ? (char *)to + done : f->buf;
        n = s->head.bytes - done < READ_BYTES ? s->head.bytes - done : READ_BYTES;
        if ((status = k3_pread_full(f->fd, f->path, p, n, s->offset + done, err)))
            return status;
        XXH3_64bits_update(f->hash, p, n);
    }
    if ((status = k3_pread_full(f->fd, f->path, &sum, sizeof sum, s->offset + s->head.bytes, err)))
        return status;
    if (sum == XXH3_64bits_digest(f->hash))
        return 0;
    if (s->head.kind[0] == 'I')
        return bad(f, err, s->offset, "the ids do not match their checksum");
    return k3_fail_at(err, K3_EDATA, f->path, NULL, (int64_t)s->offset,
                      "damaged state file: layer %" PRIu32 " does not match its checksum", s->head.layer);
}

int k3_state_check(k3_state_file *f, k3_err *err)
{
    int status = 0;
    for (uint32_t i = 0; i <= f->head.layers && !status; i++)
        status = read_section(f, &f->section[i], NULL, err);
    return status;
}

int k3_state_ids(k3_state_file *f, uint64_t vocab, uint32_t *ids, k3_err *err)
{
    int status = read_section(f, &f->section[0], ids, err);
    for (uint64_t i = 0; i < f->head.ids && !status; i++)
        if (ids[i] >= vocab)
            status = k3_fail(err, K3_EDATA, "%s: id %" PRIu32 " is outside the vocabulary of %" PRIu64, f->path,
                             ids[i], vocab);
    return status;
}

/* "layer 3" or "layers 0 to 12" in buf [TEXT]; returns buf. */
static const char *layers_text(char *buf, uint64_t first, uint64_t layers)
{
    if (layers == 1)
        snprintf(buf, TEXT, "layer %" PRIu64, first);
    else
        snprintf(buf, TEXT, "layers %" PRIu64 " to %" PRIu64, first, first + layers - 1);
    return buf;
}

/* Is it of this model and of these layers, and is there room for it? */
static int check_fits(const k3_state *s, uint64_t first, k3_fingerprint model, const k3_state_file *f, k3_err *err)
{
    const struct file_head *h = &f->head, want = head_for(s->c);
    char have[TEXT], need[TEXT];
    if (!k3_fingerprint_equal(h->model, model))
        return k3_fail(err, K3_EDATA, "%s: state of another model: its fingerprint is %s, this model's %s", f->path,
                       k3_fingerprint_text(have, h->model), k3_fingerprint_text(need, model));
    if (h->first != first || h->layers != s->layers - first)
        return k3_fail(err, K3_EDATA, "%s: state of %s, not of %s", f->path, layers_text(have, h->first, h->layers),
                       layers_text(need, first, s->layers - first));
    if (h->position > s->positions)
        return k3_fail(err, K3_EDATA, "%s: the state has seen %" PRIu64 " tokens, there is room for %" PRIu64,
                       f->path, h->position, s->positions);
    bool same = h->kda_heads == want.kda_heads && h->kda_head_dim == want.kda_head_dim &&
                h->conv_kernel == want.conv_kernel && h->kv_lora_rank == want.kv_lora_rank &&
                h->qk_rope == want.qk_rope;
    for (uint64_t i = 0; i < h->layers && same; i++)
        same = (f->section[1 + i].head.kind[0] == 'M') == s->c->is_mla[first + i];
    return same ? 0 : k3_fail(err, K3_EDATA, "%s: the sizes of the state are not this model's", f->path);
}

int k3_state_load(k3_state *s, uint64_t first, k3_fingerprint model, k3_state_file *f, k3_err *err)
{
    int status = check_fits(s, first, model, f, err);
    for (uint64_t l = first; l < s->layers && !status; l++) {
        if ((status = k3_state_enter(s, (int)l, err)))
            return status;
        void *to = s->c->is_mla[l] ? s->layer[l].latent : s->layer[l].S;
        status = read_section(f, &f->section[1 + l - first], to, err);
        k3_state_leave(s, (int)l);
    }
    if (!status)
        s->position = f->head.position;
    return status;
}
