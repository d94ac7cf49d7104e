/* SPDX-License-Identifier: Apache-2.0 */
/* Files that appear whole, and whole reads. */
#define _GNU_SOURCE
#include "k3_base.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct k3_file {
    FILE *stream;
    char *path, *temp;  /* temp is NULL when written directly */
};

static void file_free(k3_file *f)
{
    free(f->path);
    free(f->temp);
    free(f);
}

/* The descriptor that /dev/stdout, /dev/fd/N or a link to one of them stands for, or -1.
 * Such a name may lead to a regular file, and is still not one that a rename could replace. */
static int named_descriptor(const char *path)
{
    char name[4096], target[4096];
    snprintf(name, sizeof name, "%s", path);
    for (int links = 0; links < 8; links++) {
        int fd, end = 0;
        if ((sscanf(name, "/dev/fd/%d%n", &fd, &end) == 1 || sscanf(name, "/proc/self/fd/%d%n", &fd, &end) == 1) && !name[end])
            return fd;
        ssize_t n = readlink(name, target, sizeof target - 1);
        if (n < 0)
            return -1;
        memcpy(name, target, (size_t)n);
        name[n] = 0;
    }
    return -1;
}

/* `ending` is that of the temporary's name. */
static int create(k3_file **out, const char *path, const char *ending, k3_err *err)
{
    struct stat st;
    int given = named_descriptor(path);
    int fd;
    *out = NULL;
    if (!*path)
        return k3_fail(err, K3_ESYS, "\"\": cannot create: a file name is empty");
    k3_file *f = calloc(1, sizeof *f);
    if (!f || !(f->path = strdup(path)))
        goto no_memory;
    if (given >= 0) {
        fd = fcntl(given, F_DUPFD_CLOEXEC, 0);
    } else if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        fd = open(path, O_WRONLY | O_CLOEXEC);
    } else {
        if (asprintf(&f->temp, "%s.%ld.%s", path, (long)getpid(), ending) < 0)
            goto no_memory;
        k3_temp_add(f->temp);
        fd = open(f->temp, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    }
    if (fd < 0 || !(f->stream = fdopen(fd, f->temp ? "w+" : "w"))) {
        k3_fail_errno(err, path, "cannot create");
        if (fd >= 0)
            close(fd);
        if (f->temp)
            k3_temp_remove(f->temp);
        file_free(f);
        return K3_ESYS;
    }
    *out = f;
    return 0;
no_memory:
    if (f)
        file_free(f);
    return k3_fail(err, K3_ESYS, "%s: out of memory", path);
}

int k3_file_create(k3_file **out, const char *path, k3_err *err)
{
    return create(out, path, "tmp", err);
}

int k3_file_create_part(k3_file **out, const char *path, k3_err *err)
{
    return create(out, path, "part", err);
}

int k3_file_probe(const char *path, k3_err *err)
{
    struct stat st;
    k3_file *f;
    if (named_descriptor(path) >= 0 || (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
        return 0;
    int status = k3_file_create(&f, path, err);
    k3_file_abort(&f);
    return status;
}

FILE *k3_file_stream(k3_file *f)
{
    return f->stream;
}

bool k3_file_is_direct(const k3_file *f)
{
    return !f->temp;
}

/* A rename is on disk only once its folder is. */
static int sync_folder(const char *path)
{
    char *copy = strdup(path);
    int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int bad = fd >= 0 && fsync(fd) && errno != EINVAL;
    if (fd >= 0)
        close(fd);
    free(copy);
    return bad ? -1 : 0;
}

int k3_put_in_place(const char *temp, const char *path, k3_err *err)
{
    if (rename(temp, path))
        return k3_fail_errno(err, path, "cannot put the finished file in place");
    return sync_folder(path) ? k3_fail_errno(err, path, "cannot flush the folder") : 0;
}

int k3_file_commit(k3_file **file, k3_err *err)
{
    k3_file *f = *file;
    int status = 0;
    *file = NULL;
    errno = 0;
    if (fflush(f->stream) || ferror(f->stream) || (f->temp && fsync(fileno(f->stream)))) {
        if (!errno)
            errno = EIO; /* the write that failed lies back; its reason is gone */
        status = k3_fail_write(err, f->path);
    }
    if (fclose(f->stream) && !status)
        status = k3_fail_write(err, f->path);
    if (f->temp && !status)
        status = k3_put_in_place(f->temp, f->path, err);
    if (f->temp) {
        if (status)
            unlink(f->temp);
        k3_temp_remove(f->temp);
    }
    file_free(f);
    return status;
}

void k3_file_abort(k3_file **file)
{
    k3_file *f = *file;
    if (!f)
        return;
    *file = NULL;
    fclose(f->stream);
    if (f->temp) {
        unlink(f->temp);
        k3_temp_remove(f->temp);
    }
    file_free(f);
}

int k3_read_file(const char *path, uint64_t max, char **data, size_t *size, k3_err *err)
{
    struct stat st;
    int status = 0, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO would wait for a writer */
    *data = NULL;
    if (fd < 0)
        return k3_fail_errno(err, path, "cannot open");
    if (fstat(fd, &st))
        status = k3_fail_errno(err, path, "cannot stat");
    else if (!S_ISREG(st.st_mode))
        status = k3_fail(err, K3_ESYS, "%s: not a regular file", path);
    else if ((uint64_t)st.st_size > max)
        status = k3_fail(err, K3_EDATA, "%s: %lld bytes, at most %" PRIu64 " expected", path, (long long)st.st_size, max);
    else if (!(*data = malloc((size_t)st.st_size + 1)))
        status = k3_fail(err, K3_ESYS, "%s: out of memory for %lld bytes", path, (long long)st.st_size);
    else
        status = k3_pread_full(fd, path, *data, (uint64_t)st.st_size, 0, err);
    close(fd);
    if (status) {
        free(*data);
        *data = NULL;
        return status;
    }
    (*data)[st.st_size] = 0;
    *size = (size_t)st.st_size;
    return 0;
}

int k3_pread_full(int fd, const char *name, void *buf, uint64_t size, uint64_t offset, k3_err *err)
{
    const uint64_t most = 1u << 30;
    uint64_t done = 0;
    while (done < size) {
        uint64_t want = size - done < most ? size - done : most;
        ssize_t got = pread(fd, (char *)buf + done, want, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return k3_fail_errno(err, name, "cannot read %" PRIu64 " bytes at byte %" PRIu64, want, offset + done);
        if (!got)
            return k3_fail_at(err, K3_EDATA, name, NULL, (int64_t)offset, "the file ends after %" PRIu64 " of %" PRIu64 " bytes",
                              done, size);
        done += (uint64_t)got;
    }
    return 0;
}
