/* SPDX-License-Identifier: Apache-2.0 */
/* k3.trunk: what is in it is what is in the shards, and nothing else passes for it. */
#define _GNU_SOURCE
#include "trunk_help.h"

#include <xxhash.h>

static void start(void)
{
    k3_verbosity = -1;
    folder_make();
}

/* ---- content ------------------------------------------------------------------ */

/* Every piece of the order against the shards, padding against zero; file size against the sum of all. */
static void compare(const k3_index *ix, const char *path, uint64_t tile_bytes)
{
    const k3_config *c = k3_index_config(ix);
    k3_order *o;
    k3_trunk *t;
    k3_err err = {0};
    size_t size;
    uint64_t weights = 0, end = 0;
    cr_assert_eq(k3_trunk_open(&t, path, ix, &err), 0, "%s", err.text);
    cr_assert_eq(k3_order_new(&o, c, 0, c->layers, true, tile_bytes, &err), 0, "%s", err.text);
    cr_assert_eq(k3_trunk_tiles(t), o->ntiles);
    cr_assert_eq(k3_trunk_tile_bytes(t), tile_bytes);
    char *file = load_file(path, &size);
    for (uint32_t i = 0; i < o->ntiles; i++) {
        const k3_tile *tile = &o->tiles[i];
        uint64_t at = k3_trunk_offset(t, i), used = 0;
        cr_assert_eq(at % 4096, 0);
        cr_assert(at >= end, "tile %u begins inside the one before", i);
        cr_assert_eq(k3_trunk_sum(t, i), XXH3_64bits(file + at, tile->bytes), "tile %u", i);
        for (uint32_t j = 0; j < tile->npieces; j++) {
            const k3_piece *p = &o->pieces[tile->first + j];
            k3_tensor s;
            k3_extent from;
            cr_assert(k3_schema_tensor(c, p->layer, (k3_tensor_id)p->tensor, &s));
            cr_assert(k3_index_tensor(ix, p->layer, (k3_tensor_id)p->tensor, &from));
            uint64_t row = s.bytes / s.rows, bytes = p->rows * row;
            char *want = malloc(bytes);
            int fd = open(k3_index_shard_path(ix, from.shard), O_RDONLY);
            cr_assert_eq(pread(fd, want, bytes, (off_t)(from.offset + p->row0 * row)), (ssize_t)bytes);
            close(fd);
            cr_assert_eq(memcmp(file + at + p->offset, want, bytes), 0, "layer %d tensor %d row %u", p->layer, p->tensor, p->row0);
            for (; used < p->offset; used++)
                cr_assert_eq(file[at + used], 0, "padding of tile %u", i);
            used += bytes;
            weights += bytes;
            free(want);
        }
        cr_assert_eq(used, tile->bytes);
        end = at + used;
    }
    cr_assert_eq(weights, o->trunk_bytes + o->head_bytes);
    k3_trunk_facts f;
    k3_trunk_describe(t, &f);
    cr_assert_eq(f.file_bytes, size);
    cr_assert_eq(f.trunk_bytes + f.head_bytes, weights);
    free(file);
    k3_order_free(o);
    k3_trunk_close(t);
}

static void content(const char *dir, uint64_t tile_bytes, int depth)
{
    start();
    k3_index *ix = index_of(dir);
    k3_pack_state done;
    uint64_t tails = 0; /* A_log entries that are read, checked and not kept */
    pack_well(ix, in_folder("t"), tile_bytes, depth, &done);
    for (uint64_t l = 0; l < k3_index_config(ix)->layers; l++)
        if (!k3_index_config(ix)->is_mla[l])
            tails += k3_index_stored_bytes(ix, (int)l, K3_T_A_LOG) - 4 * k3_index_config(ix)->kda_heads;
    k3_trunk *t;
    k3_trunk_facts f;
    cr_assert_eq(k3_trunk_open(&t, in_folder("t"), NULL, NULL), 0);
    k3_trunk_describe(t, &f);
    k3_trunk_close(t);
    cr_assert_eq(done.read, f.trunk_bytes + f.head_bytes + tails, "%lu read", (unsigned long)done.read);
    cr_assert_eq(done.tiles_done, f.tiles);
    compare(ix, in_folder("t"), tile_bytes);
    cr_assert(!exists(in_folder("t.part")));
    k3_index_close(ix);
    folder_remove();
}

