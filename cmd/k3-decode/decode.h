/* decode.h - the parts of k3-decode. */
#ifndef DECODE_H
#define DECODE_H

#include "k3_model.h"
#include "k3_store.h"
#include "k3_text.h"

enum { MAX_STOPS = 64 };

/* The command line, understood. */
struct options {
    const char *model, *index, *logits, *report;
    uint64_t gen, layers, chunk, tile;
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
struct engine {
    struct options *o;
    k3_index *index;
    const k3_config *c;
    const k3_kernels *kernels;
    k3_pool *pool;
    k3_source *source;
    k3_model *model;         /* remade when a longer sequence comes */
    uint64_t positions;      /* that the model's workspace holds */
    float *row;              /* [chunk][vocab] with --logits, else [vocab] */
    struct logits logits;
    struct sequence *seq;    /* [nseq] every line so far */
    size_t nseq;
    uint64_t pass_tokens;    /* tokens of the pass at hand, for the progress line */
    double started;
};
int engine_open(struct engine *e, struct options *o, k3_err *err);
void engine_close(struct engine *e);
/* One prompt line: feeds it, decodes greedily, writes the ids. */
int engine_run(struct engine *e, struct sequence *s, k3_err *err);

/* ---- report.c ---- */
void report_short(const struct engine *e);
int report_write(const struct engine *e, k3_file **file, int status, const k3_err *why, k3_err *err);

#endif
