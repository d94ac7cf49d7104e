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

int logits_open(struct logits *l, const char *path, uint64_t vocab, k3_err *err)
{
    *l = (struct logits){.path = path, .vocab = vocab};
    if (!path)
        return 0;
    int status = k3_file_create(&l->file, path, err);
    if (status)
        return status;
    /* The header counts the rows, which are known at the end: a pipe gets them from a spool. */
    l->rows_to = k3_file_is_direct(l->file) ? tmpfile() : k3_file_stream(l->file);
    if (!l->rows_to)
        return k3_fail_errno(err, path, "cannot make a spool for it");
    return k3_npy_write_header(l->rows_to, path, "<f4", 2, (uint64_t[]){0, vocab}, err);
}

int logits_add(struct logits *l, const float *rows, uint64_t n, k3_err *err)
{
    if (!l->file || !n)
        return 0;
    if (fwrite(rows, sizeof *rows * l->vocab, n, l->rows_to) != n)
        return k3_fail_write(err, l->path);
    l->rows += n;
    return 0;
}

static int copy_spool(struct logits *l, k3_err *err)
{
    char buf[65536];
    size_t n;
    rewind(l->rows_to);
    while ((n = fread(buf, 1, sizeof buf, l->rows_to)))
        if (fwrite(buf, 1, n, k3_file_stream(l->file)) != n)
            return k3_fail_write(err, l->path);
    return ferror(l->rows_to) ? k3_fail_errno(err, l->path, "cannot read its spool back") : 0;
}

int logits_commit(struct logits *l, k3_err *err)
{
    if (!l->file)
        return 0;
    bool spooled = k3_file_is_direct(l->file);
    if (fseek(l->rows_to, 0, SEEK_SET))
        return k3_fail_write(err, l->path);
    int status = k3_npy_write_header(l->rows_to, l->path, "<f4", 2, (uint64_t[]){l->rows, l->vocab}, err);
    if (!status && spooled)
        status = copy_spool(l, err);
    if (status)
        return status;
    if (spooled)
        fclose(l->rows_to);
    return k3_file_commit(&l->file, err);
}

void logits_abort(struct logits *l)
{
    if (l->file && k3_file_is_direct(l->file) && l->rows_to)
        fclose(l->rows_to);
    k3_file_abort(&l->file);
}
