/* SPDX-License-Identifier: Apache-2.0 */
/* The index says where every tensor is, and notices whatever makes it untrue. */
#include "store_help.h"

#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>

static k3_index *build(void)
{
    k3_index *ix;
    k3_err err = {0};
    cr_assert_eq(k3_index_build(&ix, folder, 3, &err), 0, "%s", err.text);
    return ix;
}

static void write_index(void)
{
    k3_index *ix = build();
    k3_err err = {0};
    cr_assert_eq(k3_index_write(ix, in_folder("k3.index"), &err), 0, "%s", err.text);
    k3_index_close(ix);
}

static int open_status(k3_err *err)
{
    k3_index *ix;
    int status = k3_index_open(&ix, folder, NULL, err);
    k3_index_close(ix);
    return status;
}

static k3_fingerprint fingerprint(void)
{
    k3_index *ix = build();
    k3_fingerprint f = k3_index_fingerprint(ix);
    k3_index_close(ix);
    return f;
}

static json_t *header_of(const char *path, uint64_t *n)
{
    char *text;
    size_t size;
    k3_err err = {0};
    cr_assert_eq(k3_read_file(path, 1 << 30, &text, &size, &err), 0, "%s", err.text);
    memcpy(n, text, 8);
    json_t *h = json_loadb(text + 8, *n, 0, NULL);
    free(text);
    cr_assert(h);
    return h;
}

/* Writes header `h` in front of holes of the old data's size; frees h. */
static void put_header(const char *name, json_t *h, uint64_t data)
{
    char *text = json_dumps(h, JSON_COMPACT);
    write_shard(name, text, strlen(text), data);
    free(text);
    json_decref(h);
}

/* Compares one entry with what a plain JSON reader finds in the shard. */
static void expect_entry(const k3_index *ix, const char *name, json_t *t, uint32_t shard, uint64_t header)
{
    k3_entry e;
    json_t *at = json_object_get(t, "data_offsets"), *shape = json_object_get(t, "shape");
    uint64_t begin = (uint64_t)json_integer_value(json_array_get(at, 0)), end = (uint64_t)json_integer_value(json_array_get(at, 1));
    cr_assert(k3_index_find(ix, name, &e), "%s", name);
    cr_assert_str_eq(e.name, name);
    cr_assert_str_eq(e.dtype, json_string_value(json_object_get(t, "dtype")));
    cr_assert_eq(e.rank, json_array_size(shape));
    for (uint64_t i = 0; i < e.rank; i++)
        cr_assert_eq(e.shape[i], (uint64_t)json_integer_value(json_array_get(shape, i)), "%s", name);
    cr_assert(e.at.shard == shard && e.at.offset == 8 + header + begin && e.at.bytes == end - begin, "%s", name);
}

/* Every tensor of every shard, against jansson alone; and the other way, one by one. */
static void expect_all(const k3_index *ix)
{
    uint64_t total = 0, bytes = 0, entry_bytes = 0, n;
    for (uint32_t s = 0; s < k3_index_shards(ix); s++) {
        const char *name;
        json_t *h = header_of(k3_index_shard_path(ix, s), &n), *t;
        json_object_foreach (h, name, t) {
            expect_entry(ix, name, t, s, n);
            total++;
        }
        bytes += k3_index_shard_size(ix, s) - k3_index_shard_header(ix, s);
        json_decref(h);
    }
    cr_assert_eq(k3_index_count(ix), total);
    for (uint64_t i = 0; i < total; i++) {
        k3_entry a, b;
        k3_index_entry(ix, i, &a);
        cr_assert(k3_index_find(ix, a.name, &b));
        cr_assert(a.at.shard == b.at.shard && a.at.offset == b.at.offset, "%s", a.name);
        entry_bytes += a.at.bytes;
    }
    cr_assert_eq(entry_bytes, bytes); /* so none came twice */
}

