/* SPDX-License-Identifier: Apache-2.0 */
/* Packing that is killed, fails or finds things changed: the target appears
 * whole or not at all, and a later run ends with the same bytes. */
#define _GNU_SOURCE
#include "faults.h"
#include "trunk_help.h"

#include <errno.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

enum { TILE = 16 << 20 };

static k3_index *ix;
static char target[256], part[256], good[256];
static char *want;
static size_t size;
static k3_trunk_facts facts;

/* The odd model in a folder of its own, and what packing it gives. */
static void start(void)
{
    k3_pack_state done;
    k3_trunk *t;
    k3_verbosity = -1;
    folder_odd();
    ix = index_of(folder);
    strcpy(target, in_folder("k3.trunk"));
    strcpy(part, in_folder("k3.trunk.part"));
    strcpy(good, in_folder("good"));
    pack_well(ix, good, TILE, 2, &done);
    want = load_file(good, &size);
    cr_assert_eq(k3_trunk_open(&t, good, ix, NULL), 0);
    k3_trunk_describe(t, &facts);
    k3_trunk_close(t);
}

static void stop(void)
{
    free(want);
    k3_index_close(ix);
    folder_remove();
}

/* The target is there, whole, and nothing else is. */
static void finished(void)
{
    size_t n;
    char *got = load_file(target, &n);
    cr_assert(n == size && !memcmp(got, want, n), "another run, other bytes");
    cr_assert(!exists(part));
    free(got);
}

/* The target is not there, and what is left does not pass for a trunk unless it is a whole one. */
static void unfinished(void)
{
    k3_trunk *t;
    cr_assert(!exists(target), "a target appeared before it was whole");
    if (exists(part) && !k3_trunk_open(&t, part, ix, NULL)) {
        size_t n;
        char *got = load_file(part, &n);
        cr_assert(n == size && !memcmp(got, want, n), "a part that looks finished and is not");
        free(got);
        k3_trunk_close(t);
    }
}

static void finish(k3_pack_state *done)
{
    pack_well(ix, target, TILE, 3, done);
    finished();
    unlink(target);
}

/* ---- kill -9 ---------------------------------------------------------------------- */

