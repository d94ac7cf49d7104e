/* SPDX-License-Identifier: Apache-2.0 */
/* The state file: goes on where it stopped, and refuses everything that is not whole and not ours. */
#include "model_fixture.h"
#include "temp_folder.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { HEAD = 96, SECTION = 16, SUM = 8, MARK = 16, TILE = 65536 }; /* k3-state(5) */

static char dir[FOLDER_MAX], path[FOLDER_MAX + 16];

static void make_dir(void)
{
    temp_folder(dir);
    snprintf(path, sizeof path, "%s/s", dir);
}

static void remove_dir(void)
{
    unlink(path);
    cr_assert(!rmdir(dir), "something was left behind in %s", dir);
}

/* A state after ids[0..n), saved with them. */
static void feed_and_save(struct fixture *f, const uint32_t *ids, size_t n)
{
    k3_err err = {0};
    float *logits = malloc((n + 1) * f->c->vocab * sizeof *logits);
    feed_all(f, ids, n, n ? n : 1, logits);
    cr_assert(!k3_state_save(f->state, 0, k3_index_fingerprint(f->index), ids, n, path, &err), "%s", err.text);
    free(logits);
}

/* Opens, checks and loads; the first status that is not 0. */
static int load(struct fixture *f, k3_state *into, k3_err *err)
{
    k3_state_file *file;
    uint32_t ids[512];
    int status = k3_state_open(&file, path, err);
    if (!status)
        status = k3_state_check(file, err);
    if (!status)
        status = k3_state_ids(file, f->c->vocab, ids, err);
    if (!status)
        status = k3_state_load(into, 0, k3_index_fingerprint(f->index), file, err);
    k3_state_close(file);
    return status;
}

static size_t file_size(void)
{
    struct stat st;
    cr_assert(!stat(path, &st));
    return (size_t)st.st_size;
}

/* ---- going on ---- */

static void check_resume(const char *model, size_t step)
{
    struct fixture f;
    struct ids ids;
    k3_err err = {0};
    make_dir();
    fixture_open(&f, model, NULL, 2, 64, TILE);
    case_ids(json_array_get(f.cases, 0), &ids);
    size_t n = 12, V = f.c->vocab;
    float *whole = malloc(n * V * sizeof *whole), *rest = malloc(n * V * sizeof *rest);
    feed_all(&f, ids.id, n, n, whole);
    for (size_t cut = 0; cut < n; cut += step) {
        k3_state *other;
        uint32_t back[16] = {0};
        k3_state_file *file;
        feed_and_save(&f, ids.id, cut);
        cr_assert(!k3_state_open(&file, path, &err), "%s", err.text);
        const k3_state_info *info = k3_state_describe(file);
        cr_expect(info->position == cut && info->ids == cut && info->first == 0 && info->layers == f.c->layers);
        cr_expect(info->kda_layers == f.c->kda_layers && info->mla_layers == f.c->mla_layers &&
                  info->bytes == file_size());
        cr_assert(!k3_state_new(&other, f.c, f.c->layers, n, &err));
        cr_assert(!k3_state_load(other, 0, k3_index_fingerprint(f.index), file, &err), "%s", err.text);
        cr_assert(!k3_state_ids(file, V, back, &err), "%s", err.text);
        cr_expect(!memcmp(back, ids.id, cut * sizeof *back));
        k3_state_close(file);
        cr_expect_eq(k3_state_position(other), cut);
        k3_span span = {other, ids.id + cut, n - cut, n - cut};
        cr_assert(!k3_forward(f.model, f.source, &span, 1, f.c->layers, false, rest, &err), "%s", err.text);
        cr_expect(!memcmp(rest, whole + cut * V, (n - cut) * V * sizeof *rest),
                  "%s: other logits after a stop at %zu", model, cut);
        k3_state_free(other);
    }
    free(whole);
    free(rest);
    fixture_close(&f);
    remove_dir();
}

Test(state_file, resume_odd)
{
    check_resume("odd", 1);
}

Test(state_file, resume_trained)
{
    check_resume("tiny", 5);
}

