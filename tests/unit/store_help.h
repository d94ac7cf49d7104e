/* SPDX-License-Identifier: Apache-2.0 */
/* store_help.h - model folders for the tests of lib/store. */
#ifndef STORE_HELP_H
#define STORE_HELP_H

#include "k3_store.h"
#include "temp_folder.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ODD "tests/fixtures/odd/model"

static char folder[FOLDER_MAX];

/* Runs a shell command, with `folder` as $D. */
static inline void sh(const char *command)
{
    setenv("D", folder, 1);
    cr_assert_eq(system(command), 0, "%s", command);
}

static inline void folder_make(void)
{
    temp_folder(folder);
}

static inline void folder_remove(void)
{
    sh("rm -rf \"$D\"");
}

/* A folder with the odd-sized model in it. */
static inline void folder_odd(void)
{
    folder_make();
    sh("cp " ODD "/*.json " ODD "/*.safetensors \"$D\"");
}

static inline const char *in_folder(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* A file with `n` bytes of text behind its length, and holes after it up to `data` bytes. */
static inline void write_shard(const char *name, const char *header, size_t n, uint64_t data)
{
    FILE *f = fopen(in_folder(name), "wb");
    uint64_t length = n;
    cr_assert(f && fwrite(&length, 8, 1, f) == 1 && fwrite(header, 1, n, f) == n && !fclose(f));
    cr_assert_eq(truncate(in_folder(name), (off_t)(8 + n + data)), 0);
}

/* Builds; returns the status, and the index is closed. */
static inline int build_status(k3_err *err)
{
    k3_index *ix = NULL;
    int status = k3_index_build(&ix, folder, 2, err);
    k3_index_close(ix);
    return status;
}

#endif
