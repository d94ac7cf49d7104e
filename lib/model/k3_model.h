/* SPDX-License-Identifier: Apache-2.0 */
/* k3_model.h - the forward pass of Kimi K3 over any number of tokens of any
 * number of sequences, with weights from a k3_source and carried state.
 *
 * The same bits come out whatever the thread count, instruction set, chunking
 * of a prompt or company in a batch: every (row, token) product has its own
 * lanes, and every sum has a fixed order.
 */
#ifndef K3_MODEL_H
#define K3_MODEL_H

#include "k3_kernel.h"
#include "k3_source.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- carried state of one sequence ---------------------------------------------- */

typedef struct k3_state k3_state;

/* State for `layers` layers and up to `positions` tokens: per KDA layer the
 * recurrent matrices [kda_heads][D][D] and the last conv_kernel-1 rows of q, k
 * and v; per MLA layer the latent cache [positions][kv_lora_rank + qk_rope].
 * Memory is touched as it is used. */
int k3_state_new(k3_state **state, const k3_config *c, uint64_t layers, uint64_t positions, k3_err *err);
/* The same with the KDA part in an unlinked file below the folder `scratch`
 * (K3_EUSAGE on tmpfs): two layers are in memory at a time, and passes must run all layers. */
int k3_state_new_spilled(k3_state **state, const k3_config *c, uint64_t layers, uint64_t positions,
                         const char *scratch, k3_err *err);
/* Room for so many positions, if there is less; what it holds stays. Between passes. After an error it is as before. */
int k3_state_grow(k3_state *state, uint64_t positions, k3_err *err);
void k3_state_free(k3_state *state);
/* Back to an empty sequence; not for a spilled state. */
void k3_state_reset(k3_state *state);
uint64_t k3_state_position(const k3_state *state); /* tokens fed so far */
enum { K3_DRAFT_MAX = 64 }; /* tokens of a tentative span */

/* Makes room for tentative spans of up to `tokens` (1..K3_DRAFT_MAX) tokens: per KDA layer the
 * inputs of its recurrence are kept until the next pass, k3_state_draft_bytes in all. */
int k3_state_allow_drafts(k3_state *state, size_t tokens, k3_err *err);
uint64_t k3_state_draft_bytes(const k3_config *c, uint64_t layers, size_t tokens);
/* After a pass with a tentative span: its first n tokens stay, the others have
 * never been. Nothing is run again but the recurrences of those n, in the next pass. */
void k3_state_accept(k3_state *state, size_t n);
/* Bytes of memory for that many positions. */
uint64_t k3_state_bytes(const k3_config *c, uint64_t layers, uint64_t positions, bool spilled);
/* Bytes of scratch read and written so far; 0 if nothing is spilled. */
void k3_state_traffic(const k3_state *state, uint64_t *read_bytes, uint64_t *write_bytes);
/* ---- the state file, k3-state(5) ---------------------------------------------- */

/* What a state file says of itself. */
typedef struct k3_state_info {
    uint32_t version;
    k3_fingerprint model;
    uint64_t first, layers;          /* it holds the layers first .. first + layers - 1 */
    uint64_t kda_layers, mla_layers; /* of those */
    uint64_t position;               /* tokens fed */
    uint64_t ids;                    /* ids stored: none, or those fed and any that come next */
    uint64_t bytes;                  /* of the file */
} k3_state_info;

/* Writes the layers first .. last of the state to `path`, which appears whole or stays as it was.
 * ids [nids] are the sequence's: none, or at least as many as were fed (else K3_EUSAGE).
 * A spilled state must be saved and loaded from layer 0 on, between passes. */
int k3_state_save(k3_state *state, uint64_t first, k3_fingerprint model, const uint32_t *ids, size_t nids,
                  const char *path, k3_err *err);

typedef struct k3_state_file k3_state_file;

/* Opens a state file and checks everything but the contents of its sections: nothing it says is
 * used before it agrees with the size of the file. K3_EDATA: not one, cut, or damaged; K3_ESYS. */
