/* SPDX-License-Identifier: Apache-2.0 */
/* parse.h - the message that a parser is in. */
#ifndef K3_PARSE_PRIVATE_H
#define K3_PARSE_PRIVATE_H

#include "json_text.h"

enum { PARSE_OPEN, PARSE_CLOSE, PARSE_SEP, PARSE_END, PARSE_MEDIA, PARSE_EOS, PARSE_CONTROLS };

enum place { OUTSIDE, IN_MESSAGE, IN_THINK, IN_RESPONSE, IN_TOOLS, IN_CALL, IN_ARGUMENT, IN_JSON };

/* What is known of a message. */
typedef struct k3_built {
    bool any, assistant, responded;
    k3_bytes role, name, tool, type; /* attributes */
    k3_bytes thinking, content;
    k3_bytes parts;                  /* JSON of the content parts before `content`, if there are images */
    k3_bytes call, arguments;        /* the call at hand: its tool; its arguments as JSON members, or the block as it is */
    bool block;
    k3_bytes key, value_type, value; /* the argument at hand */
    k3_bytes tool_calls;             /* JSON of the calls before */
    unsigned calls;
} k3_built;

k3_bytes *k3_built_place(k3_built *b, enum place place);        /* where the text of a place goes */
int k3_built_argument(k3_built *b, bool block, k3_err *err);    /* the argument at hand is whole */
int k3_built_call(k3_built *b, k3_bytes *json, k3_err *err);    /* so is the call; its JSON too */
int k3_built_image(k3_built *b, k3_err *err);
int k3_built_message(k3_built *b, bool finished, k3_bytes *json, k3_err *err);
void k3_built_clear(k3_built *b);
void k3_built_free(k3_built *b);

struct k3_parser {
    const k3_vocab *v;
    int64_t control[PARSE_CONTROLS]; /* -1: the vocabulary has none */
    k3_parse_events on;
    void *arg;
    bool thinking, begun;
    enum place place;
    enum place left;  /* where the last message was cut off, or OUTSIDE */
    bool closed;      /* the message was closed; its end is due */
    enum { NO_TAG, OPENING, CLOSING } in_tag;
    k3_bytes tag;     /* held until its separator: control name and text */
    size_t tag_at;    /* where its text begins */
    k3_built built;
};

#endif
