/* SPDX-License-Identifier: Apache-2.0 */
/* k3_base.h - what every program and every part of the library shares:
 * errors, talk on stderr, strict numbers, options, files that appear whole,
 * .npy arrays, threads, the clock.
 *
 * Every function that can fail returns 0 or one of the K3_E* codes below and
 * describes the failure in *err. The codes are the programs' exit statuses.
 * Nothing in the library calls exit().
 */
#ifndef K3_BASE_H
#define K3_BASE_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define K3_VERSION "0.1.0"

#if defined(__GNUC__)
#define K3_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define K3_PRINTF(fmt, args)
#endif

/* ---- errors ------------------------------------------------------------- */

enum {
    K3_OK = 0,
    K3_EDATA = 1,   /* the data is bad: shard, tensor, id, checksum, stale or foreign file */
    K3_EUSAGE = 2,  /* misuse, an unavailable K3_ISA, or a config that is not understood */
    K3_ESYS = 3,    /* the system failed: folder, permission, I/O, memory */
    K3_EEXPERT = 4, /* an expert could not be read */
    K3_EPIPE = 5,   /* nobody reads our output any more; programs exit 0 on it */
};

typedef struct k3_err {
    int status;        /* one of the codes above; 0 while nothing failed */
    int64_t offset;    /* byte offset in `file`, or -1 */
    char file[512];    /* the file at fault, or "" */
    char tensor[256];  /* the tensor or field at fault, or "" */
    char text[2048];   /* the whole message, one line, without the program's name */
} k3_err;

/* Fills *err (which may be NULL) and returns `status`. */
int k3_fail(k3_err *err, int status, const char *fmt, ...) K3_PRINTF(3, 4);

/* The same with the place: text becomes `FILE: tensor "NAME": MESSAGE (at byte N)`;
 * file or tensor NULL and offset -1 are left out. */
int k3_fail_at(k3_err *err, int status, const char *file, const char *tensor, int64_t offset, const char *fmt, ...)
    K3_PRINTF(6, 7);

/* K3_ESYS with strerror(errno) after the message: `FILE: MESSAGE: No such file`. file may be NULL. */
int k3_fail_errno(k3_err *err, const char *file, const char *fmt, ...) K3_PRINTF(3, 4);

/* ---- the program around the library ---------------------------------------- */

extern const char *k3_prog;  /* the program's name, for messages */
extern int k3_verbosity;     /* -1 quiet, 0 normal, 1 and up verbose */

/* First call of main: names the program, ignores SIGPIPE and SIGXFSZ (a write then
 * fails with EPIPE or EFBIG), and gives a standard descriptor that came in closed a stand-in
 * on which every read or write fails, so that no file opened later takes its number. */
void k3_prog_start(const char *name);

/* Copies `text` to out[cap], escaped so that it is one line of valid UTF-8 that a terminal shows as it stands: bytes
 * that are no UTF-8, DEL and controls below 32 become \n, \t or \xHH, other controls and invisible characters
 * (directions, joiners, line separators) \uHHHH, a byte order mark <BOM>. Returns the bytes written, without the
 * NUL; what does not fit is left out, whole characters at a time. */
size_t k3_printable(char *out, size_t cap, const char *text);

/* What is wrong with a text that begins with a byte order mark, as the rest of a message; NULL if it has none. */
const char *k3_byte_order_mark(const void *data, size_t size);

/* One line on stderr, `PROG: MESSAGE`, unless quiet; as k3_printable shows it. */
void k3_note(const char *fmt, ...) K3_PRINTF(1, 2);

/* Prints err as `PROG: TEXT` (also when quiet) and returns the exit status for it;
 * K3_EPIPE prints nothing and gives 0. */
int k3_report_error(const k3_err *err);

/* Last call of main: flushes and closes stdout and returns the exit status:
 * `status` if not 0, K3_ESYS with a message if the output could not be
 * written, 0 if the reader went away. */
int k3_prog_end(int status);

/* K3_EPIPE or K3_ESYS for a failed write (errno) to the stream called `name`. */
int k3_fail_write(k3_err *err, const char *name);

/* Set by SIGINT, SIGTERM or SIGHUP after k3_catch_signals(); long loops look at it.
 * A second signal kills at once. Without k3_catch_signals() a signal removes
 * unfinished temporary files and kills. */
