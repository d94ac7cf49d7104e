/* SPDX-License-Identifier: Apache-2.0 */
/* Which files are the shards, and are they safetensors at all. */
#define _GNU_SOURCE
#include "store.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { HEADER_MAX = 100000000, SHARDS_MAX = 99999, ODD_NAMED = 3, CANDIDATES = 64 };

/* What downloaders put behind a name until the file is whole. */
static const char *const unfinished[] = {".incomplete", ".part", ".partial", ".tmp", ".aria2", ".crdownload", ".download"};

char *k3_path_join(const char *dir, const char *name)
{
    char *path;
    return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}

static const char *number(const char *s, uint64_t *out)
{
    const char *p = s;
    *out = 0;
    for (; isdigit((unsigned char)*p) && p - s < 6; p++)
        *out = *out * 10 + (uint64_t)(*p - '0');
    return p - s >= 5 && !isdigit((unsigned char)*p) ? p : NULL;
}

/* model-NNNNN-of-NNNNNN.safetensors (five or six digits each) and what follows. */
static const char *shard_name(const char *name, uint64_t *i, uint64_t *n)
{
    static const char ext[] = ".safetensors", single[] = "model.safetensors";
    *i = *n = 0;
    if (!strncmp(name, single, strlen(single)))
        return name + strlen(single);
    if (strncmp(name, "model-", 6) || !(name = number(name + 6, i)) || strncmp(name, "-of-", 4) ||
        !(name = number(name + 4, n)) || strncmp(name, ext, strlen(ext)))
        return NULL;
    return name + strlen(ext);
}

bool k3_shard_name_valid(const char *field, size_t room)
{
    uint64_t i, n;
    const char *rest = memchr(field, 0, room) ? shard_name(field, &i, &n) : NULL;
    return rest && !*rest;
}

/* A name seen in the folder. */
struct seen {
    char name[48];
    uint64_t i, n; /* number and count */
    bool single;   /* model.safetensors */
    const char *suffix; /* NULL, or the sign of an unfinished download */
};

static int by_number(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;
    if (!x->suffix != !y->suffix)
        return x->suffix ? 1 : -1;
    if (x->single != y->single)
        return x->single ? -1 : 1;
    return x->i != y->i ? (x->i > y->i) - (x->i < y->i) : strcmp(x->name, y->name);
}

static int list_folder(const char *dir, struct seen **out, size_t *count, k3_err *err)
{
    size_t cap = 0, n = 0;
    struct seen *list = NULL;
    struct dirent *e;
    DIR *d = opendir(dir);
    *out = NULL;
    *count = 0;
    if (!d)
        return k3_fail_errno(err, dir, "cannot open the model folder");
    for (errno = 0; (e = readdir(d)); errno = 0) {
        struct seen s = {.suffix = NULL};
        const char *rest = shard_name(e->d_name, &s.i, &s.n);
        for (size_t k = 0; rest && *rest && k < sizeof unfinished / sizeof *unfinished; k++)
            if (!strcmp(rest, unfinished[k]))
                s.suffix = unfinished[k];
        if (!rest || (*rest && !s.suffix))
            continue;
        memcpy(s.name, e->d_name, (size_t)(rest - e->d_name));
        s.single = s.name[5] == '.';
        if (n == cap) {
            struct seen *p = realloc(list, (cap = cap ? 2 * cap : 128) * sizeof *p);
            if (!p) {
                free(list);
                closedir(d);
                return k3_fail(err, K3_ESYS, "%s: out of memory", dir);
            }
            list = p;
        }
        list[n++] = s;
    }
    int status = errno ? k3_fail_errno(err, dir, "cannot read the model folder") : 0;
    closedir(d);
    if (n)
        qsort(list, n, sizeof *list, by_number);
    *out = list;
    *count = n;
    return status;
}

/* The count that most of the n names state; of equals the one that is stated first. A folder with more
 * kinds than candidates is none of ours whichever is taken. */
