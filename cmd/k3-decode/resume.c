/* --load-state, --save-state and `k3-decode state FILE`: going on where a run stopped. */
#include "resume.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* The ids of the file in front of the line's: those that were fed, then those that come next. */
int resume_ids(const char *path, uint64_t vocab, struct sequence *s, k3_err *err)
{
    k3_state_file *f;
    int status = k3_state_open(&f, path, err);
    if (status)
        return status;
    const k3_state_info *info = k3_state_describe(f);
    if (info->ids < info->position)
        status = k3_fail(err, K3_EDATA, "%s: it holds a state after %" PRIu64 " tokens but not their ids", path,
                         info->position);
    if (!status)
        status = k3_ids_reserve(&s->ids, info->ids, err);
    if (!status) {
        memmove(s->ids.id + info->ids, s->ids.id, s->ids.n * sizeof *s->ids.id);
        status = k3_state_ids(f, vocab, s->ids.id, err);
        s->ids.n += info->ids;
        s->prompt = s->ids.n;
        s->fed = info->position;
    }
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
    return k3_state_save(s->state, 0, model, s->ids.id, s->ids.n, path, err);
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
    if ((status = k3_state_check(f, err)) == 0 && o->json) {
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
