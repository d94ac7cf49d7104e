/* SPDX-License-Identifier: Apache-2.0 */
/* Small things that several verbs print or compute. */
#include "index.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

void put_text(const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '\n')
            fputs("\\n", stdout);
        else if (*p == '\t')
            fputs("\\t", stdout);
        else if (*p < 32 || *p == 127)
            printf("\\x%02x", *p);
        else
            putchar(*p);
    }
}

void put_shape(const uint64_t *shape, uint64_t rank)
{
    putchar('[');
    for (uint64_t i = 0; i < rank; i++)
        printf(i ? ",%" PRIu64 : "%" PRIu64, shape[i]);
    putchar(']');
}

json_t *json_shape(const uint64_t *shape, uint64_t rank)
{
    json_t *list = json_array();
    for (uint64_t i = 0; i < rank; i++)
        json_array_append_new(list, json_integer((json_int_t)shape[i]));
    return list;
}

int put_json(json_t *v, k3_err *err)
{
    if (!v)
        return k3_fail(err, K3_ESYS, "out of memory for the JSON output");
    json_dumpf(v, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9)); /* a failed write shows at the end */
    putchar('\n');
    json_decref(v);
    return 0;
}

char *with_commas(char *buf, uint64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, n), at = 0;
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            buf[at++] = ',';
        buf[at++] = digits[i];
    }
    buf[at] = 0;
    return buf;
}

/* Messages may quote bytes that are no UTF-8: a file's name, say. */
static json_t *json_bytes(const char *text)
{
    json_t *v = json_string(text);
    if (v)
        return v;
    char copy[sizeof((k3_err *)0)->text];
    snprintf(copy, sizeof copy, "%s", text);
    for (char *p = copy; *p; p++)
        if (*p & 0x80)
            *p = '?';
    return json_string(copy);
}

json_t *json_problems(const k3_err *list, size_t n)
{
    json_t *out = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *o = json_object();
        json_object_set_new(o, "status", json_integer(list[i].status));
        if (list[i].file[0])
            json_object_set_new(o, "file", json_bytes(list[i].file));
        if (list[i].tensor[0])
            json_object_set_new(o, "tensor", json_bytes(list[i].tensor));
        if (list[i].offset >= 0)
            json_object_set_new(o, "offset", json_integer(list[i].offset));
        json_object_set_new(o, "text", json_bytes(list[i].text));
        json_array_append_new(out, o);
    }
    return out;
}

int find_entry(const k3_index *ix, const char *name, k3_entry *e, k3_err *err)
{
    if (k3_index_find(ix, name, e))
        return 0;
    return k3_fail_at(err, K3_EDATA, k3_index_dir(ix), name, -1, "no such tensor; k3-index ls lists them");
}

float bf16_value(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float f;
    memcpy(&f, &wide, 4);
    return f;
}

float f16_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    float f = exponent == 31 ? (fraction ? NAN : INFINITY)
                             : ldexpf((float)(exponent ? 1024 + fraction : fraction), (exponent ? exponent : 1) - 25);
    return bits & 0x8000 ? -f : f;
}

void mxfp4_row(const uint8_t *packed, const uint8_t *scale, uint64_t cols, float *out)
{
    static const float value[16] = {0, .5f, 1, 1.5f, 2, 3, 4, 6, -0.f, -.5f, -1, -1.5f, -2, -3, -4, -6};
    for (uint64_t g = 0; g < cols / 32; g++) {
        float s = scale[g] == 255 ? 0 : ldexpf(1, scale[g] - 127); /* 255 is NaN by the format; the kernels take 0 */
        for (int i = 0; i < 16; i++) {
            uint8_t byte = packed[g * 16 + (uint64_t)i];
            *out++ = value[byte & 15] * s;
            *out++ = value[byte >> 4] * s;
        }
    }
}
