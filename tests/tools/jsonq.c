/* SPDX-License-Identifier: Apache-2.0 */
/* jsonq: one value out of a strict JSON file, for shell tests.
 * usage: jsonq FILE [KEY ...]      FILE may be - for standard input
 * A KEY is a member of an object, the index of an array, or the "name" of an
 * object in an array. An array of scalars prints on one line, an object its
 * keys, an array of objects their names, one a line. Exit 1: not strict JSON, or no such value. */
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static json_t *step(json_t *v, const char *key)
{
    size_t i;
    json_t *item;
    if (json_is_object(v))
        return json_object_get(v, key);
    json_array_foreach (v, i, item) {
        const char *name = json_string_value(json_object_get(item, "name"));
        if (name && !strcmp(name, key))
            return item;
    }
    char *end;
    size_t n = strtoul(key, &end, 10);
    return *key && !*end ? json_array_get(v, n) : NULL;
}

static void print_scalar(const json_t *v)
{
    if (json_is_string(v))
        fputs(json_string_value(v), stdout);
    else
        json_dumpf(v, stdout, JSON_ENCODE_ANY);
}

static void print_array(json_t *v)
{
    size_t i;
    json_t *item;
    json_array_foreach (v, i, item) {
        bool object = json_is_object(item);
        if (i)
            putchar(object ? '\n' : ' ');
        print_scalar(object ? json_object_get(item, "name") : item);
    }
}

static void print(json_t *v)
{
    const char *key;
    json_t *item;
    if (json_is_object(v)) {
        json_object_foreach (v, key, item)
            puts(key);
        return;
    }
    if (json_is_array(v))
        print_array(v);
    else
        print_scalar(v);
    putchar('\n');
}

int main(int argc, char **argv)
{
    json_error_t e;
    if (argc < 2) {
        fputs("usage: jsonq FILE [KEY ...]\n", stderr);
        return 2;
    }
    json_t *root = strcmp(argv[1], "-") ? json_load_file(argv[1], JSON_REJECT_DUPLICATES, &e)
                                        : json_loadf(stdin, JSON_REJECT_DUPLICATES, &e);
    if (!root) {
        fprintf(stderr, "jsonq: %s: line %d: %s\n", argv[1], e.line, e.text);
        return 1;
    }
    json_t *v = root;
    for (int i = 2; i < argc; i++)
        if (!(v = step(v, argv[i]))) {
            fprintf(stderr, "jsonq: %s: no \"%s\"\n", argv[1], argv[i]);
            json_decref(root);
            return 1;
        }
    print(v);
    json_decref(root);
    return fflush(stdout) ? 3 : 0;
}
