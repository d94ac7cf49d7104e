# SPDX-License-Identifier: Apache-2.0
# the doctor refuses nothing: no checkpoint, no programs, a folder that cannot be written, one with a blank in its name
doctor=$FIXTURES/../../scripts/k3-doctor bin=$(dirname "$(command -v k3-decode)")
mkdir -p "a b/scripts" "a b/disk" && cp "$doctor" "${doctor%/*}"/*.sh "a b/scripts" && ln -s "$(realpath "$FIXTURES/../../lib")" "a b/lib" && ln -s "$bin" "a b/bin"
cp -r "$TINY/model" "a b/model" && rm -f "a b/model/k3.index"
doctor="a b/scripts/k3-doctor"
K=K3_MODEL
unset $K
"$doctor" --help | sed -n '1p'
"$doctor" --version
CC="env cc" "$doctor" --no-disk | grep -c '^compiler.*gcc\|^compiler.*clang\|^compiler.*cc'
# every line is there, whatever the machine
"$doctor" --scratch-size 40 --dir "a b/disk" | sed 's/ .*//' | uniq
ls -A "a b/disk"
echo "without a checkpoint:"
"$doctor" --json --scratch-size 40 --dir "a b/disk" >j
for k in built needed expert_bytes; do jsonq j $k; done
jsonq j next | sed "s,^.*/a,A,"
jsonq j predicted by
TMPDIR="" K3_MODEL="" "$doctor" --dir "a b/disk" --no-disk | grep -c 'kept in memory and no cached experts'
jsonq j disk read_size
# the rate is the better of depth 4 and 16, and the estimate follows from it
bytes=$(jsonq j predicted bytes_per_token)
for i in 1 2; do jsonq j disk depths $i rate; done |
    awk -v b="$bytes" -v s="$(jsonq j predicted seconds_per_token)" '$1 > r { r = $1 } END { d = b / r / s; print (d > 0.99 && d < 1.01) ? "follows" : d }'
# memory is nine tenths of what is usable, and never above the machine's
[ $(($(jsonq j memory_usable) * 9 / 10)) -eq "$(jsonq j memory)" ] && [ "$(jsonq j memory)" -lt "$(jsonq j memory_total)" ] || echo "memory: $(jsonq j memory)"
echo "with one:"
"$doctor" --json -m "a b/model" --no-disk >j 2>err || cat err
jsonq j predicted by
jsonq j next
k3-index -q "a b/model" && K3_MODEL="a b/model" "$doctor" --json --no-disk >j
jsonq j next | sed 's/[0-9]*M /N /'
echo "one that is not there:"
"$doctor" --json -m "a b/nowhere/k3" --no-disk >j
jsonq j next | sed "s,^.*/a,A,"
jsonq j model_missing
"$doctor" --model "a b/nowhere/k3" --no-disk | grep -e ^model -e 'k3-index '
echo "a bad one:"
mkdir bad && "$doctor" -m bad --no-disk --json >j
echo $?
jsonq j predicted by
echo "no programs:"
rm "a b/bin" && PATH=/usr/bin:/bin "$doctor" --json --dir "a b/disk" >j
echo $?
jsonq j built
jsonq j next
PATH=/usr/bin:/bin "$doctor" --dir nowhere | grep -e '^space' -e '^disk'
for wrong in "--frob" "-m" "--scratch-size 4x"; do
    # shellcheck disable=SC2086
    "$doctor" $wrong
    echo $?
done