extern volatile sig_atomic_t k3_interrupted;
void k3_catch_signals(void);
/* After a first signal has had its effect: the next one counts as the first again. */
void k3_catch_again(void);

/* read(2), but one of those signals ends the wait for input with -1, EINTR and
 * k3_interrupted set, also if it came just before or was taken by another thread. */
ssize_t k3_read_wait(int fd, void *buf, size_t size);

/* Removes unfinished temporary files and dies by the signal that was caught. */
void k3_die_by_signal(void);

/* ---- strict numbers ---------------------------------------------------------- */
/* `what` names the option or field in the message; all return K3_EUSAGE for
 * anything but one complete number inside the range. */

/* Decimal digits only, from min to max. */
int k3_num_u64(const char *text, const char *what, uint64_t min, uint64_t max, uint64_t *out, k3_err *err);
/* Decimal, with a fraction and an exponent if need be: 1, -0.5, 1e-3; no plus sign in front, no inf, no nan. */
int k3_num_double(const char *text, const char *what, double min, double max, double *out, k3_err *err);

/* A size: digits with an optional fraction and K M G T (10^3n) or Ki Mi Gi Ti (2^10n),
 * optionally followed by B. A bare number counts `bare` bytes (1 for --memory, 10^9 for --trunk-gb). */
int k3_num_size(const char *text, const char *what, uint64_t bare, uint64_t *out, k3_err *err);
/* A size in bytes from min to max. */
int k3_num_size_within(const char *text, const char *what, uint64_t min, uint64_t max, uint64_t *out, k3_err *err);

/* "25.83 GB" in buf (at least 24 bytes), decimal units; returns buf. */
char *k3_fmt_bytes(char *buf, uint64_t bytes);
/* "981173106.500000000" for a time in ns since 1970, "-1.500000000" for one before, in buf (at least 24 bytes); returns buf. */
char *k3_fmt_time(char *buf, int64_t ns);

/* 128 bits by which files name the model that they belong to; 0, 0 if it is not known. */
typedef struct k3_fingerprint {
    uint64_t lo, hi;
} k3_fingerprint;

enum { K3_FINGERPRINT_TEXT = 33 };