/* The six parts of every expert by number and by name; counts how many experts are in one piece. */
static uint64_t adjacent_experts(const k3_index *ix)
{
    const k3_config *c = k3_index_config(ix);
    char name[K3_NAME_MAX];
    uint64_t whole = 0;
    for (uint64_t l = c->first_moe; l < c->layers; l++)
        for (uint64_t x = 0; x < c->experts; x++) {
            k3_extent part[K3_PARTS];
            k3_entry e;
            bool adjacent = k3_index_expert(ix, (int)l, x, part), really = true;
            for (int p = 0; p < K3_PARTS; p++) {
                cr_assert(k3_index_find(ix, k3_part_name(name, (int)l, x, (k3_part_id)p), &e));
                cr_assert(e.at.shard == part[p].shard && e.at.offset == part[p].offset && e.at.bytes == part[p].bytes, "%s", name);
                really &= !p || (part[p].shard == part[p - 1].shard && part[p].offset == part[p - 1].offset + part[p - 1].bytes);
            }
            cr_assert_eq(adjacent, really, "layer %d expert %d", (int)l, (int)x);
            whole += adjacent;
        }
    return whole;
}

Test(store_index, places, .init = folder_odd, .fini = folder_remove)
{
    k3_index *ix = build(), *again;
    k3_err err = {0};
    k3_entry e;
    k3_extent at;
    expect_all(ix);
    cr_expect_eq(adjacent_experts(ix), 30);
    cr_assert_eq(k3_index_write(ix, in_folder("k3.index"), &err), 0, "%s", err.text);
    cr_assert_eq(k3_index_open(&again, folder, NULL, &err), 0, "%s", err.text);
    expect_all(again);
    cr_expect_eq(adjacent_experts(again), 30);
    cr_expect(k3_fingerprint_equal(k3_index_fingerprint(ix), k3_index_fingerprint(again)));
    /* the first heads of a padded A_log; a name without the prefix; names that are none */
    cr_assert(k3_index_tensor(again, 4, K3_T_A_LOG, &at));
    cr_expect_eq(at.bytes, 12);
    cr_expect_eq(k3_index_stored_bytes(again, 4, K3_T_A_LOG), 96);
    cr_expect(k3_index_find(again, "model.layers.4.self_attn.A_log", &e) && e.at.bytes == 96 && e.shape[0] == 24);
    cr_expect_not(k3_index_tensor(again, 2, K3_T_A_LOG, &at));
    cr_expect_not(k3_index_tensor(again, 7, K3_T_ATTN_NORM, &at));
    cr_expect_not(k3_index_find(again, "model.layers.2.self_attn.A_log", &e));
    cr_expect_not(k3_index_find(again, "model.layers.1.block_sparse_moe.experts.5.w1.weight_scale", &e));
    cr_expect_not(k3_index_find(again, "model.layers.0.block_sparse_moe.experts.0.w1.weight_scale", &e));
    k3_index_close(ix);
    k3_index_close(again);
}

/* Moves every second tensor of a shard behind the others, so that experts come apart. */
static void scatter(const char *name)
{
    uint64_t n, at = 0, size;
    struct stat st;
    json_t *h = header_of(in_folder(name), &n), *t;
    const char *key;
    cr_assert_eq(stat(in_folder(name), &st), 0);
    size = (uint64_t)st.st_size - 8 - n;
    for (int odd = 0; odd < 2; odd++) {
        int i = 0;
        json_object_foreach (h, key, t) {
            if (i++ % 2 != odd)
                continue;
            json_t *o = json_object_get(t, "data_offsets");
            json_int_t bytes = json_integer_value(json_array_get(o, 1)) - json_integer_value(json_array_get(o, 0));
            json_array_set_new(o, 0, json_integer((json_int_t)at));
            json_array_set_new(o, 1, json_integer((json_int_t)at + bytes));
            at += (uint64_t)bytes;
        }
    }
    put_header(name, h, size);
}

Test(store_index, scattered_experts, .init = folder_odd, .fini = folder_remove)
{
    k3_err err = {0};
    k3_index *ix;
    scatter("model-00003-of-000009.safetensors");
    scatter("model-00007-of-000009.safetensors");
    write_index();
    cr_assert_eq(k3_index_open(&ix, folder, NULL, &err), 0, "%s", err.text);
    expect_all(ix);
    cr_expect_eq(adjacent_experts(ix), 20);
    k3_index_close(ix);
}

