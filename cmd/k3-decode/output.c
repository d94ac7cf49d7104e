/* Ids to standard output as they come, logits to a file that appears whole. */
#include "decode.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static int write_all(const char *data, size_t n, k3_err *err)
{
    while (n) {
        ssize_t w = write(1, data, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return k3_fail_write(err, "standard output");
        data += w;
        n -= (size_t)w;
    }
    return 0;
}

/* One write: the id and the byte after it. */
static int put_id(uint32_t id, char after, k3_err *err)
{
    char text[16];
    unsigned n = k3_id_format(text, id);
    text[n++] = after;
    return write_all(text, n, err);
}

/* What has come of a sequence and is not yet written. */
static int put_news(const struct engine *e, struct sequence *s, k3_err *err)
{
    int status = 0;
    if (e->o->score || e->o->perplexity) {
        status = write_all(s->text.data, s->text.n, err);
        s->text.n = 0;
        return status;
    }
    if (s->done && s->ids.n == s->prompt)
        return write_all("\n", 1, err);
    while (!status && s->shown < s->ids.n - s->prompt) {
        bool last = s->done && s->shown + 1 == s->ids.n - s->prompt;
        status = put_id(s->ids.id[s->prompt + s->shown], last ? '\n' : ' ', err);
        s->shown += !status;
    }
    return status;
}

int output_sequences(struct engine *e, k3_err *err)
{
    /* Events went out as they came; a trace on standard output has it for itself. */
    if (e->o->stream_json || (e->o->trace && !strcmp(e->o->trace, "-")))
        return 0;
    while (e->next_out < e->nseq) {
        struct sequence *s = e->seq[e->next_out];
        int status = put_news(e, s, err);
        if (status || !s->done)
            return status;
        e->next_out++;
    }
    return 0;
}

int output_event(struct engine *e, const struct sequence *s, uint32_t id, double logprob, k3_err *err)
{
    char line[192];
    int n = snprintf(line, sizeof line, "{\"line\": %" PRIu64 ", \"index\": %zu, \"id\": %" PRIu32 ", \"logprob\": %.6f, \"end\": %s}\n",
                     s->line + 1, s->ids.n - s->prompt, id, logprob, s->done ? s->stopped ? "\"stop\"" : "\"length\"" : "null");
    (void)e;
    return write_all(line, (size_t)n, err);
}

int rows_open(struct rows *r, const char *path, const char *dtype, uint64_t columns, k3_err *err)
{
    *r = (struct rows){.path = path, .dtype = dtype, .columns = columns, .bytes = columns * (size_t)(dtype[2] - '0')};
    if (!path)
        return 0;
    int status = k3_file_create(&r->file, path, err);
    if (status)
        return status;
    /* The header counts the rows, which are known at the end: a pipe gets them from a spool. */
    r->to = k3_file_is_direct(r->file) ? tmpfile() : k3_file_stream(r->file);
    if (!r->to)
        return k3_fail_errno(err, path, "cannot make a spool for it");
    return k3_npy_write_header(r->to, path, dtype, 2, (uint64_t[]){0, columns}, err);
}

int rows_add(struct rows *r, const void *rows, uint64_t n, k3_err *err)
{
    if (!r->file || !n)
        return 0;
    if (fwrite(rows, r->bytes, n, r->to) != n)
        return k3_fail_write(err, r->path);
    r->n += n;
    return 0;
}

static int copy_spool(struct rows *r, k3_err *err)
{
    char buf[8192];
    size_t n;
    rewind(r->to);
    while ((n = fread(buf, 1, sizeof buf, r->to)))
        if (fwrite(buf, 1, n, k3_file_stream(r->file)) != n)
            return k3_fail_write(err, r->path);
    return ferror(r->to) ? k3_fail_errno(err, r->path, "cannot read its spool back") : 0;
}

int rows_commit(struct rows *r, k3_err *err)
{
    if (!r->file)
        return 0;
    bool spooled = k3_file_is_direct(r->file);
    if (fseek(r->to, 0, SEEK_SET))
        return k3_fail_write(err, r->path);
    int status = k3_npy_write_header(r->to, r->path, r->dtype, 2, (uint64_t[]){r->n, r->columns}, err);
    if (!status && spooled)
        status = copy_spool(r, err);
    if (status)
        return status;
    if (spooled)
        fclose(r->to);
    return k3_file_commit(&r->file, err);
}

void rows_abort(struct rows *r)
{
    if (r->file && k3_file_is_direct(r->file) && r->to)
        fclose(r->to);
    k3_file_abort(&r->file);
}
