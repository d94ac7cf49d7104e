/* SPDX-License-Identifier: Apache-2.0 */
/* k3_text.h - text to ids and back, exactly as the released tokenizer does it.
 *
 * A vocabulary is a checkpoint folder's tiktoken.model (the ranks: ids
 * 0..R-1, each a byte string) and tokenizer_config.json (names among the 256
 * special ids R..R+255; the others are called <|reserved_token_ID|>). An open
 * vocabulary is never written to and may be shared by threads; an encoder or a
 * decoder belongs to one thread at a time.
 *
 * Text is bytes. Where it is not valid UTF-8, every bad byte is a piece of its
 * own, so that any bytes come back unchanged from decoding.
 */
#ifndef K3_TEXT_H
#define K3_TEXT_H

#include "k3_base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define K3_SPECIALS 256 /* special ids after the ranks */

/* ---- the vocabulary --------------------------------------------------------- */

typedef struct k3_vocab k3_vocab;

enum { K3_VOCAB_ENCODE = 1 }; /* also build the tables that only encoding needs */

/* Reads both files of the folder `dir`. K3_EDATA names the file, and its line
 * or JSON field, for anything that is not a whole vocabulary; K3_ESYS for a
 * file that cannot be read. With K3_VOCAB_ENCODE a token listed twice is refused too. */
int k3_vocab_open(k3_vocab **vocab, const char *dir, int flags, k3_err *err);
void k3_vocab_close(k3_vocab *vocab); /* NULL is fine */

uint32_t k3_vocab_size(const k3_vocab *vocab);  /* ranks + K3_SPECIALS; ids are below it */
uint32_t k3_vocab_ranks(const k3_vocab *vocab); /* ordinary tokens; the first special id */

/* The bytes of an id (a special's name) and their number in *size; owned by
 * the vocabulary, not ended by a NUL. NULL if id >= k3_vocab_size. */
const char *k3_vocab_bytes(const k3_vocab *vocab, uint32_t id, size_t *size);

/* True for a special id that tokenizer_config.json names. */
bool k3_vocab_is_named(const k3_vocab *vocab, uint32_t id);

/* The special id called `name`, or -1. */
int64_t k3_vocab_special(const k3_vocab *vocab, const char *name, size_t size);

/* The ids that end a generation according to tokenizer_config.json alone (its
 * eos_token), at most `max` into ids[]; *n is 0 if the file or the field is
 * absent. Does not read the ranks. K3_EDATA for a file that is there but wrong. */
int k3_vocab_eos(const char *dir, uint32_t *ids, size_t max, size_t *n, k3_err *err);

/* ---- buffers that grow -------------------------------------------------------- */

typedef struct k3_ids {
    uint32_t *id; /* [n], malloc'ed; start from {0} */
    size_t n, cap;
} k3_ids;

typedef struct k3_bytes {
    char *data; /* [n], malloc'ed; start from {0} */
    size_t n, cap;
} k3_bytes;

/* Room for `more` elements after n. K3_ESYS when memory is short. */
int k3_ids_reserve(k3_ids *ids, size_t more, k3_err *err);
int k3_bytes_reserve(k3_bytes *bytes, size_t more, k3_err *err);
int k3_bytes_add(k3_bytes *bytes, const void *data, size_t size, k3_err *err);
void k3_ids_free(k3_ids *ids);
void k3_bytes_free(k3_bytes *bytes);

/* ---- text to ids --------------------------------------------------------------- */

typedef struct k3_encoder k3_encoder;

/* `vocab` must be open with K3_VOCAB_ENCODE and outlive the encoder. With
 * `special` the names of all 256 special ids in the text become their ids
 * (leftmost first, the longest of several at one place); without it they are plain text. */
int k3_encoder_new(k3_encoder **encoder, const k3_vocab *vocab, bool special, k3_err *err);
void k3_encoder_free(k3_encoder *encoder); /* NULL is fine */

/* One text may come in any number of calls. Ids are appended to *out as soon as no later call can change
 * them, at the latest every 400,000 characters; k3_encoder_end gives the rest and makes ready for the next
 * text. Memory stays bounded by one slice of 400,000 characters. Only memory can fail (K3_ESYS). */
int k3_encoder_feed(k3_encoder *encoder, const void *text, size_t size, k3_ids *out, k3_err *err);
int k3_encoder_end(k3_encoder *encoder, k3_ids *out, k3_err *err);

/* feed and end in one: a whole text. */
int k3_encode(k3_encoder *encoder, const void *text, size_t size, k3_ids *out, k3_err *err);

/* Calls fn for every piece of the pre-split, with its bytes and its ids, in
 * order, while encoding; special ids are pieces too. NULL ends that. */
typedef void (*k3_piece_fn)(void *arg, const char *piece, size_t size, const uint32_t *ids, size_t n);
void k3_encoder_on_piece(k3_encoder *encoder, k3_piece_fn fn, void *arg);