/* Layer 1 apart into two shards, the numbering kept: nothing may depend on layer N lying in shard N+1. */
Test(store_index, one_layer_in_two_shards, .init = folder_odd, .fini = folder_remove)
{
    uint64_t n1, n9, at1 = 0, at9;
    struct stat st;
    k3_index *ix;
    const char *key;
    void *next;
    json_t *a = header_of(in_folder("model-00002-of-000009.safetensors"), &n1), *t;
    json_t *b = header_of(in_folder("model-00009-of-000009.safetensors"), &n9);
    cr_assert_eq(stat(in_folder("model-00009-of-000009.safetensors"), &st), 0);
    at9 = (uint64_t)st.st_size - 8 - n9;
    int i = 0;
    json_object_foreach_safe (a, next, key, t) {
        uint64_t *at = i++ % 3 ? &at1 : &at9;
        json_t *o = json_object_get(t, "data_offsets");
        json_int_t bytes = json_integer_value(json_array_get(o, 1)) - json_integer_value(json_array_get(o, 0));
        json_array_set_new(o, 0, json_integer((json_int_t)*at));
        json_array_set_new(o, 1, json_integer((json_int_t)*at + bytes));
        *at += (uint64_t)bytes;
        if (at == &at9) {
            json_object_set(b, key, t);
            json_object_del(a, key);
        }
    }
    put_header("model-00002-of-000009.safetensors", a, at1);
    put_header("model-00009-of-000009.safetensors", b, at9);
    ix = build();
    expect_all(ix);
    cr_expect_eq(adjacent_experts(ix), 25);
    k3_index_close(ix);
}

Test(store_index, single_file, .init = folder_make, .fini = folder_remove)
{
    k3_err err = {0};
    sh("cp " ODD "/config.json \"$D\"; cp " ODD "/model-00002-of-000009.safetensors \"$D/model.safetensors\"");
    cr_expect_eq(build_status(&err), K3_EDATA);
    cr_expect(strstr(err.text, "that the config needs are in no shard: language_model.model.embed_tokens.weight, "), "%s", err.text);
}

/* ---- a cut or damaged index -------------------------------------------------------- */

Test(store_index, every_cut, .init = folder_odd, .fini = folder_remove)
{
    struct stat st;
    write_index();
    cr_assert_eq(stat(in_folder("k3.index"), &st), 0);
    for (off_t n = st.st_size - 1; n >= 0; n--) {
        k3_err err = {0};
        cr_assert_eq(truncate(in_folder("k3.index"), n), 0);
        cr_assert_eq(open_status(&err), K3_EDATA, "%lld bytes", (long long)n);
        cr_assert(strstr(err.text, "run k3-index"), "%s", err.text);
        cr_assert_str_eq(err.file, in_folder("k3.index"));
    }
}

Test(store_index, every_byte_changed, .init = folder_odd, .fini = folder_remove)
{
    struct stat st;
    write_index();
    int fd = open(in_folder("k3.index"), O_RDWR);
    cr_assert(fd >= 0 && !fstat(fd, &st));
    for (off_t at = 0; at < st.st_size; at++) {
        k3_err err = {0};
        unsigned char was, now;
        cr_assert_eq(pread(fd, &was, 1, at), 1);
        now = was ^ (unsigned char)(1 << at % 8);
        cr_assert_eq(pwrite(fd, &now, 1, at), 1);
        cr_assert_eq(open_status(&err), K3_EDATA, "byte %lld", (long long)at);
        cr_assert_eq(pwrite(fd, &was, 1, at), 1);
    }
    k3_err err = {0};
    cr_expect_eq(open_status(&err), 0, "%s", err.text);
    cr_assert_eq(pwrite(fd, "", 1, st.st_size), 1);
    cr_expect_eq(open_status(&err), K3_EDATA);
    close(fd);
}

/* ---- a stale index ------------------------------------------------------------------ */

#define S4 "model-00004-of-000009.safetensors"

static void expect_stale(const char *what, const char *file, const char *text)
{
    k3_err err = {0};
    cr_expect_eq(open_status(&err), K3_EDATA, "%s", what);
    cr_expect(strstr(err.text, text) && strstr(err.text, "run k3-index"), "%s: %s", what, err.text);
    if (file)
        cr_expect_str_eq(err.file, file);
}

