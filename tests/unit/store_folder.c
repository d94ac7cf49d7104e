/* SPDX-License-Identifier: Apache-2.0 */
/* Which files make a checkpoint, and what lies there in their place. */
#include "store_help.h"

#define S3 "model-00003-of-000009.safetensors"

struct folder_case {
    const char *what, *command; /* on a copy of the odd model in $D */
    int status;
    const char *text;
};

static const struct folder_case cases[] = {
    {"untouched", "true", 0, NULL},
    {"other files beside", "cd \"$D\"; touch notes.txt consolidated.safetensors model.safetensors.bak x-00001-of-00001.safetensors", 0, NULL},
    {"five digits in the count", "cd \"$D\"; for f in model-0*; do mv $f ${f%%-of*}-of-00009.safetensors; done", 0, NULL},
    {"six digits in the number", "cd \"$D\"; for f in model-0*; do mv $f model-0${f#model-}; done", 0, NULL},
    {"links", "cd \"$D\"; mkdir blobs; mv " S3 " blobs/abc; ln -s blobs/abc " S3, 0, NULL},
    {"one missing", "rm \"$D\"/" S3, K3_EDATA, "1 of 9 shards are missing: " S3},
    {"the last missing", "rm \"$D\"/model-00009*", K3_EDATA, "1 of 9 shards are missing: model-00009-of-000009.safetensors"},
    {"six missing", "cd \"$D\"; rm model-0000[2-7]*", K3_EDATA,
     "6 of 9 shards are missing: model-00002-of-000009.safetensors, " S3
     ", model-00004-of-000009.safetensors, model-00005-of-000009.safetensors, ..."},
    {"none", "rm \"$D\"/*.safetensors", K3_EDATA, "no model-NNNNN-of-NNNNNN.safetensors and no model.safetensors here"},
    {"two counts", "cd \"$D\"; mv " S3 " model-00003-of-000010.safetensors", K3_EDATA, "model-00003-of-000010.safetensors: states another number"},
    {"number 0", "cd \"$D\"; cp " S3 " model-00000-of-000009.safetensors", K3_EDATA, "model-00000-of-000009.safetensors: has a number outside"},
    {"number 10", "cd \"$D\"; cp " S3 " model-00010-of-000009.safetensors", K3_EDATA, "model-00010-of-000009.safetensors: has a number outside"},
    {"one number twice", "cd \"$D\"; cp " S3 " model-000003-of-000009.safetensors", K3_EDATA, "has the same number as"},
    {"both forms", "cd \"$D\"; cp " S3 " model.safetensors", K3_EDATA, "both model.safetensors and model-00001-of-000009.safetensors"},
    {"incomplete", "cd \"$D\"; mv " S3 " " S3 ".incomplete", K3_EDATA, S3 ".incomplete is an unfinished download"},
    {"part beside the whole", "cd \"$D\"; touch " S3 ".part", K3_EDATA, S3 ".part is an unfinished download"},
    {"aria2 beside the whole", "cd \"$D\"; touch " S3 ".aria2", K3_EDATA, S3 ".aria2 is an unfinished download"},
    {"a git-lfs pointer", "printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:4d7a21\\nsize 16990911504\\n' >\"$D\"/" S3, K3_EDATA,
     S3 ": a git-lfs pointer"},
    {"an HTML page", "printf '<!DOCTYPE html>\\n<html><body>401</body></html>' >\"$D\"/" S3, K3_EDATA, S3 ": an HTML page"},
    {"an HTML page behind blanks", "printf '\\357\\273\\277\\n  <HTML lang=en>' >\"$D\"/" S3, K3_EDATA, S3 ": an HTML page"},
    {"a message of four bytes", "printf '<htm' >\"$D\"/" S3, K3_EDATA, S3 ": 4 bytes, too short"},
    {"empty", ": >\"$D\"/" S3, K3_EDATA, S3 ": 0 bytes, too short"},
    {"one byte short", "truncate -s -1 \"$D\"/" S3, K3_EDATA, "1 bytes short"},
    {"one byte long", "printf x >>\"$D\"/" S3, K3_EDATA, "1 bytes follow the last tensor"},
    {"a folder as shard", "cd \"$D\"; rm " S3 "; mkdir " S3, K3_ESYS, S3 ": not a regular file"},
    {"a pipe as shard", "cd \"$D\"; rm " S3 "; mkfifo " S3, K3_ESYS, S3 ": not a regular file"},
    {"a dangling link", "cd \"$D\"; rm " S3 "; ln -s nowhere " S3, K3_ESYS, S3 ": cannot open: No such file"},
    {"no config", "rm \"$D\"/config.json", K3_ESYS, "config.json: cannot open"},
    {"a config that is not understood", "sed -i 's/\"situ\"/\"silu\"/' \"$D\"/config.json", K3_EUSAGE, "hidden_act"},
    {"more experts in the config", "sed -i 's/\"num_experts\": 5/\"num_experts\": 6/' \"$D\"/config.json", K3_EDATA, "needs BF16 [6,104]"},
};