/* Some of the layers, as k3-layer keeps them: the others are not touched. */
Test(state_file, some_layers)
{
    struct fixture f;
    k3_err err = {0};
    k3_state *other;
    k3_state_file *file;
    uint32_t ids[] = {5, 6, 7};
    make_dir();
    fixture_open(&f, "odd", NULL, 1, 16, TILE);
    feed_and_save(&f, ids, 3);
    k3_fingerprint model = k3_index_fingerprint(f.index);
    cr_assert(!k3_state_save(f.state, 2, model, NULL, 0, path, &err), "%s", err.text);
    cr_assert(!k3_state_open(&file, path, &err), "%s", err.text);
    cr_expect(k3_state_describe(file)->first == 2 && k3_state_describe(file)->layers == 5 &&
              k3_state_describe(file)->ids == 0);
    cr_assert(!k3_state_new(&other, f.c, 7, 3, &err));
    cr_expect_eq(k3_state_load(other, 0, model, file, &err), K3_EDATA);
    cr_expect(strstr(err.text, "layers 2 to 6, not of layers 0 to 6"), "%s", err.text);
    cr_expect_eq(k3_state_load(other, 3, model, file, &err), K3_EDATA);
    cr_expect_eq(k3_state_load(other, 2, model, file, &err), 0, "%s", err.text);
    k3_state_free(other);
    cr_assert(!k3_state_new(&other, f.c, 6, 3, &err));
    cr_expect_eq(k3_state_load(other, 2, model, file, &err), K3_EDATA);
    k3_state_free(other);
    k3_state_close(file);
    fixture_close(&f);
    remove_dir();
}

/* A state whose KDA part is in a scratch file writes the same bytes, and goes on from them. */
Test(state_file, spilled)
{
    struct fixture f;
    k3_err err = {0};
    k3_state *spilled;
    uint32_t ids[] = {9, 8, 7, 6, 5, 4, 3};
    enum { N = sizeof ids / sizeof *ids };
    char *want, *got;
    size_t want_size, got_size;
    make_dir();
    fixture_open(&f, "odd", NULL, 2, 16, TILE);
    k3_fingerprint model = k3_index_fingerprint(f.index);
    if (k3_state_new_spilled(&spilled, f.c, f.c->layers, N, ".", &err) == K3_EUSAGE)
        cr_skip_test("no disk here: %s", err.text);
    cr_assert(!err.status, "%s", err.text);
    float *row = malloc(f.c->vocab * sizeof *row), *last = malloc(N * f.c->vocab * sizeof *last);
    for (int round = 0; round < 2; round++) { /* saved twice: writing must not disturb the turn of the layers */
        size_t n = 2 + 3 * (size_t)round, from = round ? 2 : 0;
        k3_span span = {spilled, ids + from, n - from, 1};
        cr_assert(!k3_forward(f.model, f.source, &span, 1, f.c->layers, true, row, &err), "%s", err.text);
        feed_and_save(&f, ids, n);
        cr_assert(!k3_read_file(path, 1 << 20, &want, &want_size, &err));
        cr_assert(!k3_state_save(spilled, 0, model, ids, n, path, &err), "%s", err.text);
        cr_assert(!k3_read_file(path, 1 << 20, &got, &got_size, &err));
        cr_expect(want_size == got_size && !memcmp(want, got, got_size), "other bytes in round %d", round);
        free(want);
        free(got);
    }
    k3_state_free(spilled);
    cr_assert(!k3_state_new_spilled(&spilled, f.c, f.c->layers, N, ".", &err), "%s", err.text);
    cr_assert(!load(&f, spilled, &err), "%s", err.text);
    k3_span span = {spilled, ids + 5, 2, 1};
    cr_assert(!k3_forward(f.model, f.source, &span, 1, f.c->layers, true, row, &err), "%s", err.text);
    feed_all(&f, ids, N, N, last);
    cr_expect(!memcmp(row, last + (N - 1) * f.c->vocab, f.c->vocab * sizeof *row),
              "a spilled state goes on differently");
    free(row);
    free(last);
    k3_state_free(spilled);
    fixture_close(&f);
    remove_dir();
}

/* ---- refusing ---- */

