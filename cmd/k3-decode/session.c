/* SPDX-License-Identifier: Apache-2.0 */
/* From lines of input to lines of output. */
#include "session.h"
#include "stream/stream.h"
#include "resume.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_HELD = 1 << 14, /* lines read and not yet written, so that a slow first one cannot fill the memory */
    ROOM = 4096,         /* positions planned for at first where it is not known how many there will be */
};

int session_open(struct session **out, const struct options *o, k3_err *err)
{
    int status;
    struct session *s = *out = calloc(1, sizeof *s);
    if (!s)
        return k3_fail(err, K3_ESYS, "out of memory");
    s->o = o;
    watch_start(&s->step.watch, &s->engine);
    if ((status = engine_open(&s->engine, o, err)) || (status = output_open(&s->out, o, err)) ||
        (status = step_open(&s->step, &s->engine, &s->out, err)))
        return status;
    input_start(&s->in, (uint32_t)s->engine.c->vocab);
    s->step.most = o->context ? o->context : s->engine.c->max_positions;
    return o->save_state ? k3_file_probe(o->save_state, err) : 0;
}

int session_commit(struct session *s, k3_err *err)
{
    k3_err late = {0};
    int status = output_commit(&s->out, err), step = step_commit(&s->step, status ? &late : err);
    return status ? status : step;
}

bool session_unread(const struct session *s)
{
    return s->out.gone || s->step.record.gone;
}

void session_close(struct session *s)
{
    if (!s)
        return;
    for (struct sequence *q = s->first, *next; q; q = next) {
        next = q->next;
        sequence_free(q);
    }
    k3_ids_free(&s->heard);
    k3_state_free(s->heard_state);
    input_free(&s->in);
    output_abort(&s->out);
    step_close(&s->step);
    engine_close(&s->engine);
    free(s);
}

/* ---- read ---- */

/* One sequence for the line, which takes the ids over. */
static int add_sequence(struct session *s, k3_ids ids, uint32_t sample, k3_err *err)
{
    struct sequence *q = sequence_new(s->lines, ids);
    if (!q)
        return k3_fail(err, K3_ESYS, "out of memory");
    q->sample = sample;
    q->number = s->o->converse ? 0 : (uint32_t)s->lines;
    *(s->last ? &s->last->next : &s->first) = q;
    s->last = q;
    s->unwritten = s->unwritten ? s->unwritten : q;
    s->waiting = s->waiting ? s->waiting : q;
    s->nwaiting++;
    s->nunwritten++;
    s->step.watch.lines = ++s->lines;
    if (!s->o->load_state || (s->o->converse && q->line))
        return 0;
    return resume_ids(s->o->load_state, s->engine.c->vocab, s->o->resume, q, err);
}

/* A line, as often as it is to be answered. */
static int add_line(struct session *s, k3_ids ids, k3_err *err)
{
    uint32_t last = (uint32_t)s->o->samples - 1;
    for (uint32_t i = 0; i < last; i++) {
        k3_ids copy = {0};
        int status = k3_ids_reserve(&copy, ids.n, err);
        if (!status && ids.n)
            memcpy(copy.id, ids.id, ids.n * sizeof *ids.id);
        copy.n = ids.n;
        if (status || (status = add_sequence(s, copy, i, err))) {
            k3_ids_free(&ids);
            return status;
        }
    }
    return add_sequence(s, ids, last, err);
}

/* Reads lines until `most` wait; blocks for the first only if nothing runs. */
static int read_lines(struct session *s, size_t most, k3_err *err)
{
    while (s->nwaiting < most && s->nunwritten < MOST_HELD) {
        bool got, wait = !s->nactive && !s->nwaiting;
        k3_ids ids;
        if (s->bad || (s->bad = input_line(&s->in, wait, &ids, &got, &s->why)) || !got)
            return 0;
        if (s->o->save_state && s->lines && !s->o->converse) {
            k3_ids_free(&ids);
            s->bad = k3_fail(&s->why, K3_EUSAGE, "--save-state keeps the state of one line; a second one came");
            return 0;
        }
        int status = add_line(s, ids, err);
        if (status)
            return status;
    }
    return 0;
}

/* ---- written, in order ---- */

static void let_go(struct session *s)
{
    struct sequence *q = s->first;
    s->gone_prompt += q->prompt - q->past;
    s->gone_out += q->ids.n - q->prompt;
    s->first = q->next;
    s->last = s->first ? s->last : NULL;
    sequence_free(q);
}

/* Writes what can be written: lines that are done, and what there is of the first that is not. */
static int write_lines(struct session *s, k3_err *err)
{
    while (s->unwritten) {
        struct sequence *q = s->unwritten;
        int status = output_in_turn(&s->out) ? output_news(&s->out, q, err) : 0;
        s->step.watch.hushed = s->out.watched && s->out.wrote;
        if (status || !q->done)
            return status;
        s->unwritten = q->next;
        s->nunwritten--;
        if (!s->o->report)
            let_go(s);
    }
    return 0;
}

