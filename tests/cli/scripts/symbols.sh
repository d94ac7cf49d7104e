# SPDX-License-Identifier: Apache-2.0
# Every symbol that libk3core.a exports begins with k3_, so a program may have globals of any other name.
build=$(realpath "$(dirname "$(command -v mkckpt)")/../..") lib="$FIXTURES/../../lib"
san=
nm "$build/libk3core.a" 2>/dev/null | grep -q __asan_init && san=-fsanitize=address,undefined
nm -g --defined-only "$build/libk3core.a" | awk 'NF == 3 && $3 !~ /^(k3_|__)/ { print "exported: " $3 }'
cat >mine.c <<'END'
#include "k3_base.h"
int grow = 1, problem = 2, header_parse = 3, index_load = 4, pass_rows = 5, part_open = 6;
const char *path_join(void);
const char *path_join(void) { return "mine"; }
int main(void)
{
    printf("%s %d\n", path_join(), grow + problem + header_parse + index_load + pass_rows + part_open);
    k3_prog_start("mine");
    return k3_prog_end(0);
}
END
# the whole archive, as if every function of it were used
cc $san -pthread -I"$lib/base" mine.c -Wl,--whole-archive "$build/libk3core.a" -Wl,--no-whole-archive -lzstd -ljansson -lxxhash -lm -o mine && ./mine
