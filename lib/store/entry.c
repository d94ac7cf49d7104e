/* SPDX-License-Identifier: Apache-2.0 */
/* All tensors one by one, and by name. */
#include "store.h"

#include <string.h>

uint64_t k3_index_count(const k3_index *ix)
{
    return ix->head->entries;
}

static void fill_shape(k3_entry *e, const k3_tensor *t)
{
    e->dtype = k3_dtype_name[t->dtype];
    e->rank = (uint64_t)t->rank;
    e->shape_buf[0] = t->rank == 1 ? t->cols : t->rows;
    e->shape_buf[1] = t->rank == 3 ? 1 : t->cols;
    e->shape_buf[2] = t->cols;
    e->shape = e->shape_buf;
    e->name = e->name_buf;
}

static void tensor_entry(const k3_index *ix, int layer, k3_tensor_id id, k3_entry *e)
{
    k3_tensor t;
    k3_schema_tensor(&ix->config, layer, id, &t);
    k3_index_tensor(ix, layer, id, &e->at);
    e->at.bytes = k3_index_stored_bytes(ix, layer, id);
    e->id = (k3_name){.layer = layer, .tensor = (int)id, .expert = -1, .part = -1};
    e->ignored = false;
    k3_tensor_name(e->name_buf, layer, id);
    fill_shape(e, &t);
    if (id == K3_T_A_LOG)
        e->shape_buf[0] = e->at.bytes / 4;
}

static void part_entry(const k3_index *ix, int layer, uint64_t expert, k3_part_id part, k3_entry *e)
{
    k3_extent at[K3_PARTS];
    k3_tensor t;
    k3_schema_part(&ix->config, part, &t);
    k3_index_expert(ix, layer, expert, at);
    e->at = at[part];
    e->id = (k3_name){.layer = layer, .tensor = -1, .expert = (int64_t)expert, .part = (int)part};
    e->ignored = false;
    k3_part_name(e->name_buf, layer, expert, part);
    fill_shape(e, &t);
}

static void ignored_entry(const k3_index *ix, uint64_t i, k3_entry *e)
{
    const struct image_ignored *g = &ix->ignored[i];
    e->name = ix->names + g->name;
    e->dtype = k3_dtype_table[g->dtype].name;
    e->rank = g->rank;
    e->shape = ix->shapes + g->shape;
    e->at = (k3_extent){place_shard(g->place), place_offset(g->place), g->bytes};
    e->id = (k3_name){.layer = -1, .tensor = -1, .expert = -1, .part = -1};
    e->ignored = true;
}

void k3_index_entry(const k3_index *ix, uint64_t i, k3_entry *e)
{
    const k3_config *c = &ix->config;
    int l = -1, id = 0;
    if (i >= ix->first[c->layers + 1]) {
        ignored_entry(ix, i - ix->first[c->layers + 1], e);
        return;
    }
    while (i >= ix->first[l + 2])
        l++;
    i -= ix->first[l + 1];
    for (; id < K3_TENSORS; id++)
        if (ix->tensors[(size_t)(l + 1) * K3_TENSORS + (size_t)id].place != PLACE_NONE && !i--)
            break;
    if (id < K3_TENSORS)
        tensor_entry(ix, l, (k3_tensor_id)id, e);
    else
        part_entry(ix, l, i / K3_PARTS, (k3_part_id)(i % K3_PARTS), e);
}

bool k3_index_find(const k3_index *ix, const char *name, k3_entry *e)
{
    const k3_config *c = &ix->config;
    char full[2 * K3_NAME_MAX];
    k3_name id;
    k3_extent at;
    for (uint64_t i = 0; i < ix->nignored; i++)
        if (!strcmp(ix->names + ix->ignored[i].name, name)) {
            ignored_entry(ix, i, e);
            return true;
        }
    snprintf(full, sizeof full, "%s%.200s", k3_name_ignored(name) ? K3_PREFIX : "", name);
    if (strlen(name) > 200 || !k3_name_parse(full, &id))
        return false;
    if (id.expert < 0) {
        if (!k3_index_tensor(ix, id.layer, (k3_tensor_id)id.tensor, &at))
            return false;
        tensor_entry(ix, id.layer, (k3_tensor_id)id.tensor, e);
        return true;
    }
    if (id.layer >= (int)c->layers || !k3_is_moe(c, (uint64_t)id.layer) || (uint64_t)id.expert >= c->experts)
        return false;
    part_entry(ix, id.layer, (uint64_t)id.expert, (k3_part_id)id.part, e);
    return true;
}