Test(trunk_file, odd_4Ki)
{
    content(ODD, 4096, 3);
}
Test(trunk_file, odd_64Ki)
{
    content(ODD, 64 << 10, 1);
}
Test(trunk_file, odd_16Mi)
{
    content(ODD, 16 << 20, 8);
}
/* A size that no row, group or block divides. */
Test(trunk_file, odd_prime)
{
    content(ODD, 65537, 2);
}
Test(trunk_file, tiny_64Ki)
{
    content(TINY, 64 << 10, 8);
}
Test(trunk_file, tiny_1Mi)
{
    content(TINY, 1 << 20, 16);
}
Test(trunk_file, tiny_16Mi)
{
    content(TINY, 16 << 20, 2);
}

/* Depth, threads and direct access change nothing in the file. */
Test(trunk_file, same_bytes_whoever_packs)
{
    start();
    k3_index *ix = index_of(TINY);
    k3_pack_opts plain = {.tile_bytes = 65536, .threads = 1, .depth = 5, .plain = true};
    k3_pack_state done;
    size_t n, m;
    pack_well(ix, in_folder("a"), 65536, 1, &done);
    char *a = load_file(in_folder("a"), &n);
    cr_assert_eq(k3_trunk_pack(ix, in_folder("b"), &plain, &done, NULL), 0);
    char *b = load_file(in_folder("b"), &m);
    cr_assert(n == m && !memcmp(a, b, n));
    free(a);
    free(b);
    k3_index_close(ix);
    folder_remove();
}

