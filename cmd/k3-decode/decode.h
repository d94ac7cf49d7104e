/* decode.h - the parts of k3-decode. */
#ifndef DECODE_H
#define DECODE_H

#include "k3_model.h"
#include "k3_store.h"
#include "k3_text.h"
#include "k3_trace.h"

enum { MAX_STOPS = 64, MAX_BATCH = 1024 };

/* The command line, understood. */
struct options {
    const char *model, *index, *trunk, *scratch;
    const char *logits, *report, *trace, *logprobs, *score_npy, *save_state, *load_state;
    uint64_t gen, layers;
    uint64_t batch;              /* sequences decoded together at most, 0: the planner's choice */
    uint64_t draft;              /* tokens drafted at most, 0: none */
    bool score, perplexity, stream_json;
    double temperature, top_p, min_p; /* temperature 0: greedy */
    uint64_t top_k, seed;
    uint64_t chunk, tile;        /* 0: the planner's choice */
    uint64_t ring, io_depth;     /* 0: the planner's choice */
    uint64_t memory;             /* bytes, 0: see the two below, or all that is free */
    int64_t trunk_bytes, cache_bytes; /* given sizes, -1: the planner's choice */
    int spill;                   /* KDA state in scratch: 1 yes, 0 no, -1 the planner's choice */
    bool spill_given;            /* by --spill, which neither --memory nor a preset takes back */
    int policy;                  /* K3_POLICY_* */
    int64_t lookahead;           /* experts read ahead of their router, -1: the planner's choice */
    bool direct, huge;
    uint64_t slow_us;            /* delay of every read, for tests */
    bool plan, list_presets, json;
    uint64_t disk_rate, expert_rate; /* bytes/s, 0: measured */
    uint64_t mem_limit;          /* 0: the machine's */
    uint64_t context;            /* positions to plan for at least */
    int threads;
    uint32_t stops[MAX_STOPS];
    size_t nstops;
    bool stops_given;
    const char *describe;        /* the state file of `k3-decode state FILE` */
};

/* One line of input and what becomes of it. */
struct sequence {
    uint64_t line;        /* from 0 */
    k3_ids ids;           /* the prompt, then what was generated */
    size_t prompt;        /* of ids */
    size_t fed;           /* of ids, with those of a loaded state */
    size_t shown;         /* of ids, from `prompt` on, written to the output */
    k3_state *state;      /* while it is active */
    bool done, stopped;   /* stopped: by a stop id */
    k3_bytes text;        /* score lines waiting for their turn */
    double admitted, first_id, ended; /* seconds on the clock */
};

/* ---- options.c ---- */
/* 0, or an exit status + 1: the program ends with it (help and version give 1). */
int options_parse(struct options *o, int argc, char **argv);
bool is_stop(const struct options *o, uint32_t id);
/* Presets are options too: the sizes that a name stands for. False if there is none. */
bool options_preset(struct options *o, const char *name);
/* Checks what needs the config, and the default stop ids: config and tokenizer. */
int options_finish(struct options *o, const k3_config *c, k3_err *err);

/* ---- input.c: prompts from stdin, one a line ---- */
struct input {
    k3_id_reader reader;
    char buf[65536];
    const char *at, *end;
    k3_ids line;          /* the line in progress */
    uint64_t lines;       /* handed out */
    bool ended;           /* no more bytes will come */
    bool closed;          /* no more lines will come */
};
void input_start(struct input *in, uint32_t vocab);
/* The next line, as ids that the caller frees; *got false if there is none: at
 * the end, or, unless `wait`, as long as it is not there yet. */
int input_line(struct input *in, bool wait, k3_ids *ids, bool *got, k3_err *err);
void input_free(struct input *in);

/* ---- output.c: ids to stdout in the order of the lines, logits to a file ---- */
struct engine;
/* Writes what can be written: the first unfinished line's ids, and finished lines before it. */
int output_sequences(struct engine *e, k3_err *err);
/* One JSON line for an id (--stream-json), at once. */
int output_event(struct engine *e, const struct sequence *s, uint32_t id, double logprob, k3_err *err);

/* An .npy of rows whose number is known in the end. */
struct rows {
    k3_file *file;        /* NULL: not asked for */
    const char *path, *dtype;
    FILE *to;             /* the file, or a spool where it cannot be rewritten */
    uint64_t n, columns;
    size_t bytes;         /* of a row */
};
/* dtype "<f4" or "<f8"; path NULL: nothing is written. */
int rows_open(struct rows *r, const char *path, const char *dtype, uint64_t columns, k3_err *err);
int rows_add(struct rows *r, const void *rows, uint64_t n, k3_err *err);
int rows_commit(struct rows *r, k3_err *err);
void rows_abort(struct rows *r);

/* ---- sample.c ---- */
struct sampler {
    const k3_kernels *k;
    const struct options *o;
    uint32_t *order;      /* [vocab] */
    float *p;             /* [vocab] */
    uint64_t vocab;
};
int sampler_init(struct sampler *s, const k3_kernels *k, const struct options *o, uint64_t vocab, k3_err *err);
void sampler_free(struct sampler *s);
/* The id that follows `position` tokens with these logits: a function of logits, options and position alone. */
uint32_t sampler_pick(struct sampler *s, const float *logits, uint64_t position);
/* Natural logarithm of id's probability at temperature 1. */
double sampler_logprob(struct sampler *s, const float *logits, uint32_t id);

