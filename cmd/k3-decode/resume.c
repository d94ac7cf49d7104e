/* SPDX-License-Identifier: Apache-2.0 */
/* --load-state, --save-state and `k3-decode state FILE`: going on where a run stopped. */
#include "resume.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Whether the line begins with those ids. */
static bool begins_with(const struct sequence *s, const uint32_t *ids, size_t n)
{
    return s->ids.n >= n && !memcmp(s->ids.id, ids, n * sizeof *ids);
}

/* The line says everything from the beginning: what the state has seen of it is not fed again. */
static int take_up(const char *path, const uint32_t *ids, const k3_state_info *info, struct sequence *s, k3_err *err)
{
    size_t same = 0;
    while (same < info->ids && same < s->ids.n && ids[same] == s->ids.id[same])
        same++;
    if (same < info->ids && same < s->ids.n)
        return k3_fail(err, K3_EDATA, "line %" PRIu64 ": id %" PRIu32 " at place %zu, where %s has %" PRIu32 ": not a continuation of it",
                       s->line + 1, s->ids.id[same], same + 1, path, ids[same]);
    if (same < info->ids)
        return k3_fail(err, K3_EDATA, "line %" PRIu64 ": %zu ids, and %s has %" PRIu64 ": not a continuation of it", s->line + 1,
                       s->ids.n, path, info->ids);
    if (info->position == s->ids.n)
        return k3_fail(err, K3_EDATA, "line %" PRIu64 ": %s has seen all of its %zu ids, so no id is left to feed", s->line + 1, path,
                       s->ids.n);
    s->fed = info->position;
    return 0;
}

/* The ids of the file in front of the line's: those that were fed, then those that come next. */
static int put_before(const char *path, const uint32_t *ids, const k3_state_info *info, struct sequence *s, k3_err *err)
{
    if (info->ids && begins_with(s, ids, info->ids))
        k3_note("warning: line %" PRIu64 " begins with the %" PRIu64 " ids of %s and follows them, so they are there twice; "
                "--resume takes it up where the state ends", s->line + 1, info->ids, path);
    return sequence_precede(s, ids, info->ids, info->position, err);
}

int resume_ids(const char *path, uint64_t vocab, bool whole, struct sequence *s, k3_err *err)
{
    k3_state_file *f;
    uint32_t *ids = NULL;
    int status = k3_state_open(&f, path, err);
    if (status)
        return status;
    const k3_state_info *info = k3_state_describe(f);
    if (info->ids < info->position)
        status = k3_fail(err, K3_EDATA, "%s: it holds a state after %" PRIu64 " tokens but not their ids", path,
                         info->position);
    else if (!(ids = malloc(info->ids * sizeof *ids + 1)))
        status = k3_fail(err, K3_ESYS, "%s: out of memory for %" PRIu64 " ids", path, info->ids);
    if (!status)
        status = k3_state_ids(f, vocab, ids, err);
    if (!status)
        status = (whole ? take_up : put_before)(path, ids, info, s, err);
    free(ids);
    k3_state_close(f);
    return status;
}

int resume_state(const char *path, k3_fingerprint model, struct sequence *s, k3_err *err)
{
    k3_state_file *f;
    int status = k3_state_open(&f, path, err);
    if (status)
        return status;
    status = k3_state_load(s->state, 0, model, f, err);
    k3_state_close(f);
    return status;
}

int resume_save(const char *path, k3_fingerprint model, struct sequence *s, k3_err *err)
{
    int status = k3_state_save(s->state, 0, model, s->ids.id, s->ids.n, path, err);
    s->fed = k3_state_position(s->state);
    return status;
}

/* `state --ids`: one line that k3-decode and k3-tok read, or a JSON array. */
static int print_ids(k3_state_file *f, bool json, k3_err *err)
{
    uint64_t n = k3_state_describe(f)->ids;
    uint32_t *ids = malloc(n * sizeof *ids + 1);
    int status = ids ? k3_state_ids(f, UINT32_MAX, ids, err) : k3_fail(err, K3_ESYS, "out of memory for %" PRIu64 " ids", n);
    if (!status && json)
        putchar('[');
    for (uint64_t i = 0; i < n && !status; i++)
        printf("%s%" PRIu32, i == 0 ? "" : json ? ", " : " ", ids[i]);
    if (!status)
        puts(json ? "]" : "");
    free(ids);
    return status;
}

int resume_describe(const struct options *o, k3_err *err)
{
    k3_state_file *f;
    char print[K3_FINGERPRINT_TEXT];
    int status = k3_state_open(&f, o->describe, err);
    if (status)
        return status;
    const k3_state_info *i = k3_state_describe(f);
    k3_fingerprint_text(print, i->model);
    if ((status = k3_state_check(f, err)) == 0 && o->ids) {
        status = print_ids(f, o->json, err);
    } else if (!status && o->json) {
        json_t *root = json_pack("{s:s, s:i, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "file", o->describe, "version",
                                 (int)i->version, "model", print, "first_layer", (json_int_t)i->first, "layers",
                                 (json_int_t)i->layers, "kda_layers", (json_int_t)i->kda_layers, "mla_layers",
                                 (json_int_t)i->mla_layers, "position", (json_int_t)i->position, "ids", (json_int_t)i->ids, "bytes",
                                 (json_int_t)i->bytes);
        json_dumpf(root, stdout, JSON_INDENT(1));
        putchar('\n');
        json_decref(root);
    } else if (!status) {
        printf("model     %s\nlayers    %" PRIu64 " (%" PRIu64 " KDA, %" PRIu64 " MLA)\nposition  %" PRIu64 "\nids       %" PRIu64
               "\nbytes     %" PRIu64 "\n",
               print, i->layers, i->kda_layers, i->mla_layers, i->position, i->ids, i->bytes);
    }
    k3_state_close(f);
    return status;
}