int k3_state_open(k3_state_file **file, const char *path, k3_err *err);
void k3_state_close(k3_state_file *file); /* NULL is fine */
const k3_state_info *k3_state_describe(const k3_state_file *file);
/* Reads it all and compares the checksums. */
int k3_state_check(k3_state_file *file, k3_err *err);
/* The ids, each below `vocab` or K3_EDATA, into ids [info.ids]. */
int k3_state_ids(k3_state_file *file, uint64_t vocab, uint32_t *ids, k3_err *err);
/* The layers first .. last of the state, and its position, from the file. K3_EDATA if the file is of another
 * model or other layers, reaches further than the state has room, or is damaged; the state is
 * unusable then. */
int k3_state_load(k3_state *state, uint64_t first, k3_fingerprint model, k3_state_file *file, k3_err *err);

/* ---- the model ---------------------------------------------------------------------- */

/* Consecutive tokens of one sequence inside a pass. */
typedef struct k3_span {
    k3_state *state;
    const uint32_t *ids;
    size_t n;       /* tokens, >= 1 */
    size_t logits;  /* logits are wanted for the last `logits` of them, 0..n */
    bool tentative; /* some of them may be taken back: k3_state_accept must follow */
} k3_span;

/* Called while a pass runs; NULL members are skipped. A return value that is
 * not 0 stops the pass with it. */
typedef struct k3_hooks {
    void *arg;
    /* After a layer: the residual stream [tokens][hidden]. */
    int (*layer)(void *arg, int layer, const float *stream, size_t tokens);
    /* After routing: experts [tokens][topk] in router order and their weights. */
    int (*router)(void *arg, int layer, const uint16_t *experts, const float *weights, size_t tokens);
} k3_hooks;

typedef struct k3_model k3_model;

/* A workspace for passes of up to `tokens` tokens whose sequences reach up to
 * `positions`. The config, kernels and pool must outlive it. */
int k3_model_new(k3_model **m, const k3_config *c, const k3_kernels *k, k3_pool *pool, size_t tokens,
                 uint64_t positions, k3_err *err);
void k3_model_free(k3_model *m);
uint64_t k3_model_bytes(const k3_config *c, int threads, size_t tokens, uint64_t positions);
void k3_model_hooks(k3_model *m, const k3_hooks *hooks);

/* One pass: spans in, logits [sum of wanted][vocab] out in span order (NULL if
 * none are wanted). `layers` of the model run, then the output mix, norm and
 * head. `more`: another pass will follow, so the source may read ahead for it. Advances each state. K3_EDATA for an id outside the vocabulary, a full
 * state, or a logit that is not finite. After an error the states are unusable. */
int k3_forward(k3_model *m, k3_source *src, const k3_span *spans, size_t nspans, uint64_t layers, bool more,
               float *logits, k3_err *err);

/* ---- its parts, for k3-layer --------------------------------------------------------- */

/* Starts a pass without embedding: the caller fills the stream and snapshots.
 * Here a span needs no ids, and no state either where no attention runs. */
int k3_pass_begin(k3_model *m, const k3_span *spans, size_t nspans, k3_err *err);
float *k3_stream(k3_model *m);                 /* [tokens][hidden] running sum */
float *k3_snapshot(k3_model *m, uint64_t i);   /* [tokens][hidden] */
/* The source must stand at the first piece of the layer, or of the head. */
int k3_layer(k3_model *m, k3_source *src, int layer, k3_err *err);
int k3_head(k3_model *m, k3_source *src, uint64_t layers, float *logits, k3_err *err);
/* Advances the states after the last layer of the pass. */
void k3_pass_end(k3_model *m);

typedef enum { K3_PART_ATTN, K3_PART_MLP, K3_PART_ROUTER, K3_PART_MOE } k3_layer_part;
/* One part of a layer on already normed input x [tokens][hidden]; out
 * [tokens][hidden]. K3_PART_ROUTER leaves out alone and calls the router hook.
 * K3_PART_MLP is the dense MLP, or the shared experts of a MoE layer. K3_EUSAGE if the layer has no such part. */
int k3_part(k3_model *m, k3_source *src, int layer, k3_layer_part part, const float *x, float *out, k3_err *err);

#ifdef __cplusplus
}
#endif

#endif