/* Packs in a child that kills itself after that many calls; true if it lived to the end. */
static bool pack_and_die(unsigned calls, long after, int depth)
{
    int status;
    pid_t child = fork();
    if (!child) {
        k3_pack_state done;
        faults_arm(calls, after, 0);
        _exit(pack(ix, target, TILE, depth, &done, NULL));
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
    return !WIFSIGNALED(status);
}

/* Killed at one call or another, the last ones all; the next run finishes and takes over what there was. */
Test(trunk_pack, killed_at_any_call)
{
    const unsigned all = FAULT_PWRITE | FAULT_FSYNC | FAULT_RENAME;
    start();
    /* Two writes a tile, first and last head, table, end mark, three flushes, the rename. */
    long calls = 2 * (long)facts.tiles + 8;
    for (long n = 0; n < calls; n += n < 6 || n >= calls - 12 ? 1 : 23) {
        k3_pack_state done = {0};
        if (pack_and_die(all, n, 1)) {
            finished();
            cr_assert_geq(n, calls - 1, "there are fewer calls than were tested: %ld", n);
            unlink(target);
            continue;
        }
        if (exists(target)) { /* killed between rename and the flush of the folder */
            finished();
            unlink(target);
            continue;
        }
        unfinished();
        finish(&done);
        cr_assert_geq(done.kept + 2, (uint64_t)(n / 2 < (long)facts.tiles ? n / 2 : (long)facts.tiles), "killed at %ld, %lu tiles kept", n,
                      (unsigned long)done.kept);
    }
    stop();
}

/* Killed again and again, with several tiles in flight, until it gets through. */
Test(trunk_pack, killed_until_done)
{
    start();
    int runs = 0;
    while (!pack_and_die(FAULT_PWRITE, 5 + runs % 7, 1 + runs % 5)) {
        unfinished();
        cr_assert_lt(++runs, 200, "no progress");
    }
    cr_assert_gt(runs, 15, "it was hardly ever killed");
    finished();
    stop();
}

/* ---- failing calls --------------------------------------------------------------------- */

static void fail_at(unsigned call, long after, int error, const char *says)
{
    k3_pack_state done;
    k3_err err = {0};
    faults_arm(call, after, error);
    int status = pack(ix, target, TILE, 2, &done, &err);
    faults_off();
    cr_assert_eq(status, K3_ESYS, "call %ld: %s", after, err.text);
    cr_assert(strstr(err.text, says), "call %ld: no \"%s\" in: %s", after, says, err.text);
    unfinished();
    if (strstr(err.text, "are kept in"))
        cr_assert(exists(part) && done.tiles_done);
    else
        cr_assert(!exists(part), "something is left behind and not said: %s", err.text);
    if (exists(part))
        finish(&done);
}

Test(trunk_pack, disk_fills)
{
    start();
    for (long n = 0; n < 2 * (long)facts.tiles + 4; n += n < 4 || n > 2 * (long)facts.tiles ? 1 : 31)
        fail_at(FAULT_PWRITE, n, ENOSPC, "the file system is full");
    stop();
}

Test(trunk_pack, disk_fails)
{
    start();
    for (long n = 0; n < 2 * (long)facts.tiles; n += 61)
        fail_at(FAULT_PWRITE, n, EIO, "cannot write");
    fail_at(FAULT_FSYNC, 0, EIO, "k3.trunk.part");
    fail_at(FAULT_FSYNC, 1, EIO, "cannot flush");
    fail_at(FAULT_RENAME, 0, EACCES, "in place");
    stop();
}

Test(trunk_pack, shard_cannot_be_read)
{
    start();
    for (long n = 0; n < 60; n += 7) /* all but the last tiles' */
        fail_at(FAULT_PREAD, n, EIO, ".safetensors");
    stop();
}

/* Reads that give less than asked for are gone on with. */
Test(trunk_pack, short_reads)
{
    k3_pack_state done;
    start();
    faults_short_reads(4096);
    pack_well(ix, target, TILE, 2, &done);
    finished();
    unlink(target);
    faults_short_reads(1000); /* no direct read can go on from there */
    pack_well(ix, target, TILE, 1, &done);
    faults_off();
    finished();
    stop();
}

/* ---- taking up ------------------------------------------------------------------------------ */

/* A part with about half of the tiles. */
static void half(void)
{
    cr_assert(!pack_and_die(FAULT_PWRITE, (long)facts.tiles, 1));
}

static uint64_t tile_at(uint32_t i)
{
    k3_trunk *t;
    cr_assert_eq(k3_trunk_open(&t, good, ix, NULL), 0);
    uint64_t at = k3_trunk_offset(t, i);
    k3_trunk_close(t);
    return at;
}

Test(trunk_pack, takes_up)
{
    k3_pack_state done;
    start();
    half();
    finish(&done);
    cr_assert(done.kept + 1 >= facts.tiles / 2 && done.kept < facts.tiles, "%lu kept", (unsigned long)done.kept);
    cr_assert_lt(done.read, facts.trunk_bytes + facts.head_bytes);
    stop();
}

/* A tile on record whose bytes are others: a power cut kept the record and lost the data. */
Test(trunk_pack, does_not_believe_a_bad_tile)
{
    k3_pack_state done;
    start();
    half();
    finish(&done);
    uint64_t kept = done.kept;
    half();
    flip(part, tile_at(0));
    flip(part, tile_at(7) + 5);
    flip(part, 4096 + 3 * 32 + 9); /* the checksum on record of tile 3 */
    flip(part, 4096 + 4 * 32 + 2); /* and where tile 4 is said to be */
    finish(&done);
    cr_assert_eq(done.kept, kept - 4, "%lu kept", (unsigned long)done.kept);
    stop();
}

/* Junk where a tile that is not on record belongs, and where its zeros are to be holes. */
Test(trunk_pack, overwrites_junk)
{
    k3_extent at;
    k3_pack_state done;
    start();
    /* The head's matrix as zeros, so that its tile is a hole. */
    k3_index_tensor(ix, -1, K3_T_HEAD, &at);
    char *bytes = calloc(1, at.bytes);
    put_bytes(k3_index_shard_path(ix, at.shard), at.offset, bytes, at.bytes);
    k3_index_close(ix); /* the weights have changed */
    ix = index_of(folder);
    free(want);
    unlink(good);
    pack_well(ix, good, TILE, 2, &done);
    want = load_file(good, &size);
    half();
    memset(bytes, 'j', at.bytes);
    put_bytes(part, tile_at((uint32_t)facts.tiles - 1), bytes, at.bytes);
    put_bytes(part, tile_at((uint32_t)facts.tiles - 3), bytes, 1000);
    pack_well(ix, target, TILE, 2, &done);
    finished();
    cr_assert_leq(disk_bytes(target), disk_bytes(good) + 8192, "a hole of the first run is no hole after the second");
    free(bytes);
    stop();
}

static void begins_anew(const char *why)
{
    k3_pack_state done;
    k3_index_close(ix);
    ix = index_of(folder);
    pack_well(ix, target, TILE, 2, &done);
    cr_assert_eq(done.kept, 0, "%s", why);
    k3_trunk *t;
    k3_err err = {0};
    cr_assert_eq(k3_trunk_open(&t, target, ix, &err), 0, "%s: %s", why, err.text);
    k3_trunk_close(t);
    unlink(target);
}

Test(trunk_pack, begins_anew_when_things_changed)
{
    start();
    half();
    sh("touch -d 2001-01-01 \"$D\"/model-00003-*"); /* the same bytes, for all we know not */
    begins_anew("time of a shard");
    half();
    sh("cd \"$D\" && cp -p model-00001-of-000009.safetensors keep && printf x | dd of=model-00001-of-000009.safetensors"
       " bs=1 seek=20000 conv=notrunc status=none && mv keep other");
    begins_anew("content of a shard");
    half();
    flip(part, 100);
    begins_anew("damaged head");
    half();
    cr_assert_eq(truncate(part, 1000), 0);
    begins_anew("cut head");
    sh("echo hello > \"$D\"/k3.trunk.part");
    begins_anew("something else of that name");
    stop();
}

Test(trunk_pack, begins_anew_at_another_tile_size)
{
    k3_pack_state done;
    start();
    half();
    pack_well(ix, target, 65536, 2, &done);
    cr_assert_eq(done.kept, 0);
    k3_trunk *t;
    cr_assert_eq(k3_trunk_open(&t, target, ix, NULL), 0);
    cr_assert_eq(k3_trunk_tile_bytes(t), 65536);
    k3_trunk_close(t);
    stop();
}

/* A part cut short by a crash of the file system keeps what is left of it. */
Test(trunk_pack, takes_up_a_cut_part)
{
    k3_pack_state done;
    start();
    half();
    cr_assert_eq(truncate(part, (off_t)tile_at(9) + 1), 0);
    finish(&done);
    cr_assert(done.kept >= 8 && done.kept <= 9, "%lu kept", (unsigned long)done.kept);
    half();
    cr_assert_eq(truncate(part, 4096 + 5 * 32 + 7), 0); /* inside the table */
    finish(&done);
    cr_assert_eq(done.kept, 0);
    stop();
}

/* ---- around the target ------------------------------------------------------------------------ */

static void shard_changes(void *arg, const k3_pack_state *now)
{
    (void)arg, (void)now;
    sh("touch -d 2002-02-02 \"$D\"/model-00002-*");
}

Test(trunk_pack, shard_changes_meanwhile)
{
    k3_pack_opts o = {.tile_bytes = TILE, .threads = 1, .depth = 2, .progress = shard_changes};
    k3_pack_state done;
    k3_err err = {0};
    start();
    cr_assert_eq(k3_trunk_pack(ix, target, &o, &done, &err), K3_EDATA, "%s", err.text);
    cr_assert(strstr(err.text, "changed while it was packed"), "%s", err.text);
    cr_assert(!exists(target));
    begins_anew("tiles of before the change are kept");
    stop();
}

Test(trunk_pack, shard_was_cut)
{
    k3_pack_state done;
    k3_err err = {0};
    start();
    cr_assert_eq(truncate(in_folder("model-00004-of-000009.safetensors"), 4000), 0);
    cr_assert_eq(pack(ix, target, TILE, 2, &done, &err), K3_EDATA, "%s", err.text);
    cr_assert(strstr(err.text, "model-00004-of-000009.safetensors"), "%s", err.text);
    unfinished();
    stop();
}

/* The entries of A_log beyond the heads must be zero when they are read, not only when they were indexed. */
Test(trunk_pack, a_log_tail)
{
    k3_pack_state done;
    k3_err err = {0};
    k3_extent at;
    int layer = 0;
    start();
    const k3_config *c = k3_index_config(ix);
    while (c->is_mla[layer] || k3_index_stored_bytes(ix, layer, K3_T_A_LOG) == c->kda_heads * 4)
        cr_assert_lt(++layer, (int)c->layers, "no layer of the fixture has a tail");
    k3_index_tensor(ix, layer, K3_T_A_LOG, &at);
    put_bytes(k3_index_shard_path(ix, at.shard), at.offset + at.bytes, "\0\0\200\77", 4);
    cr_assert_eq(pack(ix, target, TILE, 2, &done, &err), K3_EDATA, "%s", err.text);
    cr_assert(strstr(err.text, "A_log"), "%s", err.text);
    unfinished();
    stop();
}

/* Checksums of all tensors that are packed; of the experts only the very last, so that the file has its length. */
static void write_sums(void)
{
    const k3_config *c = k3_index_config(ix);
    k3_sums_writer *w;
    k3_err err = {0};
    cr_assert_eq(k3_sums_create(&w, ix, NULL, &err), 0, "%s", err.text);
    for (int l = -1; l < (int)c->layers; l++)
        for (int id = 0; id < K3_TENSORS; id++) {
            k3_tensor t;
            k3_extent at;
            if (!k3_schema_tensor(c, l, (k3_tensor_id)id, &t) || !k3_index_tensor(ix, l, (k3_tensor_id)id, &at))
                continue;
            char *data = malloc(at.bytes);
            int fd = open(k3_index_shard_path(ix, at.shard), O_RDONLY);
            cr_assert_eq(k3_pread_full(fd, "shard", data, at.bytes, at.offset, &err), 0, "%s", err.text);
            cr_assert_eq(k3_sums_put_tensor(w, l, (k3_tensor_id)id, 0, t.rows, data, &err), 0, "%s", err.text);
            close(fd);
            free(data);
        }
    char *none = calloc(1, k3_expert_bytes(c));
    cr_assert_eq(k3_sums_put_part(w, (int)c->layers - 1, c->experts - 1, K3_PARTS - 1, none, &err), 0, "%s", err.text);
    free(none);
    cr_assert_eq(k3_sums_commit(&w, &err), 0, "%s", err.text);
}

/* k3.sums sees what size and header do not. */
Test(trunk_pack, checksums_of_the_shards)
{
    k3_pack_state done;
    k3_err err = {0};
    k3_extent at;
    start();
    write_sums();
    pack_well(ix, target, TILE, 2, &done);
    finished();
    unlink(target);
    k3_index_tensor(ix, 5, K3_T_LATENT_UP, &at);
    flip(k3_index_shard_path(ix, at.shard), at.offset + at.bytes - 1);
    cr_assert_eq(pack(ix, target, TILE, 2, &done, &err), K3_EDATA, "%s", err.text);
    cr_assert(strstr(err.text, "layers.5.block_sparse_moe.routed_expert_up_proj.weight") && strstr(err.text, "checksum"), "%s",
              err.text);
    unfinished();
    stop();
}

Test(trunk_pack, two_at_once)
{
    k3_pack_state done;
    k3_err err = {0};
    start();
    half();
    int fd = open(part, O_RDWR);
    cr_assert_eq(flock(fd, LOCK_EX), 0);
    cr_assert_eq(pack(ix, target, TILE, 2, &done, &err), K3_ESYS);
    cr_assert(strstr(err.text, "another process"), "%s", err.text);
    cr_assert(exists(part), "the other process' file was removed");
    close(fd);
    finish(&done);
    cr_assert_gt(done.kept, 0);
    stop();
}

Test(trunk_pack, replaces_and_follows)
{
    k3_pack_state done;
    struct stat st;
    start();
    sh("mkdir \"$D\"/far && echo old > \"$D\"/far/t && ln -s far/t \"$D\"/k3.trunk");
    pack_well(ix, target, TILE, 2, &done);
    cr_assert(!lstat(target, &st) && S_ISLNK(st.st_mode), "the link is gone");
    finished();
    unlink(target);
    sh("ln -s nowhere/t \"$D\"/k3.trunk");
    cr_assert_eq(pack(ix, target, TILE, 2, &done, NULL), K3_ESYS);
    unlink(target);
    sh("mkdir \"$D\"/k3.trunk");
    cr_assert_eq(pack(ix, target, TILE, 2, &done, NULL), K3_ESYS);
    cr_assert(!exists(part));
    cr_assert_eq(pack(ix, "/dev/null", TILE, 2, &done, NULL), K3_ESYS);
    cr_assert_eq(pack(ix, in_folder("none/t"), TILE, 2, &done, NULL), K3_ESYS);
    stop();
}

Test(trunk_pack, interrupted)
{
    k3_pack_state done;
    k3_err err = {0};
    start();
    half();
    k3_interrupted = SIGINT;
    cr_assert_eq(pack(ix, target, TILE, 2, &done, &err), K3_ESYS);
    k3_interrupted = 0;
    cr_assert(strstr(err.text, "interrupted") && strstr(err.text, "are kept"), "%s", err.text);
    unfinished();
    finish(&done);
    cr_assert_gt(done.kept, 0);
    stop();
}
