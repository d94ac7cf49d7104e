/* SPDX-License-Identifier: Apache-2.0 */
/* The version, the commit that was built, and the environment. */
#include "k3_base.h"

#include <stdlib.h>

#ifndef K3_COMMIT
#define K3_COMMIT ""
#endif

const char *k3_commit(void)
{
    return K3_COMMIT;
}

void k3_print_version(void)
{
    const char *commit = k3_commit();
    printf("%s %s%s%s%s\n", k3_prog, K3_VERSION, *commit ? " (commit " : "", commit, *commit ? ")" : "");
}

const char *k3_env(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}
