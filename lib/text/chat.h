/* SPDX-License-Identifier: Apache-2.0 */
/* chat.h - the segments that a chat prompt is made of. */
#ifndef K3_CHAT_PRIVATE_H
#define K3_CHAT_PRIVATE_H

#include "json_text.h"

enum { OPEN, CLOSE, SEP, END_OF_MSG, MEDIA_PAD, CONTROLS }; /* control tokens */

struct k3_chat {
    k3_encoder *encoder;
    uint32_t control[CONTROLS];
    k3_bytes scratch;

    /* of the request at hand */
    k3_ids *out;
    k3_err *err;
    const char *name; /* of the input */
    const k3_json *doc; /* the request */
    int status;       /* the first failure; everything after it does nothing */
    bool thinking;
    json_t *calls;    /* tool_calls of the last assistant message, or NULL */
    size_t results;   /* tool results since then */
};

/* All of these do nothing once c->status is set. */
void k3_seg_refuse(k3_chat *c, const char *fmt, ...) K3_PRINTF(2, 3); /* K3_EDATA, with the input's name before it */
void k3_seg_text(k3_chat *c, const char *s, size_t n);                /* one plain segment */
void k3_seg_words(k3_chat *c, const char *s);
void k3_seg_control(k3_chat *c, int which);
/* <|open|>tag key="value"...<|sep|>; attributes are pairs of strings, ended by NULL; one with a NULL value is left out. */
void k3_seg_open(k3_chat *c, const char *tag, ...);
/* The four segments of one attribute, between the tag and its separator. */
void k3_seg_attribute(k3_chat *c, const char *key, const char *value, size_t size);
void k3_seg_close(k3_chat *c, const char *tag);
void k3_seg_end_message(k3_chat *c);
/* A system message of the protocol itself: `before`, the JSON of c->doc if there is any, `after`, as one segment. */
void k3_seg_system(k3_chat *c, const char *type, const char *before, json_t *json, const char *after);

#endif