/* ---- admitted ---- */

/* Positions that the sequence will need; where --gen is max, for now. */
static uint64_t reach(const struct session *s, const struct sequence *q)
{
    if (s->o->gen != GEN_MAX)
        return q->prompt + s->o->gen;
    uint64_t n = s->o->context ? s->o->context : q->prompt + ROOM;
    return n < s->step.most ? n : s->step.most;
}

static struct demand waiting_demand(const struct session *s)
{
    struct demand d = {0};
    for (const struct sequence *q = s->waiting; q; q = q->next) {
        if (q->fed == q->ids.n)
            continue;
        d.sequences++;
        d.prompt += q->ids.n - q->fed;
        d.positions = reach(s, q) > d.positions ? reach(s, q) : d.positions;
    }
    return d;
}

/* --converse: the line takes over what those before it have left. */
static int join(struct session *s, struct sequence *q, k3_err *err)
{
    int status = q->line ? sequence_precede(q, s->heard.id, s->heard.n, s->heard_fed, err) : 0;
    q->past = q->line ? s->heard.n : 0;
    q->state = s->heard_state;
    q->joined = true;
    s->heard_state = NULL;
    return status;
}

/* And leaves it to the next one. */
static int leave(struct session *s, struct sequence *q, k3_err *err)
{
    s->heard.n = 0;
    int status = k3_ids_reserve(&s->heard, q->ids.n, err);
    if (status)
        return status;
    if (q->ids.n)
        memcpy(s->heard.id, q->ids.id, q->ids.n * sizeof *q->ids.id);
    s->heard.n = q->ids.n;
    s->heard_fed = q->fed;
    s->heard_state = q->state;
    q->state = NULL;
    return 0;
}

/* Makes the first waiting line ready; those without ids to feed are done when it is their turn. */
static int ready_line(struct session *s, k3_err *err)
{
    int status = 0;
    while (!status && s->waiting) {
        struct sequence *q = s->waiting;
        if (s->o->converse && s->nactive)
            return 0;
        if (s->o->converse && !q->joined)
            status = join(s, q, err);
        if (status || q->fed < q->ids.n)
            return status;
        if (s->o->converse)
            status = leave(s, q, err);
        q->done = true;
        s->waiting = q->next;
        s->nwaiting--;
    }
    return status;
}

static bool planned_for(const struct session *s, const struct sequence *q)
{
    return s->engine.plan && reach(s, q) <= s->engine.plan->positions;
}

/* Source, workspace, hooks, trace and drafts for a demand, with room for `roomy` positions if there is memory. */
static int open_for(struct session *s, struct demand d, uint64_t roomy, k3_state *keep, k3_err *err)
{
    uint64_t least = d.positions;
    d.positions = roomy > least ? roomy : least;
    int status = engine_prepare(&s->engine, &d, keep, err);
    if (status == K3_ESYS && d.positions > least) {
        *err = (k3_err){0};
        d.positions = least;
        status = engine_prepare(&s->engine, &d, keep, err);
    }
    return status ? status : step_attach(&s->step, err);
}

/* Where nothing runs and the first waiting line needs more than was planned for: a plan for all that wait. */
static int prepare_for_waiting(struct session *s, k3_err *err)
{
    const struct sequence *q = s->waiting;
    if (!q || s->nactive || planned_for(s, q))
        return 0;
    if (s->step.record.trace) /* a new plan empties the cache, which a trace cannot say */
        return k3_fail(err, K3_EUSAGE, "line %" PRIu64 " needs %" PRIu64 " positions and %" PRIu64
                       " were planned for; with --trace give --context %" PRIu64,
                       q->line + 1, reach(s, q), s->engine.plan->positions, reach(s, q));
    struct demand d = waiting_demand(s);
    uint64_t roomy = s->o->converse ? 2 * d.positions > ROOM ? 2 * d.positions : ROOM : d.positions;
    return open_for(s, d, roomy, q->state, err);
}

/* --gen max: an answer that has used its room gets twice as much, as long as there is memory for it. */
static int make_room(struct session *s, k3_err *err)
{
    if (s->o->gen != GEN_MAX || s->o->context || s->nactive != 1)
        return 0;
    uint64_t old = s->engine.plan->positions, want = 2 * old < s->step.most ? 2 * old : s->step.most;
    if (s->active[0]->ids.n + 1 + s->engine.plan->draft <= old || old >= s->step.most)
        return 0;
    if (s->step.record.trace) {
        s->step.most = old; /* as far as the trace can follow */
        return 0;
    }
    struct demand d = {.sequences = 1, .prompt = 1, .positions = old};
    int status = open_for(s, d, want, s->active[0]->state, err);
    if (!status && s->engine.plan->positions <= old)
        s->step.most = old;
    return status;
}

