/* SPDX-License-Identifier: Apache-2.0 */
/* mkckpt.h - the parts of mkckpt: which tensor lies where (plan), what is in it (fill). */
#ifndef MKCKPT_H
#define MKCKPT_H

#include <jansson.h>

#include "k3_spec.h"

/* How much of the data is real; the rest are holes, which read as zeros. */
typedef enum { DATA_FULL, DATA_SPARSE, DATA_NONE } data_mode;

/* What the elements of a tensor are drawn from. */
typedef enum {
    LAW_HOLE,
    LAW_ONE,
    LAW_NORMAL,  /* mean 0, deviation a */
    LAW_UNIFORM, /* a..b */
    LAW_BYTES,   /* any byte: MXFP4 codes */
    LAW_SCALE,   /* MXFP4 scale bytes, 2^a on average */
} law;

typedef struct span {
    uint64_t begin, bytes; /* in the tensor's data */
} span;

enum { MAX_SPANS = 4 };

typedef struct tensor {
    char *name;
    k3_dtype dtype;
    int rank;
    uint64_t shape[4];
    uint64_t bytes;
    uint64_t begin; /* in the shard's data */
    uint64_t seed;
    law law;
    double a, b;
    uint64_t live;  /* bytes after which the data is 0; only A_log has such a tail */
    int nspans;     /* the byte ranges that are written */
    span spans[MAX_SPANS];
} tensor;

typedef struct shard {
    char path[4096];
    tensor *t; /* in order of their data */
    size_t n, cap;
    uint64_t header; /* bytes before the data */
    uint64_t size;   /* of the file */
} shard;

typedef struct maker {
    k3_config c;
    const json_t *vision; /* vision_config, or NULL */
    data_mode mode;
    bool shuffled;
    uint64_t seed;
    size_t nshards; /* one a layer, then embedding and head, projector, vision tower */
    shard *shards;
} maker;

/* A well mixed function of 64 bits. */
static inline uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Fills m->shards[i]: tensors, order, offsets, size. 0 or K3_ESYS. */
int plan_shard(maker *m, size_t i, k3_err *err);
/* Writes the header of a planned shard and gives the file its size. */
int write_header(const maker *m, const shard *s, k3_err *err);
/* Sets law, seed and spans of tensor `id` of a layer, or of an expert part (id < 0). */
void choose_data(const maker *m, const k3_tensor *k, int id, tensor *t);

/* Bytes that write_data writes. */
uint64_t real_bytes(const maker *m);
/* Writes every span of every shard. */
int write_data(const maker *m, k3_pool *pool, k3_err *err);

#endif