/* 32 hexadecimal digits in buf (K3_FINGERPRINT_TEXT bytes); returns buf. */
char *k3_fingerprint_text(char *buf, k3_fingerprint f);
static inline bool k3_fingerprint_equal(k3_fingerprint a, k3_fingerprint b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

/* a*b or a+b in *out; false on overflow. */
bool k3_mul_u64(uint64_t a, uint64_t b, uint64_t *out);
bool k3_add_u64(uint64_t a, uint64_t b, uint64_t *out);

/* ---- options ------------------------------------------------------------------- */

/* What an option's value is and what its destination holds. */
typedef enum k3_opt_type {
    K3_OPT_FLAG,    /* takes no value; a bool becomes true */
    K3_OPT_NO_FLAG, /* takes no value; a bool becomes false */
    K3_OPT_ON_OFF,  /* "on" or "off"; a bool */
    K3_OPT_TEXT,    /* anything; a const char *, into argv */
    K3_OPT_WORD,    /* one of `words`; an int, its place among them from 0 */
    K3_OPT_INT,     /* a whole number from min to max; an int */
    K3_OPT_U64,     /* the same; a uint64_t */
    K3_OPT_SIZE,    /* a size in bytes, such as 24G, from min to max; a uint64_t */
    K3_OPT_DOUBLE,  /* a number from low to high; a double */
    K3_OPT_CALL,    /* what `take` makes of it */
    K3_OPT_HELP, K3_OPT_VERSION, K3_OPT_VERBOSE, K3_OPT_QUIET /* those of K3_COMMON_OPTS */
} k3_opt_type;

/* One row of a program's option table; the table ends with a row whose name is NULL, and has at most 128 rows.
 * Parsing, help and shell completion follow from it. */
typedef struct k3_opt {
    const char *name;   /* long name without dashes */
    int letter;         /* short form, or 0 */
    const char *arg;    /* name of its value in the help, or NULL for a flag */
    const char *help;   /* one line; "\n" continues on an indented one */
    k3_opt_type type;
    size_t at;          /* offsetof(its destination) in the program's options */
    uint64_t min, max;  /* of INT, U64 and SIZE; max 0: the largest that the destination holds */
    double low, high;   /* of DOUBLE */
    const char *words;  /* of WORD, as "lru|layers|lfu"; for other types, what completion offers */
    int (*take)(void *options, const char *value, k3_err *err); /* of CALL; value NULL for a flag */
    uint32_t verbs;     /* bits of the verbs that it goes with, for k3_opt_only; 0: all */
} k3_opt;

/* Rows that every program has. */
#define K3_COMMON_OPTS                                                        \
    {"help", 'h', NULL, "print this help and exit", K3_OPT_HELP},             \
    {"version", 'V', NULL, "print the version and exit", K3_OPT_VERSION},     \
    {"verbose", 'v', NULL, "say more on standard error", K3_OPT_VERBOSE},     \
    {"quiet", 'q', NULL, "say nothing but errors on standard error", K3_OPT_QUIET}

typedef struct k3_args {
    int argc;
    char **argv;          /* argv[0] is skipped */
    const k3_opt *table;
    const char *usage;    /* the lines of --help above the options */
    /* filled by k3_opt_parse: */
    bool given[128];      /* row i of the table was given */
    int noperands;
    char **operands;      /* points into argv, which is reordered */
} k3_args;

/* Reads a whole command line: options into the struct `options` as the table says, operands into args. Options and
 * operands may be mixed; "--" ends options; "-" is an operand; no abbreviations. -v and -q set k3_verbosity.
 * --help and --version are printed, and *done is then true: the program ends with 0. K3_EUSAGE for misuse. */
int k3_opt_parse(k3_args *args, void *options, bool *done, k3_err *err);

/* Whether the option of that long name, which must be in the table, was given. */
bool k3_opt_given(const k3_args *args, const char *name);

/* K3_EUSAGE for an option that was given and does not go with the verb of that bit: "--json does not go with VERB". */
int k3_opt_only(const k3_args *args, uint32_t bit, const char *verb, k3_err *err);

/* K3_EUSAGE if more than one of `names`, such as "tsv|json", was given: "--tsv and --json exclude each other". */
int k3_opt_one_of(const k3_args *args, const char *names, k3_err *err);

/* The next word of a list in buf (of at least 4 bytes), one that is longer cut and ended with "..."; false at the end.
 * Empty words are words. */
bool k3_opt_word(const char **list, char separator, char *buf, size_t size);

/* The place of a word in "lru|layers|lfu", from 0, or -1. */
int k3_opt_find(const char *words, const char *word);

/* Leaves *model if it is given, else $K3_MODEL; K3_EUSAGE if that is not set either. */
int k3_opt_model(const char **model, k3_err *err);

/* Prints `usage` (the lines above the options), then the table aligned. */
void k3_opt_help(FILE *to, const char *usage, const k3_opt *table);

/* "k3-tok 0.1.0 (commit 69c7e14a2b3c)" to stdout, the commit only where it is known. */
void k3_print_version(void);

/* The commit that was built, with "-dirty" after it if files differed from it; "" if it was not built in a clone. */
const char *k3_commit(void);

/* An environment variable; NULL if it is not set or empty. */
const char *k3_env(const char *name);

/* ---- files that appear whole ------------------------------------------------------ */

typedef struct k3_file k3_file;

/* Opens a temporary beside `path` for writing; the name `path` appears at
 * commit only. A target that exists and is no regular file (a pipe, /dev/full),
 * or that names an open descriptor (/dev/stdout, /dev/fd/3), is written directly.
 * K3_ESYS names the path. */
int k3_file_create(k3_file **file, const char *path, k3_err *err);
/* The same for content that is of use unfinished: if the run is killed, what was written stays as PATH.*.part. */
int k3_file_create_part(k3_file **file, const char *path, k3_err *err);
FILE *k3_file_stream(k3_file *file);        /* buffered, owned by the k3_file */
bool k3_file_is_direct(const k3_file *file); /* written directly: may not be seekable */
/* Flush, fsync, rename, fsync of the folder; frees the handle either way and leaves no temporary. */
int k3_file_commit(k3_file **file, k3_err *err);
/* Removes the temporary and frees; NULL is fine. */
void k3_file_abort(k3_file **file);

/* For files of other kinds, once they are flushed: rename, fsync of the folder. */
int k3_put_in_place(const char *temp, const char *path, k3_err *err);

/* Whether a file could appear there: K3_ESYS as k3_file_create would, for what is written at the end of long work. What
 * exists and is no regular file is not touched. */
int k3_file_probe(const char *path, k3_err *err);

/* Reads a whole file of at most `max` bytes; *data is malloc'ed with a NUL after it. */
int k3_read_file(const char *path, uint64_t max, char **data, size_t *size, k3_err *err);

/* pread until `size` bytes are there, in reads of at most 1 GiB; K3_EDATA if
 * the file ends first (offset and both sizes named), K3_ESYS on an error. */
int k3_pread_full(int fd, const char *name, void *buf, uint64_t size, uint64_t offset, k3_err *err);

/* ---- .npy arrays ---------------------------------------------------------------------- */

#define K3_NPY_MAXDIM 8
typedef struct k3_npy {
    char dtype[8];                  /* "<f4" "<f8" "<i4" "<i8" "<u4" "<u2" "|u1" */
    int ndim;                       /* 0..K3_NPY_MAXDIM */
    uint64_t shape[K3_NPY_MAXDIM];
    uint64_t count;                 /* product of shape */
    size_t itemsize;
    void *data;                     /* malloc'ed, C order; k3_npy_free */
} k3_npy;

/* Reads one array from a stream (a pipe too) called `name` in messages. C
 * order and the dtypes above only. K3_EDATA for anything else and for a short file. */
int k3_npy_read(FILE *from, const char *name, k3_npy *a, k3_err *err);
void k3_npy_free(k3_npy *a);
/* Header for an array of that shape; always 128 bytes for ndim <= 3, so that it can be rewritten. */
int k3_npy_write_header(FILE *to, const char *name, const char *dtype, int ndim, const uint64_t *shape, k3_err *err);
/* Header and data. `itemsize` follows from dtype. */
int k3_npy_write(FILE *to, const char *name, const char *dtype, int ndim, const uint64_t *shape, const void *data,
                 k3_err *err);

/* ---- threads, clock, memory -------------------------------------------------------------- */

typedef struct k3_pool k3_pool;

/* A thread with a stack of 512 KiB, whatever the limits and the C library say, and all signals blocked: they are the
 * main thread's. Returns 0 or an error number, as pthread_create. */
int k3_thread_start(pthread_t *thread, void *(*fn)(void *), void *arg);

/* Physical cores inside the affinity mask and the cgroup CPU quota; at least 1. */
int k3_threads_default(void);

/* `threads` workers, the caller being worker 0. They sleep between regions
 * after a spin of some microseconds. NULL pool means one thread. */
int k3_pool_new(k3_pool **pool, int threads, k3_err *err);
int k3_pool_size(const k3_pool *pool);
/* Runs fn(arg, worker, workers) on every worker and returns when all are done. Not reentrant. */
void k3_pool_run(k3_pool *pool, void (*fn)(void *arg, int worker, int workers), void *arg);
void k3_pool_free(k3_pool *pool);
/* The [*begin, *end) share of n items for one worker, in multiples of `grain`. */
void k3_share(size_t n, size_t grain, int worker, int workers, size_t *begin, size_t *end);

double k3_now(void);             /* seconds, monotonic */
uint64_t k3_peak_rss(void);      /* VmHWM in bytes, 0 if unknown */
/* What a process may still use: the least of MemAvailable and, for its cgroup and every one above (v1 and
 * v2), limit (memory.high of v2 too) - used + the page cache that can be given back, less 1/256 for the kernel's
 * tables. Bytes. Where the kernel does not say what is available, what sysinfo(2) calls free, or `wanted` if that is
 * more: not to know is no reason to refuse. */
uint64_t k3_memory_limit(uint64_t wanted);

/* ---- progress line -------------------------------------------------------------------------- */

enum { K3_PROGRESS_AUTO, K3_PROGRESS_ON, K3_PROGRESS_OFF };
extern int k3_progress_mode; /* --progress; on: also where stderr is no terminal */

/* Rewrites one line on stderr, cut to the terminal's width, if it is a terminal and the program is not quiet;
 * at most ten times a second unless `force`. k3_progress_end clears it. */
void k3_progress(bool force, const char *fmt, ...) K3_PRINTF(2, 3);
/* The same for a job that has done so many bytes of a total since `began` on the clock: with rate and time left. */
void k3_progress_bytes(const char *verb, uint64_t done, uint64_t total, double began);
void k3_progress_end(void);

/* Temporaries known to the signal handler; used by k3_file and other writers of temporaries. */
void k3_temp_add(const char *path);
void k3_temp_remove(const char *path);

#ifdef __cplusplus
}
#endif

#endif
