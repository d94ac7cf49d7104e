# SPDX-License-Identifier: Apache-2.0
# a night of prompts that is interrupted in its second part goes on there, and gives the texts of one that was not
. "${0%/*}/common"
make -s GEN=5 BATCH=4 OUT=whole batch || exit
real=$(command -v k3-decode)
mkdir bin && cat >bin/k3-decode <<X && chmod +x bin/k3-decode
#!/bin/bash
# the second call dies in the middle of its output
echo call >>"$PWD/calls"
[ "\$(grep -c . "$PWD/calls")" -eq 2 ] || exec "$real" "\$@"
"$real" "\$@" | head -c 9
kill -9 \$\$
X
PATH=$PWD/bin:$PATH make -s GEN=5 BATCH=4 batch 2>/dev/null
echo "exit $?"
(cd out/batch && ls part.????.ids text.* 2>/dev/null)
PATH=$PWD/bin:$PATH make -s GEN=5 BATCH=4 batch || exit
diff -r -x '*.new' whole/batch out/batch && cat out/batch/text.0002; echo
# the texts are those of the prompts one by one
sed -n 7p prompts.txt | tr -d '\n' >one
{ cat one; k3-tok encode -m "$TINY/model" <one | k3-decode -q -m "$TINY/model" --gen 5 | k3-tok decode -m "$TINY/model"; } | cmp - out/batch/text.0007
# other prompts start anew
sed -i 2d prompts.txt && make -s GEN=5 BATCH=4 batch && ls out/batch | grep -c text
