/* SPDX-License-Identifier: Apache-2.0 */
/* build, check, info, and what they print. */
#include "pack.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

void pack_meter(void *arg, const k3_pack_state *now)
{
    struct meter *m = arg;
    char done[24], all[24], rate[24];
    double part = now->bytes ? (double)now->bytes_done / (double)now->bytes : 1;
    double speed = now->seconds > 0 ? (double)now->bytes_done / now->seconds : 0;
    int tenths = (int)(part * 10);
    k3_fmt_bytes(done, now->bytes_done);
    k3_fmt_bytes(all, now->bytes);
    k3_fmt_bytes(rate, (uint64_t)speed);
    if (speed > 0) {
        uint64_t left = (uint64_t)((double)(now->bytes - now->bytes_done) / speed + 0.5);
        k3_progress(false, "%s %s of %s (%.0f %%), %s/s, %" PRIu64 ":%02" PRIu64 " left", m->verb, done, all, 100 * part, rate,
                    left / 60, left % 60);
    }
    if (k3_verbosity > 0 && tenths > m->tenths)
        k3_note("%s %d %%: %s of %s, %s/s", m->verb, tenths * 10, done, all, rate);
    m->tenths = tenths;
}

/* Prints and frees. */
static int print_json(json_t *j, k3_err *err)
{
    int bad = !j || json_dumpf(j, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) || putchar('\n') == EOF;
    json_decref(j);
    return bad ? k3_fail_write(err, "standard output") : 0;
}

static json_t *facts_json(const char *file, const k3_trunk *t)
{
    k3_trunk_facts f;
    char source[K3_FINGERPRINT_TEXT];
    k3_trunk_describe(t, &f);
    return json_pack("{s:s, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "file", file, "version",
                     (json_int_t)f.version, "fingerprint", k3_fingerprint_text(source, f.source), "layers",
                     (json_int_t)f.layers, "hidden", (json_int_t)f.hidden, "vocab", (json_int_t)f.vocab, "tile_bytes",
                     (json_int_t)f.tile_bytes, "tiles", (json_int_t)f.tiles, "head_tile", (json_int_t)f.head_tile, "pieces",
                     (json_int_t)f.pieces, "trunk_bytes", (json_int_t)f.trunk_bytes, "head_bytes", (json_int_t)f.head_bytes,
                     "file_bytes", (json_int_t)f.file_bytes, "disk_bytes", (json_int_t)f.disk_bytes);
}

static int open_file(const pack_opts *o, k3_trunk **t, k3_err *err)
{
    k3_index *ix = NULL;
    int status = o->compare ? k3_index_open(&ix, o->model, o->index, err) : 0;
    if (!status)
        status = k3_trunk_open(t, o->file, ix, err);
    k3_index_close(ix);
    return status;
}

/* ---- build -------------------------------------------------------------------------- */

static int report_build(const pack_opts *o, const k3_trunk *t, const k3_pack_state *s, k3_err *err)
{
    k3_trunk_facts f;
    char size[24], holes[24], rate[24];
    k3_trunk_describe(t, &f);
    if (o->json) {
        json_t *j = facts_json(o->file, t);
        if (j && json_object_update_new(j, json_pack("{s:I, s:I, s:I, s:I, s:f}", "tiles_kept", (json_int_t)s->kept, "read_bytes",
                                                     (json_int_t)s->read, "written_bytes", (json_int_t)s->written, "hole_bytes",
                                                     (json_int_t)s->holes, "seconds", s->seconds)))
            return k3_fail(err, K3_ESYS, "out of memory");
        return print_json(j, err);
    }
    k3_note("%s: %" PRIu64 " tiles, %s (%s of it holes), in %.1f s, %s/s", o->file, f.tiles, k3_fmt_bytes(size, f.file_bytes),
            k3_fmt_bytes(holes, s->holes), s->seconds,
            k3_fmt_bytes(rate, s->seconds > 0 ? (uint64_t)((double)s->bytes / s->seconds) : 0));
    return 0;
}

