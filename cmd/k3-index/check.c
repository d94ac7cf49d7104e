/* SPDX-License-Identifier: Apache-2.0 */
/* check: everything that is wrong with a folder, without reading weights. */
#include "index.h"

#include <inttypes.h>

int index_check(const index_opts *o, k3_err *err)
{
    char count[32], size[24];
    k3_check c;
    int status = k3_index_check(&c, o->model, o->index_file, o->sizes_file, o->threads ? o->threads : k3_threads_default(), err);
    if (status)
        return status;
    uint64_t all = c.problems + c.more;
    if (o->json) {
        status = put_json(json_pack("{s:I, s:I, s:I, s:s, s:I, s:o}", "shards", (json_int_t)c.shards, "tensors", (json_int_t)c.tensors,
                                    "bytes", (json_int_t)c.bytes, "checksums",
                                    c.sums ? "fit" : "none", "count", (json_int_t)all, "problems",
                                    json_problems(c.problem, c.problems)),
                          err);
    } else {
        for (size_t i = 0; i < c.problems; i++) {
            put_text(c.problem[i].text);
            putchar('\n');
        }
        if (c.more)
            printf("and %" PRIu64 " more\n", c.more);
        if (!all)
            printf("%" PRIu32 " shards, %s tensors, %s%s: no problems\n", c.shards, with_commas(count, c.tensors),
                   k3_fmt_bytes(size, c.bytes), c.sums ? ", k3.sums fits" : "");
    }
    int worst = all ? K3_EDATA : 0;
    for (size_t i = 0; i < c.problems; i++)
        worst = c.problem[i].status == K3_ESYS ? K3_ESYS : worst;
    if (worst && !status)
        status = k3_fail(err, worst, "%s: %" PRIu64 " problem%s", o->model, all, all == 1 ? "" : "s");
    k3_check_free(&c);
    return status;
}