Test(store_index, stale, .init = folder_odd, .fini = folder_remove)
{
    k3_err err = {0};
    write_index();
    cr_expect_eq(open_status(&err), 0, "%s", err.text);

    sh("touch -d '2001-02-03 04:05:06.789' \"$D/" S4 "\"");
    cr_expect_eq(open_status(&err), 0, "only the mtime: %s", err.text);

    /* one byte of the header, same size; the mtime tells that there is something to see */
    sh("cp \"$D/" S4 "\" \"$D/keep\"; sed -i '1s/data_offsets/data_offsetz/' \"$D/" S4 "\"");
    expect_stale("header changed", S4, "header has changed");

    sh("cp \"$D/keep\" \"$D/" S4 "\"; printf x >>\"$D/" S4 "\"");
    expect_stale("longer", S4, "bytes now");
    sh("cp \"$D/keep\" \"$D/" S4 "\"; truncate -s -1 \"$D/" S4 "\"");
    expect_stale("shorter", S4, "bytes now");
    sh("rm \"$D/" S4 "\"");
    expect_stale("gone", S4, "is gone");
    sh("mv \"$D/keep\" \"$D/" S4 "\"");
    cr_expect_eq(open_status(&err), 0, "copied back: %s", err.text);

    sh("sed -i 's/1e-05/2e-05/' \"$D/config.json\"");
    expect_stale("eps", in_folder("k3.index"), "config.json has changed");
    sh("sed -i 's/2e-05/1e-05/; s/^ *//' \"$D/config.json\"");
    cr_expect_eq(open_status(&err), 0, "blanks in the config: %s", err.text);
    sh("sed -i 's/\"eos_token_id\": 79/\"eos_token_id\": 78/' \"$D/config.json\"");
    cr_expect_eq(open_status(&err), 0, "another stop id: %s", err.text);
}

Test(store_index, no_file, .init = folder_odd, .fini = folder_remove)
{
    k3_err err = {0};
    k3_index *ix;
    k3_verbosity = -1;
    cr_expect_eq(k3_index_open(&ix, folder, NULL, &err), 0, "%s", err.text);
    cr_expect_eq(k3_index_count(ix), 360);
    cr_expect_eq(access(in_folder("k3.index"), F_OK), -1, "opening wrote a file");
    k3_index_close(ix);
    cr_expect_eq(k3_index_open(&ix, folder, in_folder("other.index"), &err), K3_ESYS, "a named file must exist");
    cr_expect_null(ix);
}

/* ---- the fingerprint -------------------------------------------------------------------- */

Test(store_index, fingerprint, .init = folder_odd, .fini = folder_remove)
{
    k3_fingerprint f = fingerprint(), g;
    char text[K3_FINGERPRINT_TEXT];
    cr_expect_eq(strlen(k3_fingerprint_text(text, f)), 32);

    sh("mkdir \"$D/other\"; cp \"$D\"/*.safetensors \"$D/config.json\" \"$D/other\"; touch -d 2001-01-01 \"$D\"/other/*");
    strcat(folder, "/other");
    g = fingerprint();
    cr_expect(k3_fingerprint_equal(f, g), "another folder and other times");

    scatter("model-00003-of-000009.safetensors");
    cr_expect_not(k3_fingerprint_equal(f, g = fingerprint()), "tensors in other places");
    sh("cp \"$D\"/../*.safetensors \"$D\"; sed -i 's/1e-05/2e-05/' \"$D/config.json\"");
    cr_expect_not(k3_fingerprint_equal(f, fingerprint()), "another epsilon");
    sh("cp \"$D/../config.json\" \"$D\"");
    cr_expect(k3_fingerprint_equal(f, fingerprint()), "all as before");
    *strrchr(folder, '/') = 0;
}

/* ---- what only the whole set of shards shows --------------------------------------------- */