/* Every field where k3-trunk(5) says it is, worked out anew from what the page says. */
Test(trunk_file, layout)
{
    start();
    k3_index *ix = index_of(ODD);
    const k3_config *c = k3_index_config(ix);
    k3_pack_state done;
    k3_order *o;
    size_t size;
    const uint64_t tile_bytes = 20000;
    pack_well(ix, in_folder("t"), tile_bytes, 2, &done);
    char *file = load_file(in_folder("t"), &size);
    const uint64_t *h = (const uint64_t *)file;
    const uint32_t *h32 = (const uint32_t *)file;
    cr_assert_eq(k3_order_new(&o, c, 0, c->layers, true, tile_bytes, NULL), 0);

    uint64_t state = 0;
    for (uint32_t i = 0; i < k3_index_shards(ix); i++) {
        struct stat st;
        cr_assert_eq(stat(k3_index_shard_path(ix, i), &st), 0);
        uint64_t four[] = {state, (uint64_t)st.st_size, (uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec};
        state = XXH3_64bits(four, 32);
    }
    char *all = malloc(o->npieces * 256), *end = all;
    for (uint32_t i = 0; i < o->npieces; i++) {
        const k3_piece *p = &o->pieces[i];
        const uint32_t four[] = {p->row0, p->rows, p->offset, p->bytes};
        end += strlen(k3_tensor_name(end, p->layer, (k3_tensor_id)p->tensor)) + 1;
        memcpy(end, four, 16);
        end += 16;
    }
    uint64_t tiles = o->ntiles, first = (4096 + tiles * 32 + 65535) / 65536 * 65536;
    k3_fingerprint f = k3_index_fingerprint(ix);
    cr_assert_eq(memcmp(file, "K3TRUNK", 8), 0);
    cr_assert(h32[2] == 1 && h32[3] == 4096);
    const uint64_t want[] = {size, f.lo, f.hi, state, XXH3_64bits(all, (size_t)(end - all)), tile_bytes, tiles, o->head, o->npieces,
                             o->trunk_bytes, o->head_bytes, c->layers, c->hidden, c->vocab, 4096, first - 4096,
                             XXH3_64bits(file + 4096, first - 4096), first};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        cr_assert_eq(h[2 + i], want[i], "header byte %zu", 16 + 8 * i);
    for (size_t i = 20; i < 511; i++)
        cr_assert_eq(h[i], 0);
    cr_assert_eq(h[511], XXH3_64bits(file, 4088));

    uint64_t at = first;
    for (uint64_t i = 0; i < tiles; i++) {
        const char *e = file + 4096 + 32 * i;
        const k3_tile *t = &o->tiles[i];
        const k3_piece *p = &o->pieces[t->first];
        const uint64_t *e64 = (const uint64_t *)e;
        const uint32_t *e32 = (const uint32_t *)e;
        cr_assert(e64[0] == at && e64[1] == XXH3_64bits(file + at, t->bytes), "tile %lu", (unsigned long)i);
        cr_assert(e32[4] == t->bytes && e32[5] == t->bytes && e32[6] == p->row0, "tile %lu", (unsigned long)i);
        cr_assert(*(const int16_t *)(e + 28) == p->layer && (uint8_t)e[30] == p->tensor && e[31] == 1, "tile %lu", (unsigned long)i);
        at += (t->bytes + 4095u) / 4096 * 4096;
    }
    cr_assert_eq(at + 32, size);
    cr_assert_eq(memcmp(file + at, "K3TRUNK-END\n\0\0\0", 16), 0);
    cr_assert(h[at / 8 + 2] == size && h[at / 8 + 3] == h[511]);
    free(all);
    free(file);
    k3_order_free(o);
    k3_index_close(ix);
    folder_remove();
}

/* ---- holes ------------------------------------------------------------------------ */

/* The head's matrix as zeros: written ones are read, holes are not; both become holes. */
static void zero_head(bool punched)
{
    start();
    sh("cp " TINY "/*.json " TINY "/*.safetensors \"$D\"");
    k3_index *ix = index_of(folder);
    k3_extent at;
    k3_pack_state done;
    k3_index_tensor(ix, -1, K3_T_HEAD, &at);
    char *zeros = calloc(1, at.bytes);
    char *shard = strdup(k3_index_shard_path(ix, at.shard));
    put_bytes(shard, at.offset, zeros, at.bytes);
    /* Its last byte is not zero, so the last block must be there and the file is not cut short. */
    put_bytes(shard, at.offset + at.bytes - 1, "x", 1);
    int fd = open(shard, O_RDWR);
    if (punched && fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at.offset, (off_t)at.bytes - 1))
        cr_skip_test("no holes on this file system");
    close(fd);
    k3_index_close(ix); /* the weights have changed */
    ix = index_of(folder);
    pack_well(ix, in_folder("t"), 65536, 4, &done);
    compare(ix, in_folder("t"), 65536);
    cr_assert(done.holes >= at.bytes - 65536 && done.holes < at.bytes + 65536, "%lu bytes of holes", (unsigned long)done.holes);
    k3_trunk *t;
    k3_trunk_facts f;
    k3_trunk_open(&t, in_folder("t"), ix, NULL);
    k3_trunk_describe(t, &f);
    k3_trunk_close(t);
    cr_assert(f.disk_bytes + at.bytes - 65536 <= f.file_bytes, "%lu of %lu on disk", (unsigned long)f.disk_bytes,
              (unsigned long)f.file_bytes);
    cr_assert_eq(done.read >= f.trunk_bytes + f.head_bytes, !punched, "a hole is read, or data is not");
    free(zeros);
    free(shard);
    k3_index_close(ix);
    folder_remove();
}

Test(trunk_file, zeros_become_holes)
{
    zero_head(false);
}
Test(trunk_file, holes_stay_holes)
{
    zero_head(true);
}

/* ---- damage -------------------------------------------------------------------------- */

static k3_index *ix;
static char path[512];
static k3_trunk_facts facts;
static k3_trunk *whole;

static void start_damage(void)
{
    k3_pack_state done;
    start();
    ix = index_of(ODD);
    snprintf(path, sizeof path, "%s", in_folder("t"));
    pack_well(ix, path, 65536, 2, &done);
    cr_assert_eq(k3_trunk_open(&whole, path, ix, NULL), 0);
    k3_trunk_describe(whole, &facts);
}