static void flip(int fd, size_t at, unsigned char bits)
{
    unsigned char b;
    cr_assert(pread(fd, &b, 1, (off_t)at) == 1);
    b ^= bits;
    cr_assert(pwrite(fd, &b, 1, (off_t)at) == 1);
}

/* Offsets of the sections' heads, then of the end mark; returns how many. */
static size_t borders(const struct fixture *f, size_t position, size_t nids, size_t *at)
{
    size_t n = 0, end = HEAD;
    for (size_t i = 0; i <= f->c->layers; i++) {
        size_t payload = 4 * nids;
        if (i && f->c->is_mla[i - 1])
            payload = 4 * position * (f->c->kv_lora_rank + f->c->qk_rope);
        else if (i)
            payload = 4 * f->c->kda_width * (f->c->kda_head_dim + 3 * (f->c->conv_kernel - 1));
        at[n++] = end;
        end += SECTION + payload + SUM;
    }
    at[n++] = end;
    cr_assert_eq(file_size(), end + MARK);
    return n;
}

struct target {
    struct fixture f;
    k3_state *into;
    size_t at[16], n; /* borders */
};

static void target_open(struct target *t)
{
    k3_err err = {0};
    uint32_t ids[] = {1, 2, 3, 4};
    make_dir();
    fixture_open(&t->f, "odd", NULL, 1, 16, TILE);
    feed_and_save(&t->f, ids, 4);
    t->n = borders(&t->f, 4, 4, t->at);
    cr_assert(!k3_state_new(&t->into, t->f.c, t->f.c->layers, 4, &err));
}

static void target_close(struct target *t)
{
    k3_err err = {0};
    cr_expect(!load(&t->f, t->into, &err), "the whole file is refused: %s", err.text);
    k3_state_free(t->into);
    fixture_close(&t->f);
    remove_dir();
}

/* Each of these bytes changed, alone, in one bit and in all. */
static void flip_all(struct target *t, int fd, size_t from, size_t to, size_t step)
{
    for (size_t i = from; i < to; i += step)
        for (int all = 0; all < 2; all++) {
            k3_err err = {0};
            unsigned char bits = all ? 0xFF : (unsigned char)(1 << i % 8);
            flip(fd, i, bits);
            int status = load(&t->f, t->into, &err);
            cr_expect(status == K3_EDATA && strstr(err.text, path), "byte %zu changed by %02x: status %d, %s", i,
                      bits, status, err.text);
            flip(fd, i, bits);
        }
}

Test(state_file, every_byte_of_the_heads)
{
    struct target t;
    target_open(&t);
    int fd = open(path, O_RDWR);
    flip_all(&t, fd, 0, HEAD, 1);
    for (size_t i = 0; i + 1 < t.n; i++) {
        flip_all(&t, fd, t.at[i], t.at[i] + SECTION, 1);
        flip_all(&t, fd, t.at[i + 1] - SUM, t.at[i + 1], 1);
    }
    flip_all(&t, fd, t.at[t.n - 1], t.at[t.n - 1] + MARK, 1);
    close(fd);
    target_close(&t);
}

Test(state_file, payload_bytes)
{
    struct target t;
    target_open(&t);
    int fd = open(path, O_RDWR);
    flip_all(&t, fd, HEAD + SECTION, HEAD + SECTION + 16, 1); /* the ids */
    flip_all(&t, fd, HEAD + SECTION + 16, t.at[t.n - 1], 211);
    for (size_t i = 1; i + 1 < t.n; i++) {
        flip_all(&t, fd, t.at[i] + SECTION, t.at[i] + SECTION + 1, 1);
        flip_all(&t, fd, t.at[i + 1] - SUM - 1, t.at[i + 1] - SUM, 1);
    }
    close(fd);
    target_close(&t);
}

