/* decode.h - the parts of k3-decode. */
#ifndef DECODE_H
#define DECODE_H

#include "k3_model.h"
#include "k3_store.h"
#include "k3_text.h"

enum { MAX_STOPS = 64 };

/* The command line, understood. */
struct options {
    const char *model, *index, *logits, *report, *trunk, *scratch;
    uint64_t gen, layers;
    uint64_t chunk, tile;        /* 0: the planner's choice */
    uint64_t ring, io_depth;     /* 0: the planner's choice */
    uint64_t memory;             /* bytes, 0: see the two below, or all that is free */
    int64_t trunk_bytes, cache_bytes; /* given sizes, -1: the planner's choice */
    int spill;                   /* KDA state in scratch: 1 yes, 0 no, -1 the planner's choice */
    int policy;                  /* K3_POLICY_* */
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
};

/* One line of input and what became of it. */
struct sequence {
    k3_ids prompt, out;
    bool stopped;      /* by a stop id */
    double prompt_s, gen_s;
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
    bool ended;
};
void input_start(struct input *in, uint32_t vocab);
/* The ids of the next line into *ids (emptied first); *got false at the end of the input. */
int input_line(struct input *in, k3_ids *ids, bool *got, k3_err *err);

/* ---- output.c: ids to stdout, logits to a file ---- */
/* One write: the id and the byte after it. */
int output_id(uint32_t id, char after, k3_err *err);
int output_newline(k3_err *err);

struct logits {
    k3_file *file; /* NULL: not asked for */
    const char *path;
    FILE *rows_to; /* the file, or a spool where it cannot be rewritten */
    uint64_t rows, vocab;
};
int logits_open(struct logits *l, const char *path, uint64_t vocab, k3_err *err);
int logits_add(struct logits *l, const float *rows, uint64_t n, k3_err *err);
int logits_commit(struct logits *l, k3_err *err);
void logits_abort(struct logits *l);

/* ---- engine.c: everything a run holds ---- */
struct streamer;
struct plan;
/* What the passes did, summed over the sources that a run has had. */
struct totals {
    k3_traffic traffic;
    uint64_t evictions, unused_bytes, scratch_read, scratch_written;
    double wait_trunk, wait_experts, busy; /* seconds; busy: a read was in flight */
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
    float *row;              /* [plan tokens or 1][vocab] */
    struct logits logits;
    struct sequence *seq;    /* [nseq] every line so far */
    size_t nseq;
    struct totals before;    /* of sources already closed */
    double started, opened_s, pass_s;
};
int engine_open(struct engine *e, struct options *o, k3_err *err);
void engine_close(struct engine *e);
/* One prompt line: feeds it, decodes greedily, writes the ids. */
int engine_run(struct engine *e, struct sequence *s, k3_err *err);
void engine_totals(const struct engine *e, struct totals *t);

/* ---- prepare.c: a plan, and the source and workspace that it describes ---- */
/* Plans for a prompt of that many tokens and opens everything; again, smaller elsewhere, for a longer sequence. */
int prepare(struct engine *e, uint64_t prompt, uint64_t positions, k3_err *err);
/* --plan: prints it and returns 0, or K3_EDATA if it does not fit. */
int print_plan(struct options *o, k3_err *err);

/* ---- report.c ---- */
/* With -v: a line for the pass that has just ended. */
void report_token(const struct engine *e, const struct sequence *s, const struct totals *before, double seconds);
void report_short(const struct engine *e, int status);
int report_write(const struct engine *e, k3_file **file, int status, const k3_err *why, k3_err *err);

#endif
