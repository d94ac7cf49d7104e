/* SPDX-License-Identifier: Apache-2.0 */
/* input.h - prompts from standard input, one a line. */
#ifndef INPUT_H
#define INPUT_H

#include "k3_text.h"

struct input {
    k3_id_reader reader;
    char buf[65536];
    const char *at, *end;
    k3_ids line;          /* the line in progress */
    uint64_t lines;       /* handed out */
    bool said;            /* that a terminal is waited for */
    bool ended;           /* no more bytes will come */
    bool closed;          /* no more lines will come */
};
void input_start(struct input *in, uint32_t vocab);
/* The next line, as ids that the caller frees; *got false if there is none: at
 * the end, or, unless `wait`, as long as it is not there yet, or when a signal ends the wait. */
int input_line(struct input *in, bool wait, k3_ids *ids, bool *got, k3_err *err);
void input_free(struct input *in);

#endif