/* The same tensor in two shards: a reader that takes the last one is wrong in silence. */
Test(store_index, in_two_shards, .init = folder_odd, .fini = folder_remove)
{
    static const char norm[] = "{\"language_model.model.layers.0.input_layernorm.weight\":{\"dtype\":\"BF16\",\"shape\":[104],\"data_offsets\":[0,208]}}";
    k3_err err = {0};
    write_shard("model-00009-of-000009.safetensors", norm, strlen(norm), 208);
    cr_expect_eq(build_status(&err), K3_EDATA);
    cr_expect_str_eq(err.text, "model-00009-of-000009.safetensors: tensor \"language_model.model.layers.0.input_layernorm.weight\": "
                               "is also in model-00001-of-000009.safetensors");
    /* and one that is ignored */
    sh("cp " ODD "/model-00009-of-000009.safetensors \"$D\"; cp " ODD "/model-00009-of-000009.safetensors \"$D/model-00008-of-000009.safetensors\"");
    cr_expect_eq(build_status(&err), K3_EDATA);
    cr_expect(strstr(err.text, "model-00009-of-000009.safetensors: tensor \"") && strstr(err.text, "is also in model-00008"), "%s", err.text);
}

/* The prefix lost: nothing would be bound. The names wanted must be named. */
Test(store_index, prefix_lost, .init = folder_odd, .fini = folder_remove)
{
    k3_err err = {0};
    sh("sed -i 's/\"language_model\\.model/\"language-model.model/g' \"$D\"/model-00001-of-*");
    cr_expect_eq(build_status(&err), K3_EDATA);
    cr_expect(strstr(err.text, ": 23 tensors that the config needs are in no shard: "
                               "language_model.model.layers.0.self_attention_res_norm.weight, "
                               "language_model.model.layers.0.self_attention_res_proj.weight, "), "%s", err.text);
    cr_expect_str_eq(err.tensor, "language_model.model.layers.0.self_attention_res_norm.weight");
}

Test(store_index, one_expert_missing, .init = folder_odd, .fini = folder_remove)
{
    k3_err err = {0};
    sh("sed -i 's/language_model\\(.model.layers.6.block_sparse_moe.experts.4.w2.weight_scale\\)/language-model\\1/' "
       "\"$D\"/model-00007-of-*");
    cr_expect_eq(build_status(&err), K3_EDATA);
    cr_expect(strstr(err.text, ": 1 tensors that the config needs are in no shard: "
                               "language_model.model.layers.6.block_sparse_moe.experts.4.w2.weight_scale"), "%s", err.text);
}

/* 128 entries for 96 heads: which are meant is clear only while the rest are 0. */
Test(store_index, a_log_tail, .init = folder_odd, .fini = folder_remove)
{
    k3_index *ix = build();
    k3_extent at;
    k3_err err = {0};
    float stored[24] = {1, 2, 3}, x = -0.f;
    cr_assert(k3_index_tensor(ix, 4, K3_T_A_LOG, &at));
    int fd = open(k3_index_shard_path(ix, at.shard), O_RDWR);
    cr_assert(fd >= 0);
    cr_expect_eq(k3_a_log_check(ix, 4, stored, 24, &err), 0);
    cr_expect_eq(k3_a_log_check(ix, 4, stored, 3, &err), 0);
    cr_expect_eq(k3_a_log_check(ix, 4, stored, 0, &err), 0);
    stored[23] = 1e-30f;
    cr_expect_eq(k3_a_log_check(ix, 4, stored, 24, &err), K3_EDATA);
    cr_assert_eq(pwrite(fd, &x, 4, (off_t)at.offset + 4 * 5), 4);
    cr_expect_eq(build_status(&err), 0, "a negative zero is zero: %s", err.text);
    for (int i = 3; i < 24; i += 20) {
        x = i == 3 ? 0.25f : (float)(0.0 / 0.0);
        cr_assert_eq(pwrite(fd, &x, 4, (off_t)at.offset + 4 * i), 4);
        cr_expect_eq(build_status(&err), K3_EDATA, "entry %d", i);
        cr_expect_str_eq(err.tensor, "language_model.model.layers.4.self_attn.A_log");
        cr_expect_str_eq(err.file, "model-00005-of-000009.safetensors");
        cr_expect_eq(err.offset, (int64_t)at.offset + 4 * i);
        x = 0;
        cr_assert_eq(pwrite(fd, &x, 4, (off_t)at.offset + 4 * i), 4);
    }
    close(fd);
    k3_index_close(ix);
}
