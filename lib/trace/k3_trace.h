/* k3_trace.h - expert routing: the cache policies of the engine, and the .k3t
 * trace that records which experts every layer chose (k3-trace(5)).
 *
 * An expert is a (layer, number) pair; layers are the model's, from 0, and
 * those below k3_shape.first have no experts. All experts have one size, so a
 * cache is counted in slots.
 */
#ifndef K3_TRACE_H
#define K3_TRACE_H

#include "k3_store.h"

/* Where a model's experts are. */
typedef struct k3_shape {
    int layers;   /* layers of the model, at most 65535 */
    int first;    /* first layer that has experts; first < layers */
    int experts;  /* experts in each such layer, 1..65535 */
    int topk;     /* experts that one position uses in a layer, 1..experts */
} k3_shape;

/* ---- cache policies ---------------------------------------------------------------------
 * The decisions of an expert cache, without the experts: k3-decode and the
 * simulator both ask here, so their counts can be compared request by request.
 *
 * A batch is what one layer needs at once: one position's experts, or the
 * distinct experts of all positions of a chunk. Its order is one of value, the
 * most valuable first: the last position's experts as the router ranked them,
 * then the position before, and so on (k3_policy_distinct). Rules, for every policy:
 *   - hits are decided before anything is evicted;
 *   - a batch never evicts its own;
 *   - a miss gets a slot or passes through (is read, used and forgotten). With
 *     fewer slots than the batch the first misses are kept;
 *   - recency is the batch's order (first = most recent), never order of arrival;
 *   - 0 slots is legal: everything passes through.
 * The last position is what the next token resembles most, and high ranks
 * return more often than low ones (0.74 for the first, 0.22 for the sixteenth
 * of K3's recorded decode): keeping a prompt's last positions rather than its
 * first is worth 5 points of hit rate at 30 slots a layer.
 */
enum {
    K3_POLICY_LRU,    /* "lru": one list for all layers */
    K3_POLICY_LAYERS, /* "layers": slots dealt to layers, an LRU inside each. topk slots for as many evenly spaced
                         layers as there are slots for; slots/layers each once every layer has topk */
    K3_POLICY_LFU,    /* "lfu": least frequently used with aging. A use count is halved at each visit of its layer;
                         the lowest leaves, and a miss with a count below every resident's passes through */
    K3_POLICY_COUNT
};

typedef struct k3_policy k3_policy;

/* "lru", "layers" or "lfu" for a kind, and back (-1 if unknown). */
const char *k3_policy_name(int kind);
int k3_policy_kind(const char *name);

/* A policy over slots 0..slots-1, all empty. Allocates everything it will ever
 * need. K3_EUSAGE for a bad kind or shape, K3_ESYS without memory. */
int k3_policy_new(k3_policy **policy, int kind, const k3_shape *shape, uint32_t slots, k3_err *err);
void k3_policy_free(k3_policy *policy);
/* Forgets everything: all slots empty, no history. */
void k3_policy_clear(k3_policy *policy);

/* The batch of a layer that `rows` positions go through together: reads
 * experts[rows][k], positions oldest first and each in router order, writes the
 * distinct ones in the policies' order and returns how many. distinct[] holds
 * at least min(rows * k, shape.experts) entries. */
int k3_policy_distinct(k3_policy *policy, const int32_t *experts, int rows, int k, int32_t *distinct);

/* Serves a batch of n distinct experts (numbers below shape.experts) of one
 * layer, in order of value. For each: hit[i] = 1 if it was resident, and
 * slot_of[i] = the slot that holds it or will, or -1 if it passes through. A
 * slot given to a miss may have held an expert that is now forgotten; its new
 * content must be read before the next batch is asked about. Returns the hits. */
int k3_policy_batch(k3_policy *policy, int layer, const int32_t *experts, int n, int32_t *slot_of, uint8_t *hit);

/* How many slots it was made for. */
uint32_t k3_policy_slots(const k3_policy *policy);
/* Slot of a resident expert, or -1. */
int32_t k3_policy_slot(const k3_policy *policy, int layer, int expert);

/* ---- traces -------------------------------------------------------------------------------
 * A trace is a sequence of steps. A step is one pass through the layers by one
 * or more rows, each a position of a sequence; every layer that has experts
 * records rows * k choices, row by row, in router order. */

enum { K3_PHASE_PREFILL, K3_PHASE_DECODE, K3_PHASE_DRAFT, K3_PHASE_COUNT };

enum { K3_TRACE_SOURCE = 112, K3_TRACE_MAX_ROWS = 65536, K3_TRACE_MAX_CHOICES = 1 << 20 };

typedef struct k3_trace_row {
    uint64_t position; /* below 2^48 */
    uint32_t sequence;
    uint32_t phase;    /* K3_PHASE_* */
} k3_trace_row;

