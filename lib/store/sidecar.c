/* SPDX-License-Identifier: Apache-2.0 */
/* Where the files that belong to a model lie when its folder cannot be written to. */
#include "store.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *sidecar_folder(void)
{
    const char *folder = getenv("K3_SIDECAR");
    return folder && *folder ? folder : NULL;
}

char *k3_sidecar_find(const char *model_dir, const char *name)
{
    const char *folder = sidecar_folder();
    char *path = folder ? k3_path_join(folder, name) : NULL;
    if (folder && (!path || !access(path, F_OK)))
        return path;
    free(path);
    return k3_path_join(model_dir, name);
}

char *k3_sidecar_place(const char *model_dir, const char *name)
{
    const char *folder = sidecar_folder();
    return k3_path_join(folder ? folder : model_dir, name);
}
