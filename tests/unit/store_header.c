/* SPDX-License-Identifier: Apache-2.0 */
/* Each rule of the safetensors format has a header that breaks it. */
#include "store_help.h"

#define X(dtype, shape, at) "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" at "}"
#define LM "language_model."
#define L0 LM "model.layers.0."
#define NORM L0 "input_layernorm.weight"

/* A header that is fine leaves a folder in which the model's tensors are missing. */
#define FINE "that the config needs are in no shard"

struct header_case {
    const char *what, *header;
    uint64_t data;      /* bytes after the header */
    const char *tensor; /* named in the error, or NULL */
    const char *text;   /* part of the message */
};

static const struct header_case cases[] = {
    /* legal */
    {"no tensors", "{}", 0, NULL, FINE},
    {"blanks around", " \t\r\n {\"x\":" X("U8", "[3]", "[0,3]") "} \n\t ", 3, NULL, FINE},
    {"blanks inside", "{ \"x\" : { \"dtype\" : \"U8\" , \"shape\" : [ 3 ] , \"data_offsets\" : [ 0 , 3 ] } }", 3, NULL, FINE},
    {"metadata", "{\"__metadata__\":{\"format\":\"pt\",\"\\u00e9\":\"\\\"\"},\"x\":" X("U8", "[3]", "[0,3]") "}", 3, NULL, FINE},
    {"empty metadata", "{\"__metadata__\":{}}", 0, NULL, FINE},
    {"rank 0", "{\"x\":" X("F32", "[]", "[0,4]") "}", 4, NULL, FINE},
    {"zero size", "{\"x\":" X("F32", "[2,0]", "[0,0]") "}", 0, NULL, FINE},
    {"zero size between", "{\"a\":" X("U8", "[4]", "[0,4]") ",\"b\":" X("U8", "[0]", "[4,4]") ",\"c\":" X("U8", "[4]", "[4,8]") "}",
     8, NULL, FINE},
    {"not in offset order", "{\"a\":" X("U8", "[4]", "[4,8]") ",\"b\":" X("U8", "[4]", "[0,4]") "}", 8, NULL, FINE},
    {"fields in another order", "{\"x\":{\"data_offsets\":[0,2],\"shape\":[2],\"dtype\":\"U8\"}}", 2, NULL, FINE},
    {"half bytes that fill bytes", "{\"x\":" X("F4", "[6]", "[0,3]") "}", 3, NULL, FINE},
    {"escaped name", "{\"\\u0078\\n\":" X("U8", "[1]", "[0,1]") "}", 1, NULL, FINE},
    {"65 dimensions",
     "{\"x\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
     "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}",
     1, NULL, FINE},
    /* not one JSON object */
    {"a list", "[\"x\"]", 0, NULL, "not a JSON object"},
    {"nothing", "", 0, NULL, "not a JSON object"},
    {"blanks only", "   ", 0, NULL, "not a JSON object"},
    {"a string", "\"x\"", 0, NULL, "not a JSON object"},
    {"text after it", "{} {}", 0, NULL, "2 bytes follow the JSON object"},
    {"a comma too many", "{\"x\":" X("U8", "[1]", "[0,1]") ",}", 1, NULL, "a name in quotes is expected"},
    {"a comma too few", "{\"x\":" X("U8", "[1]", "[0,1]") "\"y\":1}", 1, NULL, "a comma or a closing brace"},
    {"no colon", "{\"x\" 1}", 0, "x", "a colon is expected"},
    {"a name without quotes", "{x:1}", 0, NULL, "a name in quotes is expected"},
    {"an unfinished name", "{\"x", 0, NULL, "this string has no end"},
    {"a name that ends in a backslash", "{\"x\\", 0, NULL, "this string has no end"},
    {"an unfinished escape", "{\"x\\u00", 0, NULL, "this string has no end"},
    {"a bad escape", "{\"x\\q\":1}", 0, NULL, "in a name: "},
    {"half a surrogate", "{\"x\\ud800\":1}", 0, NULL, "in a name: "},
    {"a zero byte escaped in a name", "{\"a\\u0000b\":" X("U8", "[1]", "[0,1]") "}", 1, NULL, "in a name: "},
    {"a name that is no UTF-8", "{\"\xff\":" X("U8", "[1]", "[0,1]") "}", 1, NULL, "in a name: "},
    {"a line feed in a name", "{\"a\nb\":" X("U8", "[1]", "[0,1]") "}", 1, NULL, "in a name: "},
    /* names twice */
    {"one name twice", "{\"x\":" X("U8", "[1]", "[0,1]") ",\"y\":" X("U8", "[1]", "[1,2]") ",\"x\":" X("U8", "[1]", "[2,3]") "}", 3, "x",
     "is there twice"},
    {"one name twice at one place", "{\"x\":" X("U8", "[1]", "[0,1]") ",\"x\":" X("U8", "[1]", "[0,1]") "}", 1, "x", "is there twice"},
    {"one name twice, once escaped", "{\"x\":" X("U8", "[1]", "[0,1]") ",\"\\u0078\":" X("U8", "[1]", "[1,2]") "}", 2, "x",
     "is there twice"},
    {"a tensor of the model twice", "{\"" NORM "\":" X("BF16", "[104]", "[0,208]") ",\"" NORM "\":" X("BF16", "[104]", "[208,416]") "}",
     416, NORM, "is there twice"},
    {"dtype twice", "{\"x\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "x", "duplicate"},
    {"metadata twice", "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "__metadata__", "is there twice"},
    {"a key of the metadata twice", "{\"__metadata__\":{\"a\":\"1\",\"b\":\"2\",\"a\":\"1\"}}", 0, "__metadata__", "\"a\" is there twice"},
    /* metadata */
    {"metadata is a string", "{\"__metadata__\":\"x\"}", 0, "__metadata__", "is not an object"},
    {"metadata with a number", "{\"__metadata__\":{\"a\":\"b\",\"n\":1}}", 0, "__metadata__", "\"n\" is not a string"},
    {"metadata with an object", "{\"__metadata__\":{\"o\":{}}}", 0, "__metadata__", "\"o\" is not a string"},
    {"metadata without an end", "{\"__metadata__\":{\"a\":\"b\"", 0, NULL, "a comma or a closing brace"},
    {"metadata that is no UTF-8", "{\"__metadata__\":{\"a\":\"\xc3\"}}", 0, "__metadata__", "\"a\": "},
    /* one tensor's description */
    {"a number as tensor", "{\"x\":1}", 0, "x", "is not an object"},
    {"a list as tensor", "{\"x\":[]}", 0, "x", "is not an object"},
    {"no end of a tensor", "{\"x\":{\"dtype\":\"U8\"", 0, "x", "it ends inside"},
    {"brackets that do not match", "{\"x\":{\"dtype\":\"U8\"]}", 0, "x", "not valid JSON"},
    {"no dtype", "{\"x\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "x", "dtype is missing"},
    {"a number as dtype", "{\"x\":{\"dtype\":8,\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "x", "dtype is not a string"},
    {"an unknown dtype", "{\"x\":" X("BF17", "[1]", "[0,2]") "}", 2, "x", "dtype \"BF17\" is unknown"},
    {"a dtype in small letters", "{\"x\":" X("bf16", "[1]", "[0,2]") "}", 2, "x", "dtype \"bf16\" is unknown"},
    {"no shape", "{\"x\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, "x", "shape is missing"},
    {"a number as shape", "{\"x\":" X("U8", "1", "[0,1]") "}", 1, "x", "shape is not a list"},
    {"a negative dimension", "{\"x\":" X("U8", "[2,-1]", "[0,1]") "}", 1, "x", "shape[1] is not a whole number"},
    {"a fraction as dimension", "{\"x\":" X("U8", "[1.0]", "[0,1]") "}", 1, "x", "shape[0] is not a whole number"},
    {"a string as dimension", "{\"x\":" X("U8", "[\"1\"]", "[0,1]") "}", 1, "x", "shape[0] is not a whole number"},
    {"no offsets", "{\"x\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "x", "data_offsets is missing"},
    {"an object as offsets", "{\"x\":" X("U8", "[1]", "{}") "}", 1, "x", "data_offsets is not a list"},
    {"no offset", "{\"x\":" X("U8", "[1]", "[]") "}", 1, "x", "data_offsets has 0 numbers"},
    {"one offset", "{\"x\":" X("U8", "[1]", "[0]") "}", 1, "x", "data_offsets has 1 numbers"},
    {"three offsets", "{\"x\":" X("U8", "[1]", "[0,1,1]") "}", 1, "x", "data_offsets has 3 numbers"},
    {"a negative offset", "{\"x\":" X("U8", "[1]", "[-1,0]") "}", 1, "x", "data_offsets[0] is not a whole number"},
    {"a fraction as offset", "{\"x\":" X("U8", "[1]", "[0,1.5]") "}", 1, "x", "data_offsets[1] is not a whole number"},
    {"a huge number as offset", "{\"x\":" X("U8", "[1]", "[0,1e400]") "}", 1, "x", "not valid JSON"},
    {"an offset that wraps", "{\"x\":" X("U8", "[1]", "[18446744073709551615,0]") "}", 1, "x", "not valid JSON"},
    {"a fourth field", "{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"strides\":[1]}}", 1, "x", "4 fields"},
    {"end before begin", "{\"x\":" X("U8", "[1]", "[1,0]") "}", 1, "x", "end at 0 before they begin at 1"},
    /* sizes */
    {"shape larger than offsets", "{\"x\":" X("F32", "[1000,1000]", "[0,4]") "}", 4, "x", "give 4 bytes, shape and dtype 4000000"},
    {"shape smaller than offsets", "{\"x\":" X("BF16", "[2]", "[0,8]") "}", 8, "x", "give 8 bytes, shape and dtype 4"},
    {"a dimension beyond 2^63", "{\"x\":" X("U8", "[2,18446744073709551614]", "[0,1]") "}", 1, "x", "not valid JSON"},
    {"a product that wraps to 0", "{\"x\":" X("U8", "[4294967296,4294967296]", "[0,0]") "}", 0, "x", "product of its shape overflows"},
    {"a product that wraps to the size", "{\"x\":" X("U8", "[4611686018427387905,4]", "[0,4]") "}", 4, "x",
     "product of its shape overflows"},
    {"a product that wraps as bits", "{\"x\":" X("F64", "[288230376151711744]", "[0,0]") "}", 0, "x", "product of its shape overflows"},
    {"half a byte", "{\"x\":" X("F4", "[3]", "[0,1]") "}", 1, "x", "12 bits are not whole bytes"},
    /* cover */
    {"a hole", "{\"a\":" X("U8", "[1]", "[0,1]") ",\"b\":" X("U8", "[1]", "[2,3]") "}", 3, "b", "begins at 2 of the data, but what is before it ends at 1"},
    {"a hole at the start", "{\"a\":" X("U8", "[1]", "[1,2]") "}", 2, "a", "begins at 1 of the data, but what is before it ends at 0"},
    {"an overlap of one byte", "{\"a\":" X("U8", "[4]", "[0,4]") ",\"b\":" X("U8", "[4]", "[3,7]") "}", 7, "b",
     "begins at 3 of the data inside \"a\", which ends at 4"},
    {"two names for one range", "{\"k_proj\":" X("U8", "[4]", "[0,4]") ",\"v_proj\":" X("U8", "[4]", "[0,4]") "}", 4, "v_proj",
     "inside \"k_proj\""},
    {"one tensor inside another", "{\"a\":" X("U8", "[8]", "[0,8]") ",\"b\":" X("U8", "[2]", "[2,4]") "}", 8, "b", "inside \"a\""},
    {"a zero-size tensor inside another", "{\"a\":" X("U8", "[8]", "[0,8]") ",\"b\":" X("U8", "[0]", "[2,2]") "}", 8, "b", "inside \"a\""},
    {"the right size far out of the file", "{\"a\":" X("U8", "[1]", "[0,1]") ",\"b\":" X("U8", "[4]", "[999999999996,1000000000000]") "}", 5,
     "b", "a hole"},
    {"one byte beyond the file", "{\"a\":" X("U8", "[4]", "[0,4]") "}", 3, "a", "ends at 4 of the data, but the file holds 3 of it: 1 bytes short"},
    {"one byte too many in the file", "{\"a\":" X("U8", "[4]", "[0,4]") "}", 5, NULL, "1 bytes follow the last tensor"},
    {"data without tensors", "{}", 5, NULL, "5 bytes follow the last tensor"},
    {"the largest offset", "{\"a\":" X("U8", "[9223372036854775807]", "[0,9223372036854775807]") "}", 1, "a", "overflows"},
    /* the model's list */
    {"an unknown name", "{\"" LM "model.layers.0.self_attn.q_proj.bias\":" X("BF16", "[72]", "[0,144]") "}", 144,
     L0 "self_attn.q_proj.bias", "the model has no tensor of this name"},
    {"the prefix alone", "{\"" LM "\":" X("U8", "[1]", "[0,1]") "}", 1, LM, "the model has no tensor of this name"},
    {"a layer too far", "{\"" LM "model.layers.7.input_layernorm.weight\":" X("BF16", "[104]", "[0,208]") "}", 208,
     LM "model.layers.7.input_layernorm.weight", "layer 7, but the config has 7 layers"},
    {"a layer with a leading zero", "{\"" LM "model.layers.01.input_layernorm.weight\":" X("BF16", "[104]", "[0,208]") "}", 208,
     LM "model.layers.01.input_layernorm.weight", "no tensor of this name"},
    {"an expert too far", "{\"" LM "model.layers.1.block_sparse_moe.experts.5.w1.weight_scale\":" X("U8", "[160,3]", "[0,480]") "}", 480,
     LM "model.layers.1.block_sparse_moe.experts.5.w1.weight_scale", "layer 1 has 5 experts"},
    {"an expert in a dense layer", "{\"" L0 "block_sparse_moe.experts.0.w1.weight_scale\":" X("U8", "[160,3]", "[0,480]") "}", 480,
     L0 "block_sparse_moe.experts.0.w1.weight_scale", "layer 0 has 0 experts"},
    {"an MLA tensor in a KDA layer", "{\"" L0 "self_attn.q_a_proj.weight\":" X("BF16", "[40,104]", "[0,8320]") "}", 8320,
     L0 "self_attn.q_a_proj.weight", "layer 0 (KDA, dense) has no such tensor"},
    {"another dtype", "{\"" NORM "\":" X("F16", "[104]", "[0,208]") "}", 208, NORM, "is F16 [104], the model needs BF16 [104]"},
    {"another length", "{\"" NORM "\":" X("BF16", "[103]", "[0,206]") "}", 206, NORM, "is BF16 [103], the model needs BF16 [104]"},
    {"another rank", "{\"" NORM "\":" X("BF16", "[1,104]", "[0,208]") "}", 208, NORM, "is BF16 [1,104], the model needs BF16 [104]"},
    {"a transposed matrix", "{\"" L0 "self_attn.b_proj.weight\":" X("BF16", "[104,3]", "[0,624]") "}", 624, L0 "self_attn.b_proj.weight",
     "is BF16 [104,3], the model needs BF16 [3,104]"},
    {"a short A_log", "{\"" L0 "self_attn.A_log\":" X("F32", "[2]", "[0,8]") "}", 8, L0 "self_attn.A_log", "is F32 [2], the model needs F32 [3]"},
    {"a convolution without its middle", "{\"" L0 "self_attn.q_conv1d.weight\":" X("F32", "[72,4]", "[0,1152]") "}", 1152,
     L0 "self_attn.q_conv1d.weight", "is F32 [72,4], the model needs F32 [72,1,4]"},
};

static void expect(const struct header_case *c, const char *header, size_t n)
{
    k3_err err = {0};
    write_shard("model.safetensors", header, n, c->data);
    int status = build_status(&err);
    cr_expect_eq(status, K3_EDATA, "%s: status %d", c->what, status);
    cr_expect(strstr(err.text, c->text), "%s: \"%s\" is not in \"%s\"", c->what, c->text, err.text);
    if (strcmp(c->text, FINE)) {
        cr_expect_str_eq(err.file, "model.safetensors", "%s", c->what);
        cr_expect_str_eq(err.tensor, c->tensor ? c->tensor : "", "%s", c->what);
    }
}

Test(store_header, rules, .init = folder_make, .fini = folder_remove)
{
    sh("cp " ODD "/config.json \"$D\"");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect(&cases[i], cases[i].header, strlen(cases[i].header));
}

/* A reader that looks past the end of the text, or takes half a header for a whole one. */
Test(store_header, every_prefix, .init = folder_make, .fini = folder_remove)
{
    static const char whole[] = "{\"__metadata__\":{\"a\":\"\\u00e9\"},\"\\\"x\\u0041\":{\"dtype\":\"U8\",\"shape\":[1,3],\"data_offsets\":[0,3]}}";
    sh("cp " ODD "/config.json \"$D\"");
    for (size_t n = 0; n < sizeof whole - 1; n++) {
        k3_err err = {0};
        write_shard("model.safetensors", whole, n, 3);
        cr_expect_eq(build_status(&err), K3_EDATA);
        cr_expect_str_eq(err.file, "model.safetensors", "%zu bytes: %s", n, err.text);
    }
    expect(&(struct header_case){.what = "whole", .data = 3, .text = FINE}, whole, sizeof whole - 1);
}

static char *repeat(const char *before, char c, size_t n, const char *after, size_t *size)
{
    *size = strlen(before) + n + strlen(after);
    char *s = malloc(*size + 1);
    sprintf(s, "%s", before);
    memset(s + strlen(before), c, n);
    strcpy(s + strlen(before) + n, after);
    return s;
}

/* Recursion per bracket, a fixed buffer for a name, a list of dimensions without bound. */
Test(store_header, large, .init = folder_make, .fini = folder_remove)
{
    static const struct {
        const char *before;
        char c;
        size_t n;
        const char *after, *tensor, *text;
    } big[] = {
        {"{\"x\":", '[', 1000000, "", "x", "is not an object"},
        {"{\"x\":{\"dtype\":", '[', 30000, "}}", "x", "ends inside"},
        {"{\"x\":{\"dtype\":", '{', 1000000, "", "x", "ends inside"},
        {"{\"", 'n', 1000000, "\":" X("U8", "[1]", "[0,1]") "}", NULL, FINE},
        {"{\"", '\\', 1000000, "\":" X("U8", "[1]", "[0,1]") "}", NULL, FINE},
        {"{\"" LM, 'n', 1000000, "\":" X("U8", "[1]", "[0,1]") "}", LM, "no tensor of this name"},
        {"{\"x\":{\"dtype\":\"", 'n', 1000000, "\"}}", "x", "at most 65536 are read"},
        {"{\"__metadata__\":{\"a\":\"", 'n', 1000000, "\"}}", NULL, "1 bytes follow the last tensor"},
        {"{\"x\":" X("U8", "[1]", "[0,1]") "}", ' ', 1000000, "", NULL, FINE},
        {"{\"x\":" X("U8", "[1]", "[0,1]") "}", '\0', 8, "", NULL, "8 bytes follow the JSON object"},
    };
    sh("cp " ODD "/config.json \"$D\"");
    for (size_t i = 0; i < sizeof big / sizeof *big; i++) {
        size_t n;
        k3_err err = {0};
        char *header = repeat(big[i].before, big[i].c, big[i].n, big[i].after, &n);
        write_shard("model.safetensors", header, n, 1);
        cr_expect_eq(build_status(&err), K3_EDATA, "%zu", i);
        cr_expect(strstr(err.text, big[i].text), "%zu: %s", i, err.text);
        if (big[i].tensor)
            cr_expect(!strncmp(err.tensor, big[i].tensor, strlen(big[i].tensor)), "%zu: %s", i, err.tensor);
        free(header);
    }
}

/* A dimension list of 64 KiB is read whole; nested lists of that size must not recurse without bound. */
Test(store_header, deep, .init = folder_make, .fini = folder_remove)
{
    char text[60000];
    k3_err err = {0};
    sh("cp " ODD "/config.json \"$D\"");
    strcpy(text, "{\"x\":{\"dtype\":\"U8\",\"data_offsets\":[0,1],\"shape\":");
    size_t n = strlen(text);
    memset(text + n, '[', 20000);
    memset(text + n + 20000, ']', 20000);
    strcpy(text + n + 40000, "}}");
    write_shard("model.safetensors", text, n + 40002, 1);
    cr_expect_eq(build_status(&err), K3_EDATA);
    cr_expect(strstr(err.text, "depth"), "%s", err.text);
}

/* The length field and files too short for one. */
Test(store_header, length, .init = folder_make, .fini = folder_remove)
{
    static const struct {
        uint64_t length, file;
        const char *text;
    } f[] = {
        {0, 0, "0 bytes, too short"},
        {0, 4, "4 bytes, too short"},
        {0, 7, "7 bytes, too short"},
        {UINT64_MAX, 1000, "header length 18446744073709551615"},
        {UINT64_C(1) << 63, 1000, "header length 9223372036854775808"},
        {100000001, 200000000, "header length 100000001, at most 100000000"},
        {100000000, 100000007, "the header ends at byte 100000008, the file at 100000007"},
        {93, 100, "the header ends at byte 101, the file at 100"},
        {92, 100, "not a JSON object"},
        {0, 8, "not a JSON object"},
    };
    sh("cp " ODD "/config.json \"$D\"");
    for (size_t i = 0; i < sizeof f / sizeof *f; i++) {
        k3_err err = {0};
        FILE *to = fopen(in_folder("model.safetensors"), "wb");
        cr_assert(to && fwrite(&f[i].length, 8, 1, to) == 1 && !fclose(to));
        cr_assert_eq(truncate(in_folder("model.safetensors"), (off_t)f[i].file), 0);
        cr_expect_eq(build_status(&err), K3_EDATA);
        cr_expect(strstr(err.text, f[i].text), "%zu: %s", i, err.text);
        cr_expect_str_eq(err.file, "model.safetensors");
    }
}