typedef struct k3_trace_header {
    k3_shape shape;
    uint64_t expert_bytes;         /* of one expert, > 0 */
    k3_fingerprint fingerprint;    /* of the model; 0, 0 if not known */
    bool weights;                  /* choices carry the router's weights */
    bool residency;                /* choices say whether the expert was resident */
    int policy;                    /* K3_POLICY_* of the run that was recorded, or -1 */
    uint32_t slots;                /* of its cache */
    char source[K3_TRACE_SOURCE];  /* what wrote it: one line of text, NUL-terminated */
} k3_trace_header;

const char *k3_phase_name(uint32_t phase); /* "prefill", "decode", "draft" */
int k3_phase(const char *name);            /* or -1 */

/* K3_EUSAGE, naming the field, for a header that no trace can have. */
int k3_trace_check_header(const k3_trace_header *h, k3_err *err);

typedef struct k3_trace_writer k3_trace_writer;

/* Starts a trace. `path` appears when k3_trace_close succeeds and not before;
 * "-" is standard output, and a pipe is written as frames fill (about 65,000
 * choices, or k3_trace_flush). With `append` an existing trace at `path` is
 * carried over first, its sequences keeping their numbers and the new ones
 * counting on from them; it must have the same shape, expert size, model and
 * options (K3_EDATA, naming what differs), and stays as it was until close. A run
 * that is killed leaves its whole frames in a temporary, PATH.PID.tmp. */
int k3_trace_create(k3_trace_writer **w, const char *path, const k3_trace_header *h, bool append, k3_err *err);

/* Starts a step of one row, or of n rows (1..K3_TRACE_MAX_ROWS). A step that
 * records no layer leaves no mark. */
int k3_trace_step(k3_trace_writer *w, uint32_t sequence, uint64_t position, uint32_t phase, k3_err *err);
int k3_trace_step_rows(k3_trace_writer *w, const k3_trace_row *rows, int n, k3_err *err);

/* The choices of one layer in the current step: experts[rows][n / rows] in
 * router order, 1 <= n <= K3_TRACE_MAX_CHOICES. weights[n] if the header says
 * so, else NULL; residency[n] (0 or 1, at routing time) likewise. The arrays are
 * copied. Costs some 30 ns a choice, packing included; allocates only while frames grow. */
int k3_trace_layer(k3_trace_writer *w, int layer, const int32_t *experts, int n, const float *weights,
                   const uint8_t *residency, k3_err *err);

/* Ends the frame, so that a reader of the pipe sees everything up to here. */
int k3_trace_flush(k3_trace_writer *w, k3_err *err);

/* Writes index and end record, puts the file in place and frees, also on failure. */
int k3_trace_close(k3_trace_writer **w, k3_err *err);
/* Frees without leaving a file. NULL is fine. */
void k3_trace_abort(k3_trace_writer **w);

typedef struct k3_trace_reader k3_trace_reader;

/* One layer's choices in one step. Valid until the next call on the reader. */
typedef struct k3_trace_batch {
    uint64_t step;             /* from 0 */
    bool new_step;             /* first batch of its step */
    int rows, k, layer;
    const k3_trace_row *row;   /* [rows] */
    const int32_t *experts;    /* [rows][k] */
    const float *weights;      /* [rows][k] or NULL */
    const uint8_t *residency;  /* [rows][k] or NULL */
} k3_trace_batch;

typedef struct k3_trace_totals {
    uint64_t frames, steps, choices;
    uint64_t bytes; /* of the file */
} k3_trace_totals;

/* Opens a trace ("-" is standard input) and reads its header. Memory is bounded
 * by the largest frame. K3_EDATA: no trace, another version, damaged; K3_ESYS. */
int k3_trace_open(k3_trace_reader **r, const char *path, k3_err *err);
const k3_trace_header *k3_trace_info(const k3_trace_reader *r);
const char *k3_trace_name(const k3_trace_reader *r); /* for messages */

/* The next batch, or *b = NULL at the end. Every byte is under a checksum, and
 * the end is believed only when index, counts and end record agree and nothing
 * follows: K3_EDATA, with frame and offset, for a flipped, cut or joined file. */
int k3_trace_next(k3_trace_reader *r, const k3_trace_batch **b, k3_err *err);

/* Skips whole frames, so that k3_trace_next continues at or before `step`. Uses
 * the index where the file can seek; does nothing on a pipe. Before any k3_trace_next. */
int k3_trace_seek(k3_trace_reader *r, uint64_t step, k3_err *err);

/* Takes a trace that was cut off or cannot be read on: it ends with its last whole
 * frame. k3_trace_cut_off then tells at which byte, or -1 if the trace was whole. */
void k3_trace_salvage(k3_trace_reader *r);
int64_t k3_trace_cut_off(const k3_trace_reader *r);

/* Counts so far; of the whole trace once k3_trace_next has reached the end. */
k3_trace_totals k3_trace_count(const k3_trace_reader *r);
void k3_trace_free(k3_trace_reader *r);

#endif