static int start(struct session *s, struct sequence *q, k3_err *err)
{
    if (s->o->gen == GEN_MAX && q->prompt >= s->step.most)
        return k3_fail(err, K3_EDATA, "line %" PRIu64 ": its %" PRIu64 " ids leave no room for an answer in %" PRIu64 " positions",
                       q->line + 1, (uint64_t)q->prompt, s->step.most);
    bool fresh = !q->state;
    int status = fresh ? engine_new_state(&s->engine, &q->state, err) : 0;
    if (!status && fresh && q->fed)
        status = k3_index_check_weights(s->engine.index, err);
    if (!status && fresh && q->fed)
        status = resume_state(s->o->load_state, k3_index_fingerprint(s->engine.index), q, err);
    q->admitted = k3_now();
    if (reach(s, q) > s->engine.c->max_positions)
        k3_note("warning: line %" PRIu64 " needs %" PRIu64 " positions, the model was made for %" PRIu64, q->line + 1, reach(s, q),
                s->engine.c->max_positions);
    return status;
}

/* Lets waiting lines join while there is room. A longer one than planned for waits until nothing runs. */
static int admit(struct session *s, k3_err *err)
{
    for (;;) {
        int status = ready_line(s, err);
        struct sequence *q = s->waiting;
        if (status || !q || !planned_for(s, q) || s->nactive == s->engine.plan->sequences)
            return status;
        if ((status = start(s, q, err)))
            return status;
        s->active[s->nactive++] = q;
        s->waiting = q->next;
        s->nwaiting--;
    }
}

/* ---- retired ---- */

static int save(struct session *s, struct sequence *q, k3_err *err)
{
    int status = resume_save(s->o->save_state, k3_index_fingerprint(s->engine.index), q, err);
    s->saved = !status;
    return status;
}

/* Finished sequences leave; their state goes with them. */
static int retire(struct session *s, k3_err *err)
{
    size_t kept = 0;
    int status = 0;
    for (size_t i = 0; i < s->nactive; i++) {
        struct sequence *q = s->active[i];
        if (!q->done) {
            s->active[kept++] = q;
            continue;
        }
        if (s->o->save_state && !status)
            status = save(s, q, err);
        if (s->o->converse && !status)
            status = leave(s, q, err);
        engine_free_state(&s->engine, &q->state);
    }
    s->nactive = kept;
    return status;
}

/* What is active ends here. */
static void end_active(struct session *s)
{
    for (size_t i = 0; i < s->nactive; i++) {
        s->active[i]->done = true;
        s->active[i]->ended = k3_now();
    }
}

/* ---- all of it ---- */

/* --converse: a SIGINT ends an answer at hand, and not the run. */
static bool cut_short(const struct session *s)
{
    return s->o->converse && k3_interrupted == SIGINT && s->nactive;
}

/* Whether the run ends before its input does. */
static bool stopped(const struct session *s)
{
    return session_unread(s) || (k3_interrupted && !cut_short(s));
}

/* Lines, until none is left or something stops the run. */
static int run(struct session *s, k3_err *err)
{
    size_t ahead = s->o->batch ? s->o->batch : MOST_TOGETHER;
    int status = 0;
    while (!status) {
        if ((status = read_lines(s, ahead, err)) || stopped(s))
            break;
        if ((status = ready_line(s, err)) || (status = prepare_for_waiting(s, err)) || (status = admit(s, err)) ||
            (status = make_room(s, err)) || stopped(s))
            break;
        if (s->nactive)
            status = step_run(&s->step, s->active, s->nactive, s->waiting != NULL, err);
        if (stopped(s))
            break;
        if (cut_short(s)) {
            end_active(s);
            k3_catch_again();
        }
        if (!status && !(status = retire(s, err)))
            status = write_lines(s, err);
        if (!s->nactive && !s->waiting && (s->in.closed || s->bad))
            break;
    }
    return status;
}

/* What is begun is left as far as it came. A pass that was abandoned leaves no state, and none was asked for. */
static int wind_up(struct session *s, k3_err *err)
{
    end_active(s);
    int status = retire(s, err);
    if (!status && s->o->save_state && !s->saved)
        k3_note("%s: not written: no line was begun", s->o->save_state);
    return status ? status : write_lines(s, err);
}

int session_run(struct session *s, k3_err *err)
{
    int status = run(s, err);
    if (stopped(s) && !err->status)
        return wind_up(s, err);
    if (!status && !s->bad && s->o->save_state && !s->saved)
        status = k3_fail(err, K3_EDATA, "%s: not written: no line had ids to feed", s->o->save_state);
    if (!status && s->bad)
        *err = s->why;
    return status ? status : s->bad;
}