Test(store_folder, cases)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct folder_case *c = &cases[i];
        k3_err err = {0};
        folder_odd();
        sh(c->command);
        cr_expect_eq(build_status(&err), c->status, "%s: %s", c->what, err.text);
        if (c->text)
            cr_expect(strstr(err.text, c->text), "%s: \"%s\" is not in \"%s\"", c->what, c->text, err.text);
        folder_remove();
    }
}

/* A config that promises 2^31 experts must not make us reserve room for them. */
Test(store_folder, huge_config, .init = folder_odd, .fini = folder_remove)
{
    k3_err err = {0};
    sh("sed -i 's/\"num_experts\": 5/\"num_experts\": 300000000/' \"$D\"/config.json; rm \"$D\"/*.safetensors");
    write_shard("model.safetensors", "{}", 2, 0);
    cr_expect_neq(build_status(&err), 0);
    cr_expect_lt(k3_peak_rss(), 200 << 20, "%s", err.text);
}

/* check goes on after the first problem. */
Test(store_folder, check_names_all, .init = folder_odd, .fini = folder_remove)
{
    static const char *const want[] = {
        "model-00002-of-000009.safetensors: tensor \"language_model.model.layers.1.", /* one short */
        "model-00004-of-000009.safetensors: 1 bytes follow the last tensor",
        "1 of 9 shards are missing: model-00006-of-000009.safetensors",
        "model-00006-of-000009.safetensors.part is an unfinished download",
        "model-00003-of-000009.safetensors: changed after it was indexed",
        "model-00006-of-000009.safetensors: is gone",
        "model-00002-of-000009.safetensors: 460011 bytes, ",
        "model-00004-of-000009.safetensors: 460013 bytes, ",
    };
    k3_err err = {0};
    k3_index *ix;
    k3_check c;
    cr_assert_eq(k3_index_build(&ix, folder, 1, &err), 0, "%s", err.text);
    cr_assert_eq(k3_index_write(ix, in_folder("k3.index"), &err), 0, "%s", err.text);
    k3_index_close(ix);
    cr_assert_eq(k3_index_check(&c, folder, NULL, NULL, 2, &err), 0, "%s", err.text);
    cr_expect_eq(c.problems, 0, "%s", c.problems ? c.problem[0].text : "");
    cr_expect_eq(c.shards, 9);
    cr_expect_eq(c.tensors, 360);
    k3_check_free(&c);

    sh("cd \"$D\"; stat -c '%n %s' model-* >sizes; truncate -s -1 model-00002*; printf x >>model-00004-of-000009.safetensors; rm model-00006*;"
       "touch model-00006-of-000009.safetensors.part; touch -d 2001-01-01 model-00003*");
    cr_assert_eq(k3_index_check(&c, folder, NULL, in_folder("sizes"), 2, &err), 0, "%s", err.text);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        bool found = false;
        for (size_t k = 0; k < c.problems; k++)
            found |= strstr(c.problem[k].text, want[i]) != NULL;
        cr_expect(found, "not reported: %s", want[i]);
    }
    for (size_t k = 0; k < c.problems; k++)
        cr_expect_not(strstr(c.problem[k].text, "model-00001-of"), "%s", c.problem[k].text);
    k3_check_free(&c);
}
