/* SPDX-License-Identifier: Apache-2.0 */
/* temp_folder.h - a folder of its own for a test. */
#ifndef TEMP_FOLDER_H
#define TEMP_FOLDER_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

enum { FOLDER_MAX = 200 };

/* Makes one in $TMPDIR, or /tmp, and puts its path into buf. */
static inline void temp_folder(char buf[FOLDER_MAX])
{
    const char *in = getenv("TMPDIR");
    int n = snprintf(buf, FOLDER_MAX, "%s/k3-unit-XXXXXX", in && *in ? in : "/tmp");
    cr_assert(n < FOLDER_MAX && mkdtemp(buf) != NULL, "no folder %s", buf);
}

#endif
