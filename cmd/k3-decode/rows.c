/* SPDX-License-Identifier: Apache-2.0 */
/* Rows go to the file, or to a spool before a pipe, because the header in front counts them. */
#include "rows.h"

int rows_open(struct rows *r, const char *path, const char *dtype, uint64_t columns, k3_err *err)
{
    *r = (struct rows){.path = path, .dtype = dtype, .columns = columns, .bytes = columns * (size_t)(dtype[2] - '0')};
    if (!path)
        return 0;
    int status = k3_file_create(&r->file, path, err);
    if (status)
        return status;
    /* The header counts the rows, which are known at the end: a pipe gets them from a spool. */
    r->to = k3_file_is_direct(r->file) ? tmpfile() : k3_file_stream(r->file);
    if (!r->to)
        return k3_fail_errno(err, path, "cannot make a spool for it");
    return k3_npy_write_header(r->to, path, dtype, 2, (uint64_t[]){0, columns}, err);
}

int rows_add(struct rows *r, const void *rows, uint64_t n, k3_err *err)
{
    if (!r->file || !n)
        return 0;
    if (fwrite(rows, r->bytes, n, r->to) != n)
        return k3_fail_write(err, r->path);
    r->n += n;
    return 0;
}

static int copy_spool(struct rows *r, k3_err *err)
{
    char buf[8192];
    size_t n;
    rewind(r->to);
    while ((n = fread(buf, 1, sizeof buf, r->to)))
        if (fwrite(buf, 1, n, k3_file_stream(r->file)) != n)
            return k3_fail_write(err, r->path);
    return ferror(r->to) ? k3_fail_errno(err, r->path, "cannot read its spool back") : 0;
}

int rows_commit(struct rows *r, k3_err *err)
{
    if (!r->file)
        return 0;
    bool spooled = k3_file_is_direct(r->file);
    if (fseek(r->to, 0, SEEK_SET))
        return k3_fail_write(err, r->path);
    int status = k3_npy_write_header(r->to, r->path, r->dtype, 2, (uint64_t[]){r->n, r->columns}, err);
    if (!status && spooled)
        status = copy_spool(r, err);
    if (status)
        return status;
    if (spooled)
        fclose(r->to);
    return k3_file_commit(&r->file, err);
}

void rows_abort(struct rows *r)
{
    if (r->file && k3_file_is_direct(r->file) && r->to)
        fclose(r->to);
    k3_file_abort(&r->file);
}
