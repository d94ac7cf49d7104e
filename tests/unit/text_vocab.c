/* SPDX-License-Identifier: Apache-2.0 */
/* What tokenizer_config.json alone says about the end of a generation. */
#include "k3_text.h"
#include "temp_folder.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* k3_vocab_eos of a folder with that file (none if NULL): the id, -1 for none, -2 for an error (in *err). */
static int64_t eos_of(const char *config, k3_err *err)
{
    char dir[FOLDER_MAX], path[FOLDER_MAX + 32];
    uint32_t id[4];
    size_t n = 9;
    temp_folder(dir);
    snprintf(path, sizeof path, "%s/tokenizer_config.json", dir);
    FILE *f = config ? fopen(path, "w") : NULL;
    if (f) {
        fputs(config, f);
        fclose(f);
    }
    *err = (k3_err){0};
    const int status = k3_vocab_eos(dir, id, 4, &n, err);
    unlink(path);
    rmdir(dir);
    if (status)
        return -2;
    cr_assert_lt(n, 2);
    return n ? (int64_t)id[0] : -1;
}

#define TABLE "\"added_tokens_decoder\": {\"7\": {\"content\": \"[BOS]\"}, \"8\": {\"content\": \"[EOS]\"}}"

Test(text_vocab, eos)
{
    k3_err err;
    cr_expect_eq(eos_of(NULL, &err), -1);
    cr_expect_eq(eos_of("{" TABLE "}", &err), -1);
    cr_expect_eq(eos_of("{" TABLE ", \"eos_token\": null}", &err), -1);
    cr_expect_eq(eos_of("{" TABLE ", \"eos_token\": \"[EOS]\"}", &err), 8);
    cr_expect_eq(eos_of("{" TABLE ", \"eos_token\": {\"content\": \"[EOS]\"}}", &err), 8);
    cr_expect_eq(eos_of("{" TABLE ", \"eos_token\": 8}", &err), -2);
    cr_expect_not_null(strstr(err.text, "tokenizer_config.json: \"eos_token\" is a whole number, not a string"));
    cr_expect_eq(eos_of("{" TABLE ", \"eos_token\": \"</s>\"}", &err), -2);
    cr_expect_not_null(strstr(err.text, "\"eos_token\" is \"</s>\", which \"added_tokens_decoder\" does not name"));
    cr_expect_eq(eos_of("[1]", &err), -2);
    cr_expect_eq(eos_of("{\"added_tokens_decoder\": [], \"eos_token\": \"[EOS]\"}", &err), -2);
    cr_expect_eq(eos_of("{\"added_tokens_decoder\": {\"8\": 3}, \"eos_token\": \"[EOS]\"}", &err), -2);
}

Test(text_vocab, eos_of_the_small_model)
{
    uint32_t id[1];
    size_t n;
    cr_assert_eq(k3_vocab_eos("tests/fixtures/tiny/model", id, 1, &n, NULL), 0);
    cr_assert(n == 1 && id[0] == 1793);
    cr_assert_eq(k3_vocab_eos("tests/fixtures/tiny/model", id, 0, &n, NULL), 0);
    cr_assert_eq(n, 0);
}
