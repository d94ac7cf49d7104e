# SPDX-License-Identifier: Apache-2.0
# A terminal that is waited for is told once what is expected, however many lines come; a pipe is not.
# Would catch silence, and a reminder for each line.
command -v script >/dev/null || { echo "no script(1) here"; exit 77; }
touch ids
# Lines are typed one after the other: the second when the first is answered.
{
    echo 77 121
    until [ "$(wc -l <ids)" = 1 ]; do sleep 0.02; done
    echo 700
    until [ "$(wc -l <ids)" = 2 ]; do sleep 0.02; done
    printf '\004'
    until [ -e ended ]; do sleep 0.02; done
} | script -qec "k3-decode -m '$TINY/model' --gen 1 >ids 2>err; touch ended" log >/dev/null
wc -l <ids
grep -c 'reading prompts from the terminal' err
{ echo 77 121; echo 700; } | k3-decode -m "$TINY/model" --gen 1 2>err | cmp - ids
! grep 'from the terminal' err