Test(state_file, cut_and_extended)
{
    struct target t;
    char *all;
    size_t size;
    k3_err err = {0};
    target_open(&t);
    cr_assert(!k3_read_file(path, 1 << 20, &all, &size, &err));
    for (size_t i = 0, cut = 0; cut < size; i++) {
        /* around every border, then at many points */
        cut = i < 3 * t.n ? t.at[i / 3] + i % 3 - 1 : i < 3 * t.n + HEAD ? i - 3 * t.n : (i - 3 * t.n - HEAD) * 307;
        if (cut >= size)
            break;
        FILE *to = fopen(path, "wb");
        fwrite(all, 1, cut, to);
        fclose(to);
        int status = load(&t.f, t.into, &err);
        cr_expect_eq(status, K3_EDATA, "cut at %zu of %zu: status %d", cut, size, status);
    }
    FILE *to = fopen(path, "wb");
    fwrite(all, 1, size, to);
    fputc(0, to);
    fclose(to);
    cr_expect_eq(load(&t.f, t.into, &err), K3_EDATA);
    to = fopen(path, "wb");
    fwrite(all, 1, size, to);
    fclose(to);
    free(all);
    target_close(&t);
}

/* A head that lies, with the right checksum: nothing it says may be believed. */
Test(state_file, forged_heads)
{
    static const struct {
        size_t at, width;
        uint64_t value;
    } lies[] = {
        {8, 4, 2},           {12, 4, 104},        {16, 8, 0},          {16, 8, UINT64_MAX}, {40, 4, 1},
        {40, 4, 4095},       {40, 4, UINT32_MAX}, {44, 4, 0},          {44, 4, 6},          {44, 4, 8},
        {44, 4, 4096},       {44, 4, UINT32_MAX}, {48, 8, 3},          {48, 8, 5},          {48, 8, 1ull << 62},
        {48, 8, UINT64_MAX}, {56, 8, 0},          {56, 8, 3},          {56, 8, 5},          {56, 8, 1ull << 62},
        {56, 8, UINT64_MAX}, {64, 4, 0},          {64, 4, UINT32_MAX}, {68, 4, 0},          {68, 4, UINT32_MAX},
        {72, 4, 0},          {72, 4, UINT32_MAX}, {76, 4, 0},          {76, 4, UINT32_MAX}, {80, 4, 0},
        {80, 4, UINT32_MAX},
    };
    struct target t;
    unsigned char was[HEAD], head[HEAD];
    target_open(&t);
    int fd = open(path, O_RDWR);
    cr_assert(pread(fd, was, HEAD, 0) == HEAD);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        k3_err err = {0};
        memcpy(head, was, HEAD);
        memcpy(head + lies[i].at, &lies[i].value, lies[i].width);
        uint64_t sum = XXH3_64bits(head, HEAD - 8);
        memcpy(head + HEAD - 8, &sum, 8);
        cr_assert(pwrite(fd, head, HEAD, 0) == HEAD);
        cr_expect_eq(load(&t.f, t.into, &err), K3_EDATA, "lie %zu was believed", i);
    }
    cr_assert(pwrite(fd, was, HEAD, 0) == HEAD);
    close(fd);
    target_close(&t);
}

/* The sizes agree among themselves and with the file, but not with the model: heads and head_dim such that
 * a KDA layer has as many bytes. */
Test(state_file, other_sizes_of_the_same_length)
{
    struct target t;
    k3_err err = {0};
    unsigned char head[HEAD];
    uint32_t kda[2], latent[2];
    target_open(&t);
    int fd = open(path, O_RDWR);
    cr_assert(pread(fd, head, HEAD, 0) == HEAD);
    memcpy(kda, head + 64, sizeof kda);
    memcpy(latent, head + 76, sizeof latent);
    cr_assert(kda[0] == t.f.c->kda_heads && kda[1] == t.f.c->kda_head_dim && latent[0] == t.f.c->kv_lora_rank);
    latent[0]--, latent[1]++;
    memcpy(head + 76, latent, sizeof latent);
    uint64_t sum = XXH3_64bits(head, HEAD - 8);
    memcpy(head + HEAD - 8, &sum, 8);
    cr_assert(pwrite(fd, head, HEAD, 0) == HEAD);
    cr_expect_eq(load(&t.f, t.into, &err), K3_EDATA);
    cr_expect(strstr(err.text, "sizes"), "%s", err.text);
    latent[0]++, latent[1]--;
    memcpy(head + 76, latent, sizeof latent);
    sum = XXH3_64bits(head, HEAD - 8);
    memcpy(head + HEAD - 8, &sum, 8);
    cr_assert(pwrite(fd, head, HEAD, 0) == HEAD);
    close(fd);
    target_close(&t);
}

