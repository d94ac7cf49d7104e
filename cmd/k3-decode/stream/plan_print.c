/* SPDX-License-Identifier: Apache-2.0 */
/* The plan as a table and as JSON, and the list of presets. */
#include "stream.h"
#include "k3_cache.h"

#include <inttypes.h>
#include <jansson.h>

void plan_list_presets(bool json)
{
    if (json) {
        json_t *a = json_array();
        for (const struct preset *p = plan_presets; p->name; p++)
            json_array_append_new(a, json_pack("{s:s, s:f, s:f, s:s}", "name", p->name, "trunk_gb", p->trunk_gb, "cache_gb",
                                               p->cache_gb, "for", p->what));
        json_dumpf(a, stdout, JSON_INDENT(1));
        putchar('\n');
        json_decref(a);
        return;
    }
    printf("%-12s %9s %9s  %s\n", "PRESET", "TRUNK GB", "CACHE GB", "FOR");
    for (const struct preset *p = plan_presets; p->name; p++)
        if (p->trunk_gb < 0)
            printf("%-12s %9s %9s  %s\n", p->name, "auto", "auto", p->what);
        else
            printf("%-12s %9g %9g  %s\n", p->name, p->trunk_gb, p->cache_gb, p->what);
}

static void line(const char *name, uint64_t bytes, const char *note)
{
    char buf[24];
    printf("  %-30s %12s%s%s\n", name, k3_fmt_bytes(buf, bytes), *note ? "  " : "", note);
}

static void print_table(const struct plan *p)
{
    char a[24], b[24], note[96];
    const struct stream_sizes *s = &p->stream;
    printf("memory: %s planned, %s may be used\n", k3_fmt_bytes(a, p->total), k3_fmt_bytes(b, p->budget));
    for (int i = 0; i < p->nitems; i++)
        if (p->item[i].bytes)
            line(p->item[i].name, p->item[i].bytes, "");
    printf("choices: %" PRIu32 " tiles of %s, %" PRIu32 " readers, %" PRIu32 " expert slots (%s), passes of %" PRIu64
           " token%s of %" PRIu64 " sequence%s, %" PRIu64 " positions, %d thread%s\n",
           s->ring, k3_fmt_bytes(a, s->tile_bytes), s->depth, s->expert_slots, k3_policy_name(s->policy), p->tokens,
           p->tokens == 1 ? "" : "s", p->sequences, p->sequences == 1 ? "" : "s", p->positions, p->threads, p->threads == 1 ? "" : "s");
    printf("a decode step reads %s\n", k3_fmt_bytes(a, p->trunk + p->head + p->experts + p->embedding));
    line("trunk", p->trunk, "");
    line("head", p->head, "");
    snprintf(note, sizeof note, "%s less %.0f %% expected in the cache", k3_fmt_bytes(a, p->experts_most), p->hit * 100);
    line("experts", p->experts, p->experts_most ? note : "");
    line("embedding", p->embedding, "");
    if (p->scratch)
        line("scratch, read and written", p->scratch, "");
    if (p->machine.two_devices || p->machine.measured)
        printf("predicted: %.2f s a token: reading %.2f s (trunk at %s/s, experts at %s/s%s), arithmetic %.2f s\n", p->seconds,
               p->read_seconds, k3_fmt_bytes(a, (uint64_t)p->machine.seen.trunk), k3_fmt_bytes(b, (uint64_t)p->machine.seen.experts),
               p->machine.measured ? ", measured now" : "", p->compute_seconds);
    else
        printf("predicted: %.2f s a token: reading %.2f s at %s/s, arithmetic %.2f s\n", p->seconds, p->read_seconds,
               k3_fmt_bytes(a, (uint64_t)p->machine.seen.trunk), p->compute_seconds);
}

static void print_json(const struct plan *p)
{
    json_t *memory = json_object(), *root;
    for (int i = 0; i < p->nitems; i++)
        json_object_set_new(memory, p->item[i].name, json_integer((json_int_t)p->item[i].bytes));
    root = json_pack("{s:I, s:I, s:o, s:i, s:I, s:i, s:i, s:i, s:s, s:I, s:I, s:I, s:I, s:i, s:b}", "planned_bytes", (json_int_t)p->total,
                     "budget_bytes", (json_int_t)p->budget, "memory", memory, "ring", (int)p->stream.ring, "tile_bytes",
                     (json_int_t)p->stream.tile_bytes, "io_depth", (int)p->stream.depth, "expert_slots",
                     (int)p->stream.expert_slots, "lookahead", (int)p->stream.lookahead, "cache_policy", k3_policy_name(p->stream.policy), "chunk",
                     (json_int_t)p->tokens, "sequences", (json_int_t)p->sequences, "draft", (json_int_t)p->draft, "positions", (json_int_t)p->positions, "threads", p->threads, "spill", p->spill);
    json_object_set_new(root, "bytes_per_token",
                        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "trunk", (json_int_t)p->trunk, "head", (json_int_t)p->head,
                                  "experts", (json_int_t)p->experts, "experts_without_cache", (json_int_t)p->experts_most,
                                  "embedding", (json_int_t)p->embedding, "scratch", (json_int_t)p->scratch));
    json_object_set_new(root, "predicted",
                        json_pack("{s:f, s:f, s:f, s:f, s:f}", "seconds_per_token", p->seconds, "read_seconds", p->read_seconds,
                                  "compute_seconds", p->compute_seconds, "trunk_rate", p->machine.seen.trunk, "expert_rate",
                                  p->machine.seen.experts));
    json_dumpf(root, stdout, JSON_INDENT(1));
    putchar('\n');
    json_decref(root);
}

void plan_print(const struct plan *p, bool json)
{
    if (json)
        print_json(p);
    else
        print_table(p);
}
