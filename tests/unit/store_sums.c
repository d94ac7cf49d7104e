/* SPDX-License-Identifier: Apache-2.0 */
/* k3.sums: every byte that is ever read is under a checksum, whatever rows are asked for. */
#include "store_help.h"

#include <fcntl.h>
#include <sys/stat.h>

static k3_index *ix;

static void start(void)
{
    k3_err err = {0};
    folder_odd();
    cr_assert_eq(k3_index_build(&ix, folder, 1, &err), 0, "%s", err.text);
}

static void stop(void)
{
    k3_index_close(ix);
    folder_remove();
}

/* The bytes of an extent; free. */
static char *load(k3_extent at)
{
    k3_err err = {0};
    char *data = malloc(at.bytes);
    int fd = open(k3_index_shard_path(ix, at.shard), O_RDONLY);
    cr_assert_eq(k3_pread_full(fd, "shard", data, at.bytes, at.offset, &err), 0, "%s", err.text);
    close(fd);
    return data;
}

typedef void visit_tensor(int layer, k3_tensor_id id, const k3_tensor *t, char *data, void *arg);
typedef void visit_part(int layer, uint64_t expert, k3_part_id part, uint64_t bytes, char *data, void *arg);

static void each(visit_tensor *tensor, visit_part *part, void *arg)
{
    const k3_config *c = k3_index_config(ix);
    for (int l = -1; l < (int)c->layers; l++) {
        for (int id = 0; id < K3_TENSORS; id++) {
            k3_tensor t;
            k3_extent at;
            if (!k3_schema_tensor(c, l, (k3_tensor_id)id, &t))
                continue;
            k3_index_tensor(ix, l, (k3_tensor_id)id, &at);
            char *data = load(at);
            tensor(l, (k3_tensor_id)id, &t, data, arg);
            free(data);
        }
        for (uint64_t x = 0; l >= 0 && k3_is_moe(c, (uint64_t)l) && x < c->experts; x++) {
            k3_extent at[K3_PARTS];
            k3_index_expert(ix, l, x, at);
            for (int p = 0; p < K3_PARTS; p++) {
                char *data = load(at[p]);
                part(l, x, (k3_part_id)p, at[p].bytes, data, arg);
                free(data);
            }
        }
    }
}

static void put_tensor(int layer, k3_tensor_id id, const k3_tensor *t, char *data, void *arg)
{
    k3_err err = {0};
    cr_assert_eq(k3_sums_put_tensor(arg, layer, id, 0, t->rows, data, &err), 0, "%s", err.text);
}

static void put_part(int layer, uint64_t expert, k3_part_id part, uint64_t bytes, char *data, void *arg)
{
    k3_err err = {0};
    (void)bytes;
    cr_assert_eq(k3_sums_put_part(arg, layer, expert, part, data, &err), 0, "%s", err.text);
}

static void write_sums(void)
{
    k3_sums_writer *w;
    k3_err err = {0};
    cr_assert_eq(k3_sums_create(&w, ix, NULL, &err), 0, "%s", err.text);
    each(put_tensor, put_part, w);
    cr_assert_neq(access(in_folder("k3.sums"), F_OK), 0, "there before it is finished");
    cr_assert_eq(k3_sums_commit(&w, &err), 0, "%s", err.text);
    cr_assert_null(w);
}

static k3_sums *open_sums(void)
{
    k3_sums *s;
    k3_err err = {0};
    cr_assert_eq(k3_sums_open(&s, ix, NULL, &err), 0, "%s", err.text);
    cr_assert(s);
    return s;
}

static int open_status(k3_err *err)
{
    k3_sums *s;
    int status = k3_sums_open(&s, ix, NULL, err);
    k3_sums_close(s);
    return status;
}

/* Row ranges of 1, 2 and 5 groups, as tiles of several sizes read them, and the whole; one bit
 * changed in the first, a middle and the last byte must show in the range that holds it. */
static void check_tensor(int layer, k3_tensor_id id, const k3_tensor *t, char *data, void *arg)
{
    const uint64_t unit = k3_sums_rows(t), row_bytes = t->bytes / t->rows, groups[] = {1, 2, 5, t->rows};
    k3_err err = {0};
    k3_extent place;
    for (int g = 0; g < 4; g++)
        for (uint64_t r = 0, n; r < t->rows; r += n) {
            n = t->rows - r < groups[g] * unit ? t->rows - r : groups[g] * unit;
            cr_assert_eq(k3_sums_tensor(arg, layer, id, r, n, data + r * row_bytes, &err), 0, "%s", err.text);
        }
    const uint64_t at[] = {0, t->bytes / 2, t->bytes - 1};
    k3_index_tensor(ix, layer, id, &place);
    for (int i = 0; i < 3; i++) {
        uint64_t group = at[i] / row_bytes / unit;
        data[at[i]] ^= 16;
        cr_assert_eq(k3_sums_tensor(arg, layer, id, 0, t->rows, data, &err), K3_EDATA, "%s byte %d", t->name, (int)at[i]);
        cr_assert_eq(err.offset, (int64_t)(place.offset + group * unit * row_bytes), "%s", err.text);
        cr_assert(strstr(err.text, t->name) && strstr(err.file, "model-0000"), "%s", err.text);
        data[at[i]] ^= 16;
    }
}

static void check_part(int layer, uint64_t expert, k3_part_id part, uint64_t bytes, char *data, void *arg)
{
    k3_err err = {0};
    cr_assert_eq(k3_sums_part(arg, layer, expert, part, data, &err), 0, "%s", err.text);
    data[bytes - 1] ^= 1;
    cr_assert_eq(k3_sums_part(arg, layer, expert, part, data, &err), K3_EDATA);
    char name[K3_NAME_MAX];
    cr_assert_str_eq(err.tensor, k3_part_name(name, layer, expert, part));
}