/* ---- chat requests to ids ------------------------------------------------------- */

typedef struct k3_chat k3_chat;

/* `vocab` must be open with K3_VOCAB_ENCODE and outlive the chat. K3_EDATA if it lacks a control token. */
int k3_chat_new(k3_chat **chat, const k3_vocab *vocab, k3_err *err);
void k3_chat_free(k3_chat *chat); /* NULL is fine */

/* Appends the prompt for one request to *out. The request is JSON, called
 * `name` in messages: an object with messages, tools, tool_choice,
 * response_format, add_generation_prompt (default true) and template_kwargs
 * {thinking (true), thinking_effort ("max"; null for none)}, or just the array
 * of messages. K3_EDATA names the field that is not understood. */
int k3_chat_encode(k3_chat *chat, const char *json, size_t size, const char *name, k3_ids *out, k3_err *err);

/* ---- ids to messages -------------------------------------------------------------- */

typedef struct k3_parser k3_parser;
typedef enum k3_channel { K3_CHANNEL_THINKING, K3_CHANNEL_RESPONSE, K3_CHANNEL_TOOLS } k3_channel;

/* What a parser reports, in the order of the ids; any may be NULL, and one that returns not 0 ends the feed with
 * that. Text and markup together are all bytes of the ids. Text in no channel counts to the response, the values of
 * arguments to the tools. A call or a message is reported at its end, as JSON that k3_chat_encode takes back; bytes
 * that are no UTF-8 are U+FFFD there. A message that was not closed has "unfinished": true. */
typedef struct k3_parse_events {
    int (*text)(void *arg, k3_channel channel, const char *s, size_t size, k3_err *err);
    int (*markup)(void *arg, const char *s, size_t size, k3_err *err);
    int (*call)(void *arg, const char *json, size_t size, k3_err *err);
    int (*message)(void *arg, const char *json, size_t size, bool finished, k3_err *err);
} k3_parse_events;

/* Ids that do not begin with <|open|> are an answer: they begin in the thinking channel or, without `thinking`, in the
 * response, where the prompt left off. Control ids that fit no rule are text. `vocab` must outlive the parser. */
int k3_parser_new(k3_parser **parser, const k3_vocab *vocab, bool thinking, const k3_parse_events *on, void *arg, k3_err *err);
void k3_parser_free(k3_parser *parser); /* NULL is fine */
int k3_parser_feed(k3_parser *parser, uint32_t id, k3_err *err);
/* The end of the ids; the parser is ready for others. */
int k3_parser_end(k3_parser *parser, k3_err *err);

/* ---- ids to text --------------------------------------------------------------- */

typedef struct k3_decoder {
    const k3_vocab *vocab;
    bool skip_special; /* special ids give no bytes instead of their names */
    char tail[4];      /* the incomplete UTF-8 sequence held back, [held] */
    unsigned held;
} k3_decoder;

/* Appends the bytes of n ids to *out, except an incomplete UTF-8 sequence at
 * the end, which waits for later ids; bytes that no continuation can make
 * valid are never held. K3_EDATA at an id outside the vocabulary: everything
 * before it is in *out and its index in *bad. */
int k3_decode(k3_decoder *decoder, const uint32_t *ids, size_t n, k3_bytes *out, size_t *bad, k3_err *err);
/* The end of the ids: appends what was held back. */
int k3_decode_end(k3_decoder *decoder, k3_bytes *out, k3_err *err);

/* ---- ids as decimal text ----------------------------------------------------------- */

/* Ids are separated by blanks (space, tab, CR) and lines. A line may also be one JSON array of ids: [1, 2]. Calls may
 * divide the text anywhere. */
typedef struct k3_id_reader {
    const char *name; /* of the input, for messages */
    uint32_t vocab;   /* ids must be below it */
    uint64_t line;    /* lines ended so far */
    uint64_t count;   /* ids so far */
    uint64_t byte;    /* bytes so far */
    char word[24];    /* the number in progress, [len] */
    unsigned len;
    uint64_t value;
    int state;        /* inside a line; 0 to begin with */
} k3_id_reader;

enum { K3_ID_MORE = 100, K3_ID_VALUE, K3_ID_LINE };

/* Takes bytes from *at up to the next event: K3_ID_VALUE with *id, K3_ID_LINE
 * at the end of a line, K3_ID_MORE when *at has reached `end`. K3_EDATA, with
 * the line and the byte in the message, for what is no id below `vocab`. */
int k3_id_next(k3_id_reader *reader, const char **at, const char *end, uint32_t *id, k3_err *err);
/* After the last call: K3_ID_VALUE if a number was in progress, else K3_ID_MORE, or K3_EDATA. */
int k3_id_end(k3_id_reader *reader, uint32_t *id, k3_err *err);

/* Writes id in decimal to `to` (at least 10 bytes); returns the number of bytes. */
unsigned k3_id_format(char *to, uint32_t id);

#ifdef __cplusplus
}
#endif

#endif
