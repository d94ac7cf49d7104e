/* SPDX-License-Identifier: Apache-2.0 */
/* The plain weight source: every piece and expert is read from the shards when
 * it is asked for. No thread, no cache; what k3-layer and the tests use. */
#include "k3_source.h"
#include "k3_store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct plain {
    k3_source base;
    const k3_index *ix;
    const k3_config *c;
    k3_sums *sums;          /* NULL: nothing to check with */
    k3_order *order;
    uint32_t next_piece;
    bool head;              /* this pass goes on through the head */
    int *fd;                /* one a shard, -1 until it is used */
    uint8_t *piece, *expert;
    int layer;              /* of the experts asked for */
    const uint16_t *asked;
    uint16_t *sorted;       /* the same in ascending number */
    size_t nasked, given;
};

static int shard_fd(struct plain *p, uint32_t shard, int *fd, k3_err *err)
{
    const char *path = k3_index_shard_path(p->ix, shard);
    if (p->fd[shard] < 0 && (p->fd[shard] = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        return k3_fail_errno(err, path, "cannot open");
    *fd = p->fd[shard];
    return 0;
}

static int read_extent(struct plain *p, k3_extent at, uint64_t skip, uint64_t bytes, void *to, k3_err *err)
{
    int fd = -1, status = shard_fd(p, at.shard, &fd, err);
    return status ? status : k3_pread_full(fd, k3_index_shard_path(p->ix, at.shard), to, bytes, at.offset + skip, err);
}

static int plain_begin(k3_source *s, bool head, bool more, k3_err *err)
{
    struct plain *p = (struct plain *)s;
    (void)more, (void)err;
    p->next_piece = 0;
    p->head = head;
    s->traffic.passes++;
    return 0;
}

/* The whole stored A_log, so that its tail is looked at on every read. */
static int check_a_log(struct plain *p, int layer, k3_extent at, k3_err *err)
{
    uint64_t bytes = k3_index_stored_bytes(p->ix, layer, K3_T_A_LOG);
    if (bytes == at.bytes)
        return 0;
    float *all = malloc(bytes);
    int status = all ? read_extent(p, at, 0, bytes, all, err) : k3_fail(err, K3_ESYS, "out of memory");
    if (!status)
        status = k3_a_log_check(p->ix, layer, all, bytes / sizeof *all, err);
    free(all);
    return status;
}

static int plain_next(k3_source *s, const k3_piece **out, const void **data, k3_err *err)
{
    struct plain *p = (struct plain *)s;
    uint32_t end = p->head || p->order->head == p->order->ntiles ? p->order->npieces : p->order->tiles[p->order->head].first;
    if (p->next_piece >= end)
        return k3_fail(err, K3_ESYS, "weights were asked for past the end of the pass");
    const k3_piece *piece = &p->order->pieces[p->next_piece++];
    k3_tensor t;
    k3_extent at;
    k3_schema_tensor(p->c, piece->layer, (k3_tensor_id)piece->tensor, &t);
    k3_index_tensor(p->ix, piece->layer, (k3_tensor_id)piece->tensor, &at);
    int status = read_extent(p, at, piece->row0 * t.cols * k3_dtype_size[t.dtype], piece->bytes, p->piece, err);
    if (!status && piece->tensor == K3_T_A_LOG)
        status = check_a_log(p, piece->layer, at, err);
    if (!status)
        status = k3_sums_tensor(p->sums, piece->layer, (k3_tensor_id)piece->tensor, piece->row0, piece->rows, p->piece, err);
    if (status)
        return status;
    *(piece->layer < 0 ? &s->traffic.head_bytes : &s->traffic.trunk_bytes) += piece->bytes;
    *out = piece;
    *data = p->piece;
    return 0;
}

static void plain_release(k3_source *s)
{
    (void)s;
}

static int plain_embed(k3_source *s, const uint32_t *ids, size_t n, uint16_t *rows, k3_err *err)
{
    struct plain *p = (struct plain *)s;
    k3_extent at;
    uint64_t bytes = p->c->hidden * sizeof *rows;
    k3_index_tensor(p->ix, -1, K3_T_EMBED, &at);
    for (size_t i = 0; i < n; i++) {
        uint16_t *row = rows + i * p->c->hidden;
        int status = read_extent(p, at, ids[i] * bytes, bytes, row, err);
        if (!status)
            status = k3_sums_tensor(p->sums, -1, K3_T_EMBED, ids[i], 1, row, err);
        if (status)
            return status;
        s->traffic.embed_bytes += bytes;
    }
    return 0;
}

static int by_number(const void *a, const void *b)
{
    return *(const uint16_t *)a - *(const uint16_t *)b;
}

static int plain_want(k3_source *s, int layer, const uint16_t *experts, size_t n, bool ascending, k3_err *err)
{
    struct plain *p = (struct plain *)s;
    (void)err;
    memcpy(p->sorted, experts, n * sizeof *experts);
    if (ascending)
        qsort(p->sorted, n, sizeof *p->sorted, by_number);
    p->layer = layer;
    p->nasked = n;
    p->given = 0;
    s->traffic.requests += n;
    s->traffic.misses += n;
    return 0;
}

static int read_expert(struct plain *p, uint64_t number, k3_expert *out, k3_err *err)
{
    k3_extent part[K3_PARTS];
    bool adjacent = k3_index_expert(p->ix, p->layer, number, part);
    uint64_t at = 0, all = k3_expert_bytes(p->c);
    int status = adjacent ? read_extent(p, part[0], 0, all, p->expert, err) : 0;
    for (int i = 0; i < K3_PARTS && !status; i++) {
        if (!adjacent)
            status = read_extent(p, part[i], 0, part[i].bytes, p->expert + at, err);
        out->part[i] = p->expert + at;
        at += part[i].bytes;
    }
    return status ? status : k3_sums_expert(p->sums, p->layer, number, p->expert, err);
}

static int plain_expert(k3_source *s, k3_expert *out, k3_err *err)
{
    struct plain *p = (struct plain *)s;
    if (p->given == p->nasked)
        return k3_fail(err, K3_ESYS, "more experts were taken than asked for");
    uint64_t number = p->sorted[p->given++];
    *out = (k3_expert){.number = (uint32_t)number};
    if (read_expert(p, number, out, err)) {
        char text[sizeof err->text];
        snprintf(text, sizeof text, "%s", err ? err->text : "");
        return k3_fail(err, K3_EEXPERT, "expert %" PRIu64 " of layer %d: %.1900s", number, p->layer, text);
    }
    s->traffic.expert_bytes += k3_expert_bytes(p->c);
    return 0;
}

static void plain_expert_release(k3_source *s, k3_expert *e)
{
    (void)s, (void)e;
}

static void plain_close(k3_source *s)
{
    struct plain *p = (struct plain *)s;
    for (uint32_t i = 0; p->fd && i < k3_index_shards(p->ix); i++)
        if (p->fd[i] >= 0)
            close(p->fd[i]);
    k3_sums_close(p->sums);
    k3_order_free(p->order);
    free(p->fd);
    free(p->piece);
    free(p->expert);
    free(p->sorted);
    free(p);
}

static void *aligned(uint64_t bytes)
{
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

int k3_source_plain(k3_source **out, const k3_index *ix, uint64_t first, uint64_t last, bool head, uint64_t tile_bytes,
                    k3_err *err)
{
    *out = NULL;
    struct plain *p = calloc(1, sizeof *p);
    if (!p)
        return k3_fail(err, K3_ESYS, "out of memory");
    p->base = (k3_source){.reading = k3_reading_usual(), .begin = plain_begin, .next = plain_next, .release = plain_release, .embed = plain_embed,
                          .want = plain_want, .expert = plain_expert, .expert_release = plain_expert_release,
                          .close = plain_close};
    p->ix = ix;
    p->c = k3_index_config(ix);
    int status = k3_sums_open(&p->sums, ix, NULL, err);
    if (!status)
        status = k3_order_new(&p->order, p->c, first, last, head, tile_bytes, err);
    if (status)
        goto fail;
    p->base.order = p->order;
    p->fd = malloc(k3_index_shards(ix) * sizeof *p->fd);
    p->piece = aligned(p->order->largest);
    p->expert = aligned(k3_expert_bytes(p->c));
    p->sorted = malloc(p->c->experts * sizeof *p->sorted);
    if (!p->fd || !p->piece || !p->expert || !p->sorted) {
        status = k3_fail(err, K3_ESYS, "out of memory for a tile of %" PRIu32 " bytes", p->order->largest);
        free(p->fd);
        p->fd = NULL;
        goto fail;
    }
    memset(p->fd, -1, k3_index_shards(ix) * sizeof *p->fd);
    *out = &p->base;
    return 0;
fail:
    plain_close(&p->base);
    return status;
}
