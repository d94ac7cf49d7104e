/* k3-decode: ids in, ids out.
 *
 * Reads one prompt a line as decimal ids, decodes greedily with the weights of
 * a checkpoint, and writes each id as soon as it is known. */
#include "decode.h"

#include <stdlib.h>

/* Prompt after prompt until the input ends, something fails, or a signal comes. */
static int run_all(struct engine *e, k3_err *err)
{
    struct input *in = malloc(sizeof *in);
    if (!in)
        return k3_fail(err, K3_ESYS, "out of memory");
    input_start(in, (uint32_t)e->c->vocab);
    int status = 0;
    while (!status) {
        struct sequence s = {0};
        bool got;
        if ((status = input_line(in, &s.prompt, &got, err)) || !got) {
            k3_ids_free(&s.prompt);
            break;
        }
        status = engine_run(e, &s, err);
    }
    free(in);
    return status;
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
    if (o.plan) {
        if ((status = print_plan(&o, &err)))
            k3_report_error(&err);
        return k3_prog_end(status);
    }
    if ((o.report && (status = k3_file_create(&report, o.report, &err))) || (status = engine_open(&e, &o, &err))) {
        k3_file_abort(&report);
        engine_close(&e);
        return k3_prog_end(k3_report_error(&err));
    }
    k3_catch_signals();
    status = run_all(&e, &err);
    k3_progress_end();

    if (!status)
        status = logits_commit(&e.logits, &err);
    report_short(&e, status);
    if (report && report_write(&e, &report, status, &err, &late))
        status = status ? status : (err = late, late.status);
    if (k3_interrupted) {
        engine_close(&e);
        k3_die_by_signal();
    }
    if (status)
        status = k3_report_error(&err);
    engine_close(&e);
    return k3_prog_end(status);
}