static void end_damage(void)
{
    k3_trunk_close(whole);
    k3_index_close(ix);
    folder_remove();
}

/* Opening fails as bad data, with the word in its message. */
static void refused(const char *word, uint64_t at)
{
    k3_trunk *t;
    k3_err err = {0};
    cr_assert_eq(k3_trunk_open(&t, path, ix, &err), K3_EDATA, "byte %lu: %s", (unsigned long)at, err.text);
    cr_assert(strstr(err.text, word), "byte %lu: no \"%s\" in: %s", (unsigned long)at, word, err.text);
    cr_assert(strstr(err.text, path), "no file name in: %s", err.text);
}

/* Cut at every byte of header, table and end mark, and around every tile's begin and end. */
Test(trunk_file, cut)
{
    start_damage();
    for (uint64_t n = facts.file_bytes; n-- > facts.file_bytes - 32;) {
        cr_assert_eq(truncate(path, (off_t)n), 0);
        refused("end mark", n);
    }
    for (uint32_t i = k3_trunk_tiles(whole); i-- > 0;)
        for (int d = 1; d >= -1; d--) {
            uint64_t n[] = {k3_trunk_offset(whole, i) + k3_trunk_bytes(whole, i) + (uint64_t)d, k3_trunk_offset(whole, i) + (uint64_t)d};
            for (int j = 0; j < 2; j++)
                if (n[j] < facts.file_bytes - 32) {
                    cr_assert_eq(truncate(path, (off_t)n[j]), 0);
                    refused(n[j] < k3_trunk_offset(whole, 0) ? "table" : "among its tiles", n[j]);
                }
        }
    for (uint64_t n = k3_trunk_offset(whole, 0); n-- > 4096;) {
        cr_assert_eq(truncate(path, (off_t)n), 0);
        refused("table", n);
    }
    for (uint64_t n = 4096; n-- > 8;) {
        cr_assert_eq(truncate(path, (off_t)n), 0);
        refused("header", n);
    }
    for (uint64_t n = 8; n-- > 0;) {
        cr_assert_eq(truncate(path, (off_t)n), 0);
        refused("not a packed trunk", n);
    }
    end_damage();
}

Test(trunk_file, too_long)
{
    start_damage();
    put_bytes(path, facts.file_bytes, "", 1);
    refused("1 bytes too many", facts.file_bytes);
    end_damage();
}

/* Every byte of the header, every used one of the table and some behind it, the end mark. */
Test(trunk_file, flipped_outside_tiles)
{
    start_damage();
    uint64_t used = 4096 + facts.tiles * 32;
    for (uint64_t at = 0; at < k3_trunk_offset(whole, 0); at += at < used ? 1 : 509) {
        flip(path, at);
        refused(at < 8 ? "not a packed trunk" : at < 12 ? "format" : at < 4096 ? "header" : "table", at);
        flip(path, at);
    }
    for (uint64_t at = facts.file_bytes - 32; at < facts.file_bytes; at++) {
        flip(path, at);
        refused("end mark", at);
        flip(path, at);
    }
    k3_trunk *t;
    cr_assert_eq(k3_trunk_open(&t, path, ix, NULL), 0, "the file is not whole again");
    k3_trunk_close(t);
    end_damage();
}

static void check_names(uint32_t tile, uint64_t at)
{
    k3_pack_opts o = {.threads = 1, .depth = 3};
    k3_pack_state done;
    uint32_t *bad;
    size_t n;
    k3_err err = {0};
    char word[32];
    flip(path, at);
    cr_assert_eq(k3_trunk_check(whole, &o, &done, &bad, &n, &err), K3_EDATA, "byte %lu", (unsigned long)at);
    cr_assert(n == 1 && bad[0] == tile, "byte %lu: tile %u", (unsigned long)at, bad[0]);
    snprintf(word, sizeof word, "tile %u (", tile);
    cr_assert(strstr(err.text, word), "no \"%s\" in: %s", word, err.text);
    free(bad);
    flip(path, at);
}