Test(store_sums, every_unit, .init = start, .fini = stop)
{
    write_sums();
    k3_sums *s = open_sums();
    each(check_tensor, check_part, s);
    k3_sums_close(s);
}

/* All six parts in one piece, as a single read gets them; the wrong expert is no match. */
Test(store_sums, whole_expert, .init = start, .fini = stop)
{
    k3_extent at[K3_PARTS];
    k3_err err = {0};
    write_sums();
    k3_sums *s = open_sums();
    cr_assert(k3_index_expert(ix, 3, 4, at));
    at[0].bytes = k3_expert_bytes(k3_index_config(ix));
    char *data = load(at[0]);
    cr_expect_eq(k3_sums_expert(s, 3, 4, data, &err), 0, "%s", err.text);
    cr_expect_eq(k3_sums_expert(s, 3, 3, data, &err), K3_EDATA);
    data[at[0].bytes - 1] ^= 1;
    cr_expect_eq(k3_sums_expert(s, 3, 4, data, &err), K3_EDATA);
    cr_expect_str_eq(err.tensor, "language_model.model.layers.3.block_sparse_moe.experts.4.w3.weight_scale");
    cr_expect_eq(k3_sums_expert(NULL, 3, 4, data, &err), 0, "without a sidecar nothing is checked");
    free(data);
    k3_sums_close(s);
}

/* A flipped bit in the sidecar is the sidecar's fault, not the shard's. */
Test(store_sums, damaged_sidecar, .init = start, .fini = stop)
{
    struct stat st;
    k3_err err = {0};
    k3_extent at;
    uint64_t sum;
    write_sums();
    int fd = open(in_folder("k3.sums"), O_RDWR);
    cr_assert(fd >= 0 && !fstat(fd, &st));
    /* the last row of the head is the last sum of the first section */
    const uint64_t start_of = 40 + 8 * 8 + 8, rows = 333 + 1 + 1 + 1 + 333;
    cr_assert_eq(pread(fd, &sum, 8, (off_t)(start_of + (rows - 1) * 8)), 8);
    sum ^= 1;
    cr_assert_eq(pwrite(fd, &sum, 8, (off_t)(start_of + (rows - 1) * 8)), 8);
    k3_sums *s = open_sums();
    k3_index_tensor(ix, -1, K3_T_HEAD, &at);
    char *data = load(at);
    cr_expect_eq(k3_sums_tensor(s, -1, K3_T_HEAD, 0, 332, data, &err), 0, "%s", err.text);
    cr_expect_eq(k3_sums_tensor(s, -1, K3_T_HEAD, 332, 1, data + 332 * 208, &err), K3_EDATA);
    cr_expect(strstr(err.file, "k3.sums") && strstr(err.text, "a section's checksum does not match"), "%s", err.text);
    free(data);
    k3_sums_close(s);
    close(fd);
}

Test(store_sums, cut_or_foreign, .init = start, .fini = stop)
{
    struct stat st;
    k3_err err = {0};
    write_sums();
    cr_assert_eq(stat(in_folder("k3.sums"), &st), 0);
    int fd = open(in_folder("k3.sums"), O_RDWR);
    for (off_t at = 0; at < 40 + 8 * 8 + 8; at++) { /* the head, byte by byte */
        unsigned char was, now;
        cr_assert_eq(pread(fd, &was, 1, at), 1);
        now = was ^ 4;
        cr_assert_eq(pwrite(fd, &now, 1, at), 1);
        cr_assert_eq(open_status(&err), K3_EDATA, "byte %d", (int)at);
        cr_assert_eq(pwrite(fd, &was, 1, at), 1);
    }
    cr_expect_eq(open_status(&err), 0, "%s", err.text);
    sh("cp \"$D/k3.sums\" \"$D/keep\"");
    for (off_t n = st.st_size - 1; n >= 0; n -= n > st.st_size - 30 || n < 300 ? 1 : 97) {
        cr_assert_eq(ftruncate(fd, n), 0);
        cr_assert_eq(open_status(&err), K3_EDATA, "%d bytes", (int)n);
        cr_assert_str_eq(err.file, in_folder("k3.sums"));
    }
    close(fd);
    sh("mv \"$D/keep\" \"$D/k3.sums\"; sed -i 's/1e-05/2e-05/' \"$D/config.json\"");
    k3_index_close(ix);
    cr_assert_eq(k3_index_build(&ix, folder, 1, &err), 0, "%s", err.text);
    cr_expect_eq(open_status(&err), K3_EDATA);
    cr_expect(strstr(err.text, "made for other weights or another model"), "%s", err.text);
    sh("rm \"$D/k3.sums\"");
    cr_expect_eq(open_status(&err), 0, "no sidecar is no error: %s", err.text);
    k3_sums *s;
    cr_expect_eq(k3_sums_open(&s, ix, in_folder("named"), &err), K3_ESYS, "but a named one must exist");
}

Test(store_sums, nothing_left_behind, .init = start, .fini = stop)
{
    k3_sums_writer *w;
    k3_err err = {0};
    cr_assert_eq(k3_sums_create(&w, ix, NULL, &err), 0, "%s", err.text);
    k3_sums_abort(&w);
    sh("cd \"$D\"; ! ls | grep -v -e json$ -e safetensors$");
    cr_expect_eq(k3_sums_create(&w, ix, "/dev/null", &err), K3_ESYS);
    cr_expect_eq(k3_sums_create(&w, ix, in_folder("no/such/folder/x"), &err), K3_ESYS);
}
