# SPDX-License-Identifier: Apache-2.0
# A report to a name that stands for an open descriptor goes into it. A writer that puts
# a finished file in its place would replace /dev/stdout for the whole machine.
ln -s /dev/fd/4 link
echo 3 4 5 | k3-decode -q -m "$TINY/model" --gen 1 --report /dev/fd/3 3>a.json >ids
echo 3 4 5 | k3-decode -q -m "$TINY/model" --gen 1 --report link 4>b.json >ids
test -L link && test -L /dev/stdout && head -c 1 a.json && echo && head -c 1 b.json && echo
