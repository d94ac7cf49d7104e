/* SPDX-License-Identifier: Apache-2.0 */
/* Ids as decimal text: words separated by blanks, or an array of JSON on each line. */
#include "text.h"

#include <inttypes.h>

/* Where a line is: before its first word, between words, or in an array. */
enum { LINE_START, WORDS, ARRAY_START, ARRAY_ID, ARRAY_COMMA, ARRAY_DONE };

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Refuses the word that r->word begins and c goes on with. */
static int bad_word(k3_id_reader *r, char c, k3_err *err)
{
    const int64_t at = (int64_t)(r->byte - r->len);
    if (r->len < sizeof r->word)
        r->word[r->len++] = c;
    const char *nul = !r->word[r->len - 1] ? "\\x00" : ""; /* %s ends before it */
    return k3_fail_at(err, K3_EDATA, r->name, NULL, at, "line %" PRIu64 ": \"%.*s%s\" is not an id", r->line + 1, (int)r->len,
                      r->word, nul);
}

/* True if the text so far, with c, may be the beginning of a byte order mark. */
static bool in_mark(const k3_id_reader *r, char c)
{
    static const char marks[][4] = {"\xEF\xBB\xBF", "\xFF\xFE", "\xFE\xFF"};
    for (unsigned i = 0; i < sizeof marks / sizeof *marks; i++)
        if (r->byte == r->len && r->len < strlen(marks[i]) && !memcmp(r->word, marks[i], r->len) && marks[i][r->len] == c)
            return true;
    return false;
}

/* The next byte of what may be a byte order mark. */
static int take_mark(k3_id_reader *r, char c, k3_err *err)
{
    r->word[r->len++] = c;
    const char *mark = k3_byte_order_mark(r->word, r->len);
    return mark ? k3_fail_at(err, K3_EDATA, r->name, NULL, 0, "%s", mark) : 0;
}

static int bad_array(const k3_id_reader *r, char c, k3_err *err)
{
    char found[8];
    static const char *const wanted[] = {
        [ARRAY_START] = "an id or ]", [ARRAY_ID] = "a comma or ]", [ARRAY_COMMA] = "an id", [ARRAY_DONE] = "the end of the line"};
    if (c == '\n')
        return k3_fail_at(err, K3_EDATA, r->name, NULL, (int64_t)r->byte, "line %" PRIu64 ": ends inside an array of ids, where %s was expected",
                          r->line + 1, wanted[r->state]);
    snprintf(found, sizeof found, "\"%c\"", c);
    return k3_fail_at(err, K3_EDATA, r->name, NULL, (int64_t)r->byte, "line %" PRIu64 ": %s in an array of ids, where %s was expected",
                      r->line + 1, found, wanted[r->state]);
}

/* The number in progress is complete. */
static int finish(k3_id_reader *r, uint32_t *id, k3_err *err)
{
    if (r->value >= r->vocab)
        return k3_fail_at(err, K3_EDATA, r->name, NULL, (int64_t)(r->byte - r->len),
                          "line %" PRIu64 ": id %.*s is outside the vocabulary of %" PRIu32 " ids (id number %" PRIu64 ")",
                          r->line + 1, (int)r->len, r->word, r->vocab, r->count + 1);
    *id = (uint32_t)r->value;
    r->count++;
    r->len = 0;
    r->value = 0;
    r->state = r->state >= ARRAY_START ? ARRAY_ID : WORDS;
    return K3_ID_VALUE;
}

/* A digit; a number of more digits than fit is refused. */
static int take_digit(k3_id_reader *r, char c, k3_err *err)
{
    if (!r->len && (r->state == ARRAY_ID || r->state == ARRAY_DONE))
        return bad_array(r, c, err);
    if (r->len == sizeof r->word)
        return bad_word(r, c, err);
    /* a value at the limit stays there: larger ones are refused whatever follows */
    r->value = r->value >= UINT32_MAX ? UINT32_MAX : r->value * 10 + (uint64_t)(c - '0');
    r->word[r->len++] = c;
    return 0;
}

/* One of [ , ] between numbers. */
static int take_sign(k3_id_reader *r, char c, k3_err *err)
{
    const bool inside = r->state == ARRAY_START || r->state == ARRAY_ID;
    if (c == '[' && r->state == LINE_START)
        r->state = ARRAY_START;
    else if (c == ']' && inside)
        r->state = ARRAY_DONE;
    else if (c == ',' && r->state == ARRAY_ID)
        r->state = ARRAY_COMMA;
    else
        return r->state >= ARRAY_START ? bad_array(r, c, err) : bad_word(r, c, err);
    return 0;
}

int k3_id_next(k3_id_reader *r, const char **at, const char *end, uint32_t *id, k3_err *err)
{
    while (*at < end) {
        const char c = **at;
        const bool sign = c == '[' || c == ',' || c == ']', in_array = r->state >= ARRAY_START;
        int status = 0;
        if (in_mark(r, c))
            status = take_mark(r, c, err);
        else if (r->len && !is_digit(r->word[0]))
            status = bad_word(r, c, err);
        else if (r->len && (is_blank(c) || (sign && in_array)))
            return finish(r, id, err);
        else if (is_digit(c))
            status = take_digit(r, c, err);
        else if (sign && !r->len)
            status = take_sign(r, c, err);
        else if (!is_blank(c))
            status = bad_word(r, c, err);
        else if (c == '\n' && in_array && r->state != ARRAY_DONE)
            status = bad_array(r, c, err);
        if (status)
            return status;
        r->byte++;
        (*at)++;
        if (c == '\n') {
            r->line++;
            r->state = LINE_START;
            return K3_ID_LINE;
        }
    }
    return K3_ID_MORE;
}

int k3_id_end(k3_id_reader *r, uint32_t *id, k3_err *err)
{
    if (r->state >= ARRAY_START && r->state != ARRAY_DONE)
        return k3_fail_at(err, K3_EDATA, r->name, NULL, (int64_t)r->byte, "line %" PRIu64 ": ends inside an array of ids", r->line + 1);
    if (r->len && !is_digit(r->word[0]))
        return bad_word(r, ' ', err);
    return r->len ? finish(r, id, err) : K3_ID_MORE;
}

unsigned k3_id_format(char *to, uint32_t id)
{
    char digits[10];
    unsigned n = 0;
    do
        digits[n++] = (char)('0' + id % 10);
    while (id /= 10);
    for (unsigned i = 0; i < n; i++)
        to[i] = digits[n - 1 - i];
    return n;
}
