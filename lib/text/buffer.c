/* Buffers that grow, and ids as decimal text. */
#include "text.h"

#include <inttypes.h>
#include <stdlib.h>

/* New capacity for n + more elements of `size` bytes, or 0 on overflow. */
static size_t grown(size_t n, size_t more, size_t cap, size_t size)
{
    size_t want;
    if (__builtin_add_overflow(n, more, &want) || want > SIZE_MAX / 2 / size)
        return 0;
    return want > cap + cap / 2 ? want : cap + cap / 2;
}

static int reserve(void **data, size_t n, size_t more, size_t *cap, size_t size, k3_err *err)
{
    if (n + more >= n && n + more <= *cap)
        return 0;
    size_t want = grown(n, more, *cap, size);
    void *p = want ? realloc(*data, want * size) : NULL;
    if (!p)
        return k3_fail(err, K3_ESYS, "out of memory for %zu more elements", more);
    *data = p;
    *cap = want;
    return 0;
}

int k3_ids_reserve(k3_ids *ids, size_t more, k3_err *err)
{
    return reserve((void **)&ids->id, ids->n, more, &ids->cap, sizeof *ids->id, err);
}

int k3_bytes_reserve(k3_bytes *b, size_t more, k3_err *err)
{
    return reserve((void **)&b->data, b->n, more, &b->cap, 1, err);
}

int k3_bytes_add(k3_bytes *b, const void *data, size_t size, k3_err *err)
{
    int status = k3_bytes_reserve(b, size, err);
    if (status || !size)
        return status;
    memcpy(b->data + b->n, data, size);
    b->n += size;
    return 0;
}

void k3_ids_free(k3_ids *ids)
{
    free(ids->id);
    *ids = (k3_ids){0};
}

void k3_bytes_free(k3_bytes *b)
{
    free(b->data);
    *b = (k3_bytes){0};
}

static int bad_word(const k3_id_reader *r, k3_err *err)
{
    const char *nul = r->len && !r->word[r->len - 1] ? "\\x00" : ""; /* %s ends before it */
    return k3_fail_at(err, K3_EDATA, r->name, NULL, (int64_t)(r->byte - r->len), "line %" PRIu64 ": \"%.*s%s\" is not an id",
                      r->line + 1, (int)r->len, r->word, nul);
}

/* The number in progress is complete. */
static int finish(k3_id_reader *r, uint32_t *id, k3_err *err)
{
    if (r->value >= r->vocab)
        return k3_fail_at(err, K3_EDATA, r->name, NULL, (int64_t)(r->byte - r->len),
                          "line %" PRIu64 ": id %.*s is outside the vocabulary of %" PRIu32 " ids (id number %" PRIu64 ")",
                          r->line + 1, (int)r->len, r->word, r->vocab, r->count + 1);
    *id = (uint32_t)r->value;
    r->count++;
    r->len = 0;
    r->value = 0;
    return K3_ID_VALUE;
}

int k3_id_next(k3_id_reader *r, const char **at, const char *end, uint32_t *id, k3_err *err)
{
    while (*at < end) {
        const char c = **at;
        if (c >= '0' && c <= '9') {
            /* a value at the limit stays there: larger ones are refused whatever follows */
            r->value = r->value >= UINT32_MAX ? UINT32_MAX : r->value * 10 + (uint64_t)(c - '0');
            if (r->len < sizeof r->word)
                r->word[r->len++] = c;
            else
                return bad_word(r, err);
        } else if (c != ' ' && c != '\t' && c != '\r' && c != '\n') {
            if (r->len < sizeof r->word)
                r->word[r->len++] = c;
            r->byte++;
            return bad_word(r, err);
        } else if (r->len) {
            return finish(r, id, err);
        }
        r->byte++;
        (*at)++;
        if (c == '\n') {
            r->line++;
            return K3_ID_LINE;
        }
    }
    return K3_ID_MORE;
}

int k3_id_end(k3_id_reader *r, uint32_t *id, k3_err *err)
{
    return r->len ? finish(r, id, err) : K3_ID_MORE;
}

unsigned k3_id_format(char *to, uint32_t id)
{
    char digits[10];
    unsigned n = 0;
    do
        digits[n++] = (char)('0' + id % 10);
    while (id /= 10);
    for (unsigned i = 0; i < n; i++)
        to[i] = digits[n - 1 - i];
    return n;
}