/* ---- speculate.c ---- */
/* What drafting has cost and brought so far. */
struct drafts {
    uint64_t proposed, accepted, passes; /* passes with a draft */
    double single_s, extra_s;  /* moving averages: a pass of one token, and of each token more */
    double chance;             /* that a drafted id is accepted, moving */
    uint64_t declined;         /* times a draft did not look worth it */
    double single_bytes, extra_bytes; /* the same in bytes read */
    double model_bytes;        /* of trunk and head */
    uint64_t saved_bytes;      /* by ids that needed no pass of their own */
};
void drafts_init(struct drafts *d, uint64_t model_bytes);
/* Proposes up to `most` ids to follow ids[0..n); returns how many are worth verifying. */
size_t drafts_propose(struct drafts *d, const uint32_t *ids, size_t n, size_t most, uint32_t *out);
/* A pass took `seconds` and read `bytes`; it verified `proposed` ids of which `accepted` were right. */
void drafts_learn(struct drafts *d, size_t proposed, size_t accepted, double seconds, uint64_t bytes);

/* ---- score.c ---- */
struct scores {
    uint64_t n;
    double sum, squares;       /* of the negative log-likelihoods */
    struct rows npy;           /* float64 [rows][3] */
};
int scores_open(struct scores *s, const struct options *o, k3_err *err);
/* Rows of logits after ids[first .. first+n) of the sequence, those that have a next id. */
int scores_add(struct engine *e, struct sequence *s, size_t first, size_t n, const float *logits, k3_err *err);
int scores_end(struct engine *e, k3_err *err);

/* ---- engine.c: everything a run holds ---- */
struct streamer;
struct plan;
/* What the passes did, summed over the sources that a run has had. */
struct totals {
    k3_traffic traffic;
    uint64_t evictions, unused_bytes, scratch_read, scratch_written;
    uint64_t guesses, guesses_right, guesses_early, guesses_wasted; /* struct guess_counts */
    double wait_trunk, wait_experts, busy; /* seconds; busy: a read was in flight */
};
uint64_t totals_bytes(const struct totals *t); /* read in all */

/* Prompts on their way. */
struct feeding {
    uint64_t now, left;      /* their ids in the pass at hand, and those with all still to come; 0: it feeds none */
    uint64_t before, chunks; /* ids and passes before it, of the same prompts */
    double began, seconds;   /* when the pass began; what those before it took */
};

struct engine {
    struct options *o;
    k3_index *index;
    const k3_config *c;
    const k3_kernels *kernels;
    k3_pool *pool;
    struct plan *plan;       /* NULL until the first prompt is known */
    struct streamer *source;
    k3_model *model;
    float *row;              /* [plan rows][vocab] */
    struct rows logits;      /* float32 [rows][vocab] */
    struct sampler sampler;
    struct drafts drafts;
    struct scores scores;
    k3_file *logprobs;
    k3_trace_writer *trace;
    k3_trace_row *trace_row; /* [plan tokens] of the pass at hand */
    uint8_t *trace_hits;
    struct sequence **seq;   /* [nseq] every line so far, in order */
    size_t nseq, next_out;   /* next_out: the first line not wholly written */
    struct totals before;    /* of sources already closed */
    bool saved;              /* --save-state's file */
    struct feeding feeding;
    double started, opened_s, pass_s;
    double prompt_s;         /* of pass_s, in passes that fed prompts */
    uint64_t prompt_bytes;   /* read in those passes, ahead of the next one too */
    uint64_t step_ids;       /* ids that the other passes brought */
};
int engine_open(struct engine *e, struct options *o, k3_err *err);
/* Every line of the input. */
int engine_run(struct engine *e, k3_err *err);
/* After a run that went well: files appear. */
int engine_finish(struct engine *e, k3_err *err);
void engine_close(struct engine *e);
/* Ends all reading, so that the totals are final. */
void engine_stop(struct engine *e);
void engine_totals(const struct engine *e, struct totals *t);

/* ---- batch.c: one pass for all active sequences ---- */
int batch_step(struct engine *e, struct sequence **active, size_t n, bool waiting, k3_err *err);

/* ---- resume.c: --load-state, --save-state, k3-decode state ---- */
/* The ids of the file before those of the line; and, once it has a state, the state. */
int resume_ids(struct engine *e, struct sequence *s, k3_err *err);
int resume_state(struct engine *e, struct sequence *s, k3_err *err);
int resume_save(struct engine *e, struct sequence *s, k3_err *err);
int resume_describe(const struct options *o, k3_err *err);

/* ---- record.c: --trace ---- */
int record_open(struct engine *e, k3_err *err);
int record_routing(struct engine *e, int layer, const uint16_t *experts, const float *weights, size_t tokens);
int record_pass(struct engine *e, const k3_span *spans, struct sequence **of, size_t n, k3_err *err);

/* ---- prepare.c: a plan, and the source and workspace that it describes ---- */
/* What is to be run: the sequences known so far. */
struct demand {
    uint64_t sequences, prompt, positions; /* prompt: tokens in all of them; positions: of the longest */
};
/* Plans for a demand and opens everything; again for one that reaches further. */
int prepare(struct engine *e, const struct demand *d, k3_err *err);
/* --plan: prints it and returns 0, or K3_EDATA if it does not fit. */
int print_plan(struct options *o, k3_err *err);

/* ---- report.c ---- */
/* The line on the terminal, after a layer of the pass at hand. */
void report_progress(const struct engine *e, int layer, size_t tokens);
/* With -v: a line for the pass that has just ended. */
void report_pass(const struct engine *e, size_t sequences, size_t tokens, const struct totals *before, double seconds);
void report_short(const struct engine *e, int status);
int report_write(const struct engine *e, k3_file **file, int status, const k3_err *why, k3_err *err);

#endif
