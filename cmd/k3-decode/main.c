/* k3-decode: ids in, ids out.
 *
 * Reads one prompt a line as decimal ids, continues them with the weights of a
 * checkpoint that need not fit in memory, and writes each id as soon as it is
 * known. */
#include "decode.h"

/* Help, plan and descriptions are done when this returns true. */
static bool only_talk(struct options *o, int *status, k3_err *err)
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

int main(int argc, char **argv)
{
    struct options o;
    struct engine e = {0};
    k3_file *report = NULL;
    k3_err err = {0}, late = {0};

    k3_prog_start("k3-decode");
    int status = options_parse(&o, argc, argv);
    if (status)
        return k3_prog_end(status - 1);
    if (only_talk(&o, &status, &err))
        return k3_prog_end(status);

    /* What will be written is opened before any work is done. */
    if ((o.report && (status = k3_file_create(&report, o.report, &err))) || (status = engine_open(&e, &o, &err))) {
        k3_file_abort(&report);
        engine_close(&e);
        return k3_prog_end(k3_report_error(&err));
    }
    k3_catch_signals();
    status = engine_run(&e, &err);
    k3_progress_end();
    if (k3_interrupted && !err.status)
        status = 0; /* a pass that was stopped has not failed */
    if (!status && !k3_interrupted)
        status = engine_finish(&e, &err);

    engine_stop(&e);
    if (!status || k3_interrupted || k3_verbosity > 0) /* a failure has one line, unless more is asked for */
        report_short(&e, status);
    if (report && report_write(&e, &report, status, &err, &late) && !status)
        status = (err = late).status;
    if (k3_interrupted) {
        engine_close(&e);
        k3_die_by_signal();
    }
    if (status)
        status = k3_report_error(&err);
    engine_close(&e);
    return k3_prog_end(status);
}
