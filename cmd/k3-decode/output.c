/* SPDX-License-Identifier: Apache-2.0 */
/* Ids to standard output as they come. */
#include "output.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int output_open(struct output *out, const struct options *o, k3_err *err)
{
    struct stat st;
    bool known = !fstat(1, &st);
    *out = (struct output){.o = o, .watched = isatty(1) || (known && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))};
    int status = o->logprobs ? k3_file_create(&out->logprobs, o->logprobs, err) : 0;
    if (!status && o->logprobs && fputs("line\tindex\tid\tlogprob\n", k3_file_stream(out->logprobs)) == EOF)
        status = k3_fail_write(err, o->logprobs);
    return status;
}

int output_commit(struct output *out, k3_err *err)
{
    return out->logprobs ? k3_file_commit(&out->logprobs, err) : 0;
}

void output_abort(struct output *out)
{
    k3_file_abort(&out->logprobs);
}

static int write_all(struct output *out, const char *data, size_t n, k3_err *err)
{
    k3_progress_end();
    out->wrote = out->wrote || n;
    while (n && !out->gone) {
        ssize_t w = write(1, data, n);
        if (w < 0 && errno == EINTR)
            continue;
        out->gone = w < 0 && errno == EPIPE;
        if (out->gone)
            return 0;
        if (w < 0)
            return k3_fail_write(err, "standard output");
        data += w;
        n -= (size_t)w;
    }
    return 0;
}

/* One write: the id and the byte after it. */
static int put_id(struct output *out, uint32_t id, char after, k3_err *err)
{
    char text[16];
    unsigned n = k3_id_format(text, id);
    text[n++] = after;
    return write_all(out, text, n, err);
}

bool output_in_turn(const struct output *out)
{
    const struct options *o = out->o;
    return !o->stream_json && !o->stdout_taken;
}

int output_news(struct output *out, struct sequence *s, k3_err *err)
{
    int status = 0;
    if (out->o->score && !out->wrote) {
        static const char names[] = "line\tposition\tid\tlogprob\trank\targmax\n";
        status = write_all(out, names, sizeof names - 1, err);
    }
    if (out->o->score || out->o->perplexity) {
        status = status ? status : write_all(out, s->text.data, s->text.n, err);
        s->text.n = 0;
        return status;
    }
    if (s->done && s->shown == s->ids.n - s->prompt) /* without ids, or ended after the last was written */
        return write_all(out, "\n", 1, err);
    while (!status && s->shown < s->ids.n - s->prompt) {
        bool last = s->done && s->shown + 1 == s->ids.n - s->prompt;
        status = put_id(out, s->ids.id[s->prompt + s->shown], last ? '\n' : ' ', err);
        s->shown += !status;
    }
    return status;
}

bool output_wants_logprob(const struct output *out)
{
    return out->logprobs || out->o->stream_json;
}

int output_id(struct output *out, const struct sequence *s, double logprob, k3_err *err)
{
    uint32_t id = s->ids.id[s->ids.n - 1];
    size_t index = s->ids.n - s->prompt;
    char line[192];
    if (out->logprobs && fprintf(k3_file_stream(out->logprobs), "%" PRIu64 "\t%zu\t%" PRIu32 "\t%.6f\n", s->line + 1, index, id,
                                 logprob) < 0) {
        int status = k3_fail_write(err, out->o->logprobs);
        if (status != K3_EPIPE)
            return status;
        out->gone = true;
        k3_file_abort(&out->logprobs);
    }
    if (!out->o->stream_json)
        return 0;
    int n = snprintf(line, sizeof line, "{\"line\": %" PRIu64 ", \"index\": %zu, \"id\": %" PRIu32 ", \"logprob\": %.6f, \"end\": %s}\n",
                     s->line + 1, index, id, logprob, s->done ? s->stopped ? "\"stop\"" : "\"length\"" : "null");
    return write_all(out, line, (size_t)n, err);
}