static uint64_t stated_count(const struct seen *s, size_t n)
{
    uint64_t best = 0;
    size_t most = 0;
    for (size_t k = 0; k < n && k < CANDIDATES; k++) {
        size_t votes = 0;
        for (size_t j = 0; j < n; j++)
            votes += s[j].n == s[k].n;
        if (votes > most) {
            most = votes;
            best = s[k].n;
        }
        if (2 * votes > n)
            break;
    }
    return best;
}

/* What is wrong with a name among shards that count `total`; NULL if nothing. */
static const char *odd_number(const struct seen *s, const struct seen *before, uint64_t total)
{
    if (s->n != total)
        return "states another number of shards than the others, such as";
    if (s->i < 1 || s->i > total)
        return "has a number outside 1 to its count, unlike";
    return before && before->i == s->i ? "has the same number as" : NULL;
}

/* Names the files that do not belong to the n shards of one checkpoint, and moves them behind the
 * others. Returns how many belong; *full is set if the list of problems is. */
static size_t set_odd_apart(const char *dir, struct seen *s, size_t n, struct problems *p, bool *full)
{
    uint64_t total = stated_count(s, n);
    size_t kept = 0, odd = 0;
    for (size_t k = 0; k < n; k++) {
        const struct seen *like = kept ? &s[kept - 1] : NULL;
        const char *wrong = odd_number(&s[k], like, total);
        if (!wrong) {
            struct seen keep = s[k];
            s[k] = s[kept];
            s[kept++] = keep;
            continue;
        }
        for (size_t j = k + 1; j < n && !like; j++) /* none kept yet: the next that is fine */
            like = odd_number(&s[j], NULL, total) ? NULL : &s[j];
        if (odd++ < ODD_NAMED && !*full)
            *full = k3_problem(p, s[k].name, NULL, -1, "%s %s; left over from another checkpoint in %s?", wrong,
                            like ? like->name : "the others", dir);
    }
    if (odd > ODD_NAMED && !*full)
        *full = k3_problem(p, dir, NULL, -1, "%zu more files are not of the %" PRIu64 " shards", odd - ODD_NAMED, total);
    return kept;
}

/* Names the shards of 1..N that are missing. */
static void check_missing(const char *dir, const struct seen *s, size_t n, struct problems *p)
{
    char first[4 * 52] = "";
    size_t len = 0, at = 0;
    uint64_t missing = 0, total = s[0].n;
    int digits = (int)strcspn(s[0].name + 6, "-"), of = (int)strcspn(s[0].name + 6 + digits + 4, ".");
    for (uint64_t i = 1; i <= total; i++) {
        while (at < n && s[at].i < i)
            at++;
        if (at < n && s[at].i == i)
            continue;
        if (missing++ < 4)
            len += (size_t)snprintf(first + len, sizeof first - len, "%smodel-%0*" PRIu64 "-of-%0*" PRIu64 ".safetensors",
                                    len ? ", " : "", digits, i, of, total);
    }
    if (missing)
        k3_problem(p, dir, NULL, -1, "%" PRIu64 " of %" PRIu64 " shards are missing: %s%s", missing, total, first,
                missing > 4 ? ", ..." : "");
}

/* Compares the numbered shards with 1..N; returns how many of them belong to it. */
static size_t check_numbers(const char *dir, struct seen *s, size_t n, struct problems *p)
{
    bool full = false;
    size_t kept = set_odd_apart(dir, s, n, p, &full);
    if (kept && !full)
        check_missing(dir, s, kept, p);
    return kept;
}

int k3_shards_find(const char *dir, struct shard_list *list, struct problems *p, k3_err *err)
{
    struct seen *seen;
    size_t n, whole = 0;
    *list = (struct shard_list){0};
    int status = list_folder(dir, &seen, &n, err);
    if (status)
        return status;
    while (whole < n && !seen[whole].suffix)
        whole++;
    for (size_t k = whole; k < n; k++)
        k3_problem(p, dir, NULL, -1, "%s%s is an unfinished download; finish or remove it", seen[k].name, seen[k].suffix);
    if (!n)
        k3_problem(p, dir, NULL, -1, "no model-NNNNN-of-NNNNNN.safetensors and no model.safetensors here");
    size_t single = whole && seen[0].single;
    if (single && whole > 1)
        k3_problem(p, dir, NULL, -1, "both %s and %s are here; two checkpoints?", seen[0].name, seen[1].name);
    if (whole > SHARDS_MAX)
        status = k3_fail_at(err, K3_EDATA, dir, NULL, -1, "%zu shards, at most %d are supported", whole, SHARDS_MAX);
    else if (whole > single)
        whole = single + check_numbers(dir, seen + single, whole - single, p);
    if (!status && whole && !(list->name = malloc(whole * sizeof *list->name)))
        status = k3_fail(err, K3_ESYS, "%s: out of memory", dir);
    for (size_t k = 0; list->name && k < whole; k++)
        memcpy(list->name[list->n++], seen[k].name, sizeof *list->name);
    free(seen);
    return status;
}