Test(state_file, foreign_and_too_long)
{
    struct target t;
    struct fixture tiny;
    k3_err err = {0};
    k3_state *small, *other;
    k3_state_file *file;
    uint32_t id;
    target_open(&t);
    fixture_open(&tiny, "tiny", NULL, 1, 16, TILE);
    cr_assert(!k3_state_open(&file, path, &err));
    cr_assert(!k3_state_new(&other, tiny.c, tiny.c->layers, 16, &err));
    cr_expect_eq(k3_state_load(other, 0, k3_index_fingerprint(tiny.index), file, &err), K3_EDATA);
    cr_expect(strstr(err.text, "another model"), "%s", err.text);
    cr_assert(!k3_state_new(&small, t.f.c, t.f.c->layers, 3, &err));
    cr_expect_eq(k3_state_load(small, 0, k3_index_fingerprint(t.f.index), file, &err), K3_EDATA);
    cr_expect(strstr(err.text, "has seen 4 tokens, there is room for 3"), "%s", err.text);
    cr_expect_eq(k3_state_position(small), 0);
    k3_state_close(file);
    /* ids */
    uint32_t bad[] = {1, 2, 3, (uint32_t)t.f.c->vocab};
    k3_fingerprint model = k3_index_fingerprint(t.f.index);
    cr_expect_eq(k3_state_save(t.f.state, 0, model, bad, 3, path, &err), K3_EUSAGE);
    cr_assert(!k3_state_save(t.f.state, 0, model, bad, 4, path, &err));
    cr_expect_eq(load(&t.f, t.into, &err), K3_EDATA);
    cr_expect(strstr(err.text, "id 333 is outside"), "%s", err.text);
    cr_assert(!k3_state_save(t.f.state, 0, model, NULL, 0, path, &err));
    cr_assert(!k3_state_open(&file, path, &err) && !k3_state_ids(file, 1, &id, &err));
    k3_state_close(file);
    k3_state_free(small);
    k3_state_free(other);
    fixture_close(&tiny);
    target_close(&t);
}

/* A save that fails half-way leaves the older file, and nothing else. */
Test(state_file, failed_save)
{
    struct target t;
    k3_err err = {0};
    char missing[FOLDER_MAX + 8];
    target_open(&t);
    k3_fingerprint model = k3_index_fingerprint(t.f.index);
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit was;
    getrlimit(RLIMIT_FSIZE, &was);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){4096, was.rlim_max});
    int status = k3_state_save(t.f.state, 0, model, NULL, 0, path, &err);
    setrlimit(RLIMIT_FSIZE, &was);
    cr_expect_eq(status, K3_ESYS);
    cr_expect(strstr(err.text, path), "%s", err.text);
    snprintf(missing, sizeof missing, "%s/no/s", dir);
    cr_expect_eq(k3_state_save(t.f.state, 0, model, NULL, 0, missing, &err), K3_ESYS);
    cr_expect_eq(k3_state_save(t.f.state, 0, model, NULL, 0, "/dev/full", &err), K3_ESYS);
    k3_state_file *file;
    cr_expect_eq(k3_state_open(&file, missing, &err), K3_ESYS);
    cr_expect_eq(k3_state_open(&file, dir, &err), K3_ESYS);
    cr_expect_eq(file, NULL);
    target_close(&t); /* still loads, with its ids, and the folder is empty after it */
}

/* Opening a FIFO waits for its writer, before its kind can be seen. */
Test(state_file, a_fifo_is_refused_without_waiting, .init = make_dir, .fini = remove_dir, .timeout = 60)
{
    k3_state_file *file;
    k3_err err = {0};
    cr_assert_eq(mkfifo(path, 0666), 0);
    cr_expect_eq(k3_state_open(&file, path, &err), K3_ESYS);
    cr_expect(strstr(err.text, "not a regular file") != NULL, "%s", err.text);
}