int pack_build(const pack_opts *o, k3_err *err)
{
    struct meter m = {.verb = "packed"};
    k3_pack_opts work = o->work;
    k3_pack_state done = {0};
    k3_index *ix;
    k3_trunk *t = NULL;
    int status = k3_index_open(&ix, o->model, o->index, err);
    if (status)
        return status;
    work.progress = pack_meter;
    work.arg = &m;
    status = k3_trunk_pack(ix, o->file, &work, &done, err);
    k3_progress_end();
    /* Opening it again is cheap and sees what others will see. */
    if (!status && !(status = k3_trunk_open(&t, o->file, ix, err)))
        status = report_build(o, t, &done, err);
    k3_trunk_close(t);
    k3_index_close(ix);
    return status;
}

/* ---- check ---------------------------------------------------------------------------- */

static int report_check(const pack_opts *o, const k3_trunk *t, const k3_pack_state *s, const uint32_t *bad, size_t n, k3_err *err)
{
    char size[24], rate[24], place[K3_TRUNK_PLACE];
    if (!o->json) {
        if (!n)
            k3_note("%s: %" PRIu64 " tiles, %s, all good, in %.1f s, %s/s", o->file, s->tiles, k3_fmt_bytes(size, s->bytes),
                    s->seconds, k3_fmt_bytes(rate, s->seconds > 0 ? (uint64_t)((double)s->bytes / s->seconds) : 0));
        return 0;
    }
    json_t *j = facts_json(o->file, t), *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:I, s:I, s:s}", "tile", (json_int_t)bad[i], "offset",
                                              (json_int_t)k3_trunk_offset(t, bad[i]), "place", k3_trunk_place(t, bad[i], place)));
    if (json_object_update_new(j, json_pack("{s:b, s:I, s:f, s:o}", "good", !n, "read_bytes", (json_int_t)s->read, "seconds",
                                            s->seconds, "damaged", list)))
        return k3_fail(err, K3_ESYS, "out of memory");
    return print_json(j, err);
}

int pack_check(const pack_opts *o, k3_err *err)
{
    struct meter m = {.verb = "checked"};
    k3_pack_opts work = o->work;
    k3_pack_state done = {0};
    k3_trunk *t = NULL;
    uint32_t *bad = NULL;
    size_t n = 0;
    k3_err late = {0};
    int status = open_file(o, &t, err);
    if (status)
        return status;
    work.progress = pack_meter;
    work.arg = &m;
    status = k3_trunk_check(t, &work, &done, &bad, &n, err);
    k3_progress_end();
    if (!status || n) {
        int said = report_check(o, t, &done, bad, n, &late);
        if (said && !status) {
            *err = late;
            status = said;
        }
    }
    free(bad);
    k3_trunk_close(t);
    return status;
}

/* ---- info ------------------------------------------------------------------------------- */

int pack_info(const pack_opts *o, k3_err *err)
{
    k3_trunk *t = NULL;
    k3_trunk_facts f;
    char text[K3_FINGERPRINT_TEXT], size[24];
    int status = open_file(o, &t, err);
    if (status)
        return status;
    if (o->json) {
        status = print_json(facts_json(o->file, t), err);
        k3_trunk_close(t);
        return status;
    }
    k3_trunk_describe(t, &f);
    printf("file         %s\n", o->file);
    printf("version      %" PRIu32 "\n", f.version);
    printf("fingerprint  %s\n", k3_fingerprint_text(text, f.source));
    printf("model        %" PRIu64 " layers, width %" PRIu64 ", vocabulary %" PRIu64 "\n", f.layers, f.hidden, f.vocab);
    printf("tiles        %" PRIu64 " of at most %" PRIu64 " bytes, the head's from %" PRIu64 "\n", f.tiles, f.tile_bytes, f.head_tile);
    printf("pieces       %" PRIu64 "\n", f.pieces);
    printf("trunk        %" PRIu64 " bytes (%s)\n", f.trunk_bytes, k3_fmt_bytes(size, f.trunk_bytes));
    printf("head         %" PRIu64 " bytes (%s)\n", f.head_bytes, k3_fmt_bytes(size, f.head_bytes));
    printf("size         %" PRIu64 " bytes (%s)\n", f.file_bytes, k3_fmt_bytes(size, f.file_bytes));
    printf("on disk      %" PRIu64 " bytes (%s)\n", f.disk_bytes, k3_fmt_bytes(size, f.disk_bytes));
    k3_trunk_close(t);
    return 0;
}
