/* SPDX-License-Identifier: Apache-2.0 */
/* Prompts from standard input, one a line. */
#include "input.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

void input_start(struct input *in, uint32_t vocab)
{
    in->reader = (k3_id_reader){.name = "standard input", .vocab = vocab};
    in->at = in->end = in->buf;
    in->line = (k3_ids){0};
    in->lines = 0;
    in->said = in->ended = in->closed = false;
}

void input_free(struct input *in)
{
    k3_ids_free(&in->line);
}

/* More bytes into the buffer; in->ended at the end of the input. A read takes
 * what is there, so a prompt is answered as soon as its line is complete. */
static int refill(struct input *in, k3_err *err)
{
    ssize_t n = k3_read_wait(0, in->buf, sizeof in->buf);
    if (n < 0 && !k3_interrupted)
        return k3_fail_errno(err, "standard input", "cannot read");
    in->at = in->buf;
    in->end = in->buf + (n > 0 ? n : 0);
    in->ended = n == 0;
    return 0;
}

static bool readable(void)
{
    struct pollfd p = {.fd = 0, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

/* Whoever starts the program without input has to know what it waits for. */
static void say_once(struct input *in)
{
    if (!in->said && isatty(0))
        k3_note("reading prompts from the terminal: ids in decimal, one prompt a line; Ctrl-D ends them");
    in->said = true;
}

static int add_id(k3_ids *ids, uint32_t id, k3_err *err)
{
    int status = k3_ids_reserve(ids, 1, err);
    if (!status)
        ids->id[ids->n++] = id;
    return status;
}

static int hand_out(struct input *in, k3_ids *ids, bool *got)
{
    *ids = in->line;
    in->line = (k3_ids){0};
    in->lines++;
    *got = true;
    return 0;
}

/* The last line may lack its newline; it is a prompt if it holds an id. */
static int last_line(struct input *in, k3_ids *ids, bool *got, k3_err *err)
{
    uint32_t id;
    int status, event = k3_id_end(&in->reader, &id, err);
    in->closed = true;
    if (event == K3_ID_VALUE && (status = add_id(&in->line, id, err)))
        return status;
    if (event != K3_ID_VALUE && event != K3_ID_MORE)
        return event;
    return in->line.n ? hand_out(in, ids, got) : 0;
}

int input_line(struct input *in, bool wait, k3_ids *ids, bool *got, k3_err *err)
{
    uint32_t id;
    int status;
    *got = false;
    while (!in->closed) {
        int event = k3_id_next(&in->reader, &in->at, in->end, &id, err);
        if (event == K3_ID_LINE)
            return hand_out(in, ids, got);
        if (event == K3_ID_VALUE) {
            if ((status = add_id(&in->line, id, err)))
                return status;
        } else if (event != K3_ID_MORE) {
            return event;
        } else if (in->ended) {
            return last_line(in, ids, got, err);
        } else if (!wait && !readable()) {
            return 0;
        } else {
            say_once(in);
            if ((status = refill(in, err)) || k3_interrupted)
                return status;
        }
    }
    return 0;
}