/* First, last and a padding byte of each tile: check names that one and no other. */
Test(trunk_file, flipped_in_tiles)
{
    start_damage();
    for (uint32_t i = 0; i < k3_trunk_tiles(whole); i++) {
        uint64_t at = k3_trunk_offset(whole, i), bytes = k3_trunk_bytes(whole, i);
        check_names(i, at);
        check_names(i, at + bytes - 1);
        if (bytes % 4096)
            check_names(i, at + (bytes + 4095) / 4096 * 4096 - 1);
    }
    end_damage();
}

Test(trunk_file, check_lists_all)
{
    k3_pack_opts o = {.threads = 2, .depth = 4};
    k3_pack_state done;
    uint32_t *bad;
    size_t n;
    k3_err err = {0};
    start_damage();
    cr_assert_eq(k3_trunk_check(whole, &o, &done, &bad, &n, &err), 0, "%s", err.text);
    cr_assert(!n && !bad);
    cr_assert_eq(done.read + k3_trunk_offset(whole, 0) + 32, facts.file_bytes, "check reads every byte once");
    uint32_t last = k3_trunk_tiles(whole) - 1;
    flip(path, k3_trunk_offset(whole, last));
    flip(path, k3_trunk_offset(whole, 5) + 77);
    cr_assert_eq(k3_trunk_check(whole, &o, &done, &bad, &n, &err), K3_EDATA);
    cr_assert(n == 2 && bad[0] == 5 && bad[1] == last);
    cr_assert(strstr(err.text, "tile 5 (") && strstr(err.text, "1 more"), "%s", err.text);
    free(bad);
    end_damage();
}

/* ---- foreign -------------------------------------------------------------------------- */

/* A header whose checksum is right, with one word changed. */
static void forge(size_t word, uint64_t value)
{
    uint64_t block[512], *end = block + 511;
    int fd = open(path, O_RDONLY);
    cr_assert_eq(pread(fd, block, sizeof block, 0), sizeof block);
    close(fd);
    block[word] = value;
    *end = XXH3_64bits(block, 511 * 8);
    put_bytes(path, 0, block, sizeof block);
    put_bytes(path, facts.file_bytes - 8, end, 8);
}

Test(trunk_file, other_model)
{
    start_damage();
    k3_index_close(ix);
    ix = index_of(TINY);
    refused("another checkpoint", 0);
    k3_trunk *t;
    cr_assert_eq(k3_trunk_open(&t, path, NULL, NULL), 0, "without a model it opens");
    k3_trunk_close(t);
    end_damage();
}

/* The words are those of k3-trunk(5): 6 the order, 7 the tile size, 8 the number of tiles. */
Test(trunk_file, forged)
{
    static const struct {
        size_t word;
        uint64_t value;
        const char *says;
    } forgeries[] = {{6, 12345, "reading order"}, {7, 4096, "reading order"}, {7, 0, "tile size"}, {7, UINT64_MAX, "tile size"},
                     {8, 0, "sizes"},         {8, UINT64_MAX, "sizes"},   {8, UINT32_MAX, "sizes"}, {2, 0, "sizes"},
                     {2, UINT64_MAX, "ends among its tiles"}, {17, UINT64_MAX - 4095, "sizes"}, {3, 1, "another checkpoint"}};
    for (size_t i = 0; i < sizeof forgeries / sizeof *forgeries; i++) {
        start_damage();
        forge(forgeries[i].word, forgeries[i].value);
        refused(forgeries[i].says, i);
        end_damage();
    }
}

Test(trunk_file, not_a_trunk)
{
    k3_trunk *t;
    k3_err err = {0};
    start_damage();
    put_bytes(path, 0, "version https://git-lfs", 23);
    refused("not a packed trunk", 0);
    cr_assert_eq(k3_trunk_open(&t, in_folder("none"), ix, &err), K3_ESYS);
    cr_assert_eq(k3_trunk_open(&t, folder, ix, &err), K3_ESYS);
    cr_assert_eq(k3_trunk_open(&t, "/dev/null", ix, &err), K3_ESYS);
    end_damage();
}
