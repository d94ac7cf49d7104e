/* SPDX-License-Identifier: Apache-2.0 */
/* sim --budget: how much memory for the trunk, how much for experts. A byte of
 * pinned trunk is a byte not read in every token; a byte of expert cache saves
 * what the trace says. */
#include "simulate.h"

#include <inttypes.h>

enum { PARTS = 128, SHOWN = 8 }; /* sizes tried; rows printed */

struct split {
    uint64_t pinned, cache; /* bytes */
    uint32_t slots;
    int kind; /* the best policy there */
    double hit_rate;
    double trunk_read, expert_read; /* bytes a token */
    double seconds;
};

/* The best policy at size z, and what a token then costs. */
static struct split split_at(const struct outcome *o, const struct sim_job *job, const struct budget *b, int z)
{
    struct split s = {.slots = job->slots[z], .kind = job->kind[0]};
    uint64_t best = 0;
    for (int k = 0; k < job->kinds; k++)
        if (hits_at(o, job, k, z) > best) {
            best = hits_at(o, job, k, z);
            s.kind = job->kind[k];
        }
    s.cache = s.slots * o->header.expert_bytes;
    s.pinned = b->bytes - s.cache < b->trunk ? b->bytes - s.cache : b->trunk;
    s.hit_rate = o->requests ? (double)best / (double)o->requests : 0;
    s.trunk_read = (double)(b->trunk - s.pinned);
    s.expert_read = o->tokens ? (double)(o->requests - best) * (double)o->header.expert_bytes / (double)o->tokens : 0;
    s.seconds = s.trunk_read / b->trunk_rate + s.expert_read / b->expert_rate;
    return s;
}

static void print_row(const struct split *s, const struct budget *b, const char *mark)
{
    const char *name;
    double unit = unit_of((double)b->bytes, &name);
    if (b->tsv)
        printf("%" PRIu64 "\t%" PRIu64 "\t%u\t%s\t%.6f\t%.0f\t%.0f\t%.4f\n", s->pinned, s->cache, s->slots,
               s->slots ? k3_sim_name(s->kind) : "none", s->hit_rate, s->trunk_read, s->expert_read, s->seconds);
    else if (b->json)
        printf("%s{\"trunk_bytes\":%" PRIu64 ",\"cache_bytes\":%" PRIu64
               ",\"slots\":%u,\"policy\":\"%s\",\"hit_rate\":%.6f,"
               "\"trunk_read\":%.0f,\"expert_read\":%.0f,\"seconds\":%.4f}",
               mark, s->pinned, s->cache, s->slots, s->slots ? k3_sim_name(s->kind) : "none", s->hit_rate,
               s->trunk_read, s->expert_read, s->seconds);
    else
        printf("%9.2f %9.2f %7u %7s %7.2f %10.2f %10.2f %9.2f%s\n", (double)s->pinned / unit, (double)s->cache / unit,
               s->slots, s->slots ? k3_sim_name(s->kind) : "none", 100 * s->hit_rate, s->trunk_read / unit,
               s->expert_read / unit, s->seconds, mark);
}

static void print_heading(const struct budget *b)
{
    const char *name;
    char all[24], trunk[24], trunk_rate[24], expert_rate[24], pinned[16], cache[16];
    unit_of((double)b->bytes, &name);
    snprintf(pinned, sizeof pinned, "trunk %s", name);
    snprintf(cache, sizeof cache, "cache %s", name);
    printf("%s for trunk (%s, read at %s/s) and experts (%s/s)\n\n", k3_fmt_bytes(all, b->bytes),
           k3_fmt_bytes(trunk, b->trunk), k3_fmt_bytes(trunk_rate, (uint64_t)b->trunk_rate),
           k3_fmt_bytes(expert_rate, (uint64_t)b->expert_rate));
    printf("%9s %9s %7s %7s %7s %10s %10s %9s\n", pinned, cache, "slots", "policy", "hit %", "trunk/tok",
           "expert/tok", "s/token");
}

static void print_splits(const struct outcome *o, const struct sim_job *job, const struct budget *b)
{
    int best = 0;
    struct split top = split_at(o, job, b, 0);
    for (int z = 1; z < job->sizes; z++) {
        struct split s = split_at(o, job, b, z);
        if (s.seconds < top.seconds - 1e-12) {
            top = s;
            best = z;
        }
    }
    if (b->tsv)
        printf("trunk_bytes\tcache_bytes\tslots\tpolicy\thit_rate\ttrunk_read\texpert_read\tseconds\n");
    else if (b->json)
        printf("{\"budget\":%" PRIu64 ",\"trunk\":%" PRIu64 ",\"splits\":[\n", b->bytes, b->trunk);
    else
        print_heading(b);
    bool first = true;
    for (int z = 0; z < job->sizes; z++) {
        bool shown = z * SHOWN % (job->sizes - 1 ? job->sizes - 1 : 1) == 0 || z == best;
        if (!shown && !b->tsv)
            continue;
        struct split s = split_at(o, job, b, z);
        print_row(&s, b, b->json ? (first ? "" : ",\n") : z == best ? "  best" : "");
        first = false;
    }
    if (b->json) {
        printf("\n],\"best\":");
        print_row(&top, b, "");
        printf("}\n");
    } else if (!b->tsv) {
        char pinned[24], cache[24], read[24];
        printf("\nbest: %s of trunk pinned, %s of experts (%u slots%s%s): %s and %.2f s a token\n",
               k3_fmt_bytes(pinned, top.pinned), k3_fmt_bytes(cache, top.cache), top.slots, top.slots ? ", " : "",
               top.slots ? k3_sim_name(top.kind) : "",
               k3_fmt_bytes(read, (uint64_t)(top.trunk_read + top.expert_read)), top.seconds);
    }
}

int print_budget(k3_trace_reader *r, struct sim_job *job, const struct budget *b, k3_err *err)
{
    const k3_trace_header *h = k3_trace_info(r);
    uint64_t pool = (uint64_t)(h->shape.layers - h->shape.first) * (uint64_t)h->shape.experts;
    uint64_t most = b->bytes / h->expert_bytes < pool ? b->bytes / h->expert_bytes : pool;
    struct outcome o;
    job->kinds = 3;
    job->kind[0] = K3_SIM_LRU;
    job->kind[1] = K3_SIM_LAYERS;
    job->kind[2] = K3_SIM_LFU;
    job->sizes = 0;
    for (uint64_t i = 0; i <= PARTS; i++) {
        uint64_t slots = most * i / PARTS;
        if (!i || slots > job->slots[job->sizes - 1])
            job->slots[job->sizes++] = (uint32_t)slots;
    }
    int status = simulate(r, job, &o, err);
    if (status)
        return status;
    print_splits(&o, job, b);
    outcome_free(&o);
    return 0;
}
