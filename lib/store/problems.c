/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded list of what is wrong with a model folder. */
#include "store.h"

#include <stdarg.h>
#include <stdlib.h>

bool k3_problems_add(struct problems *p, const k3_err *err)
{
    if (p->n == p->limit) {
        p->more++;
        return true;
    }
    k3_err *list = realloc(p->list, (p->n + 1) * sizeof *list);
    if (!list) {
        p->more++;
        return true;
    }
    p->list = list;
    p->list[p->n++] = *err;
    return p->n == p->limit;
}

void k3_problems_free(struct problems *p)
{
    free(p->list);
    p->list = NULL;
    p->n = 0;
}

bool k3_problem(struct problems *p, const char *file, const char *tensor, int64_t at, const char *fmt, ...)
{
    char text[1400];
    k3_err e;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    k3_fail_at(&e, K3_EDATA, file, tensor, at, "%s", text);
    return k3_problems_add(p, &e);
}