void k3_shards_free(struct shard_list *list)
{
    free(list->name);
    *list = (struct shard_list){0};
}

/* Says what a file is that is no safetensors file, or NULL. */
static const char *impostor(const char *head, size_t n)
{
    static const char lfs[] = "version https://git-lfs";
    if (n >= strlen(lfs) && !memcmp(head, lfs, strlen(lfs)))
        return "a git-lfs pointer, not the weights; fetch them (git lfs pull)";
    while (n && (isspace((unsigned char)*head) || (unsigned char)*head >= 0x80)) /* a byte order mark too */
        head++, n--;
    if ((n >= 9 && !strncasecmp(head, "<!doctype", 9)) || (n >= 5 && !strncasecmp(head, "<html", 5)))
        return "an HTML page, not the weights; download it again";
    return NULL;
}

static int read_header(struct shard_file *f, const char *name, k3_err *err)
{
    char head[512];
    uint64_t size = (uint64_t)f->st.st_size, n;
    size_t have = size < sizeof head ? (size_t)size : sizeof head;
    int status = k3_pread_full(f->fd, name, head, have, 0, err);
    if (status)
        return status;
    const char *what = impostor(head, have);
    if (what)
        return k3_fail_at(err, K3_EDATA, name, NULL, -1, "%s", what);
    if (size < 8)
        return k3_fail_at(err, K3_EDATA, name, NULL, -1, "%" PRIu64 " bytes, too short for a safetensors file", size);
    memcpy(&n, head, 8);
    if (n > HEADER_MAX)
        return k3_fail_at(err, K3_EDATA, name, NULL, 0, "header length %" PRIu64 ", at most %d allowed; not a safetensors file?", n,
                          HEADER_MAX);
    if (n + 8 > size)
        return k3_fail_at(err, K3_EDATA, name, NULL, 0, "the header ends at byte %" PRIu64 ", the file at %" PRIu64 "; cut short?",
                          n + 8, size);
    f->header = n + 8;
    char *all = malloc(n + 9); /* with the length field, so that one digest covers both */
    if (!all)
        return k3_fail(err, K3_ESYS, "%s: out of memory for a header of %" PRIu64 " bytes", name, n);
    if ((status = k3_pread_full(f->fd, name, all, n + 8, 0, err))) {
        free(all);
        return status;
    }
    all[n + 8] = 0;
    XXH128_hash_t h = XXH3_128bits(all, n + 8);
    f->digest = (k3_fingerprint){h.low64, h.high64};
    f->text = all;
    return 0;
}

int k3_shard_open(struct shard_file *f, const char *path, const char *name, k3_err *err)
{
    int status = 0;
    *f = (struct shard_file){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)}; /* no wait for a pipe */
    if (f->fd < 0)
        return k3_fail_errno(err, name, "cannot open");
    if (fstat(f->fd, &f->st))
        status = k3_fail_errno(err, name, "cannot stat");
    else if (!S_ISREG(f->st.st_mode))
        status = k3_fail(err, K3_ESYS, "%s: not a regular file", name);
    else
        status = read_header(f, name, err);
    if (status)
        k3_shard_close(f);
    return status;
}

void k3_shard_close(struct shard_file *f)
{
    if (f->fd >= 0) {
        posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED); /* a header is read once */
        close(f->fd);
    }
    free(f->text);
    f->fd = -1;
    f->text = NULL;
}
