/* SPDX-License-Identifier: Apache-2.0 */
/* k3-decode: ids in, ids out.
 *
 * Reads one prompt a line as decimal ids, continues them with the weights of a
 * checkpoint that need not fit in memory, and writes each id as soon as it is
 * known. */
#include "options.h"
#include "prepare.h"
#include "report.h"
#include "resume.h"
#include "session.h"

#include <unistd.h>

/* Plan and descriptions: done when this returns true. */
static bool only_talk(const struct options *o, int *status, k3_err *err)
{
    if (o->plan)
        *status = print_plan(o, err);
    else if (o->describe)
        *status = resume_describe(o, err);
    else
        return false;
    if (*status)
        k3_report_error(err);
    return true;
}

/* Every line, then the files that were asked for, unless the weights changed meanwhile. */
static int decode(struct session *s, k3_err *err)
{
    k3_catch_signals();
    int status = session_run(s, err);
    k3_progress_end();
    if (!status)
        status = k3_index_unchanged(s->engine.index, err);
    return status ? status : session_commit(s, err);
}

/* What the run did: on stderr, in the report, and what went wrong. Returns the status to end with. */
static int tell(struct session *s, k3_file **report, int status, k3_err *err)
{
    k3_err late = {0};
    engine_stop(&s->engine);
    /* The text that the ids became, behind a pipe, has most likely no newline at its end. */
    if (s->out.wrote && !isatty(1) && s->out.watched && isatty(2) && k3_verbosity >= 0)
        fputc('\n', stderr);
    /* A failure has one line, unless more is asked for; a reader that went away wants none. */
    if (k3_interrupted || k3_verbosity > 0 || (!status && !session_unread(s)))
        report_short(s, status);
    if (*report && report_write(s, report, status, err, &late) && !status)
        status = (*err = late).status;
    if (!status && session_unread(s))
        *err = (k3_err){.status = status = K3_EPIPE};
    return status ? k3_report_error(err) : 0;
}

int main(int argc, char **argv)
{
    struct options o;
    struct session *s = NULL;
    k3_file *report = NULL;
    k3_err err = {0};

    k3_prog_start("k3-decode");
    bool done;
    int status = options_parse(&o, argc, argv, &done, &err);
    if (status || done)
        return k3_prog_end(status ? k3_report_error(&err) : 0);
    if (only_talk(&o, &status, &err))
        return k3_prog_end(status);

    /* What will be written is opened before any work is done. */
    if (o.report)
        status = k3_file_create(&report, o.report, &err);
    if (!status)
        status = session_open(&s, &o, &err);
    if (status) {
        k3_file_abort(&report);
        session_close(s);
        return k3_prog_end(k3_report_error(&err));
    }
    status = decode(s, &err);
    status = tell(s, &report, status, &err);
    session_close(s);
    if (k3_interrupted)
        k3_die_by_signal();
    return k3_prog_end(status);
}
