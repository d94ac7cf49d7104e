# SPDX-License-Identifier: Apache-2.0
# a download survives cut connections and goes on after an interruption; a wrong size, a refusal and a missing file are named
command -v python3 >/dev/null && command -v curl >/dev/null || { echo "python3 and curl are needed"; exit 77; }
server=$FIXTURES/../tools/shard-server
export K3_RETRY_SECONDS=0
unset HF_TOKEN K3_BASE_URL K3_REVISION
mkdir "c d" && cp "$FIXTURES/../../scripts/download-model.sh" "$FIXTURES/../../scripts/released-sizes.txt" "c d" || exit
get() { "c d/download-model.sh" "$@" 2>err; echo "exit $?"; sed 's/has [0-9]* bytes\|cut at [0-9]* bytes/&/; s/[0-9]* free/N free/; s/[0-9]* bytes to come/N bytes to come/' err | LC_ALL=C sort; }
python3 "$server" "$TINY/model" log >port &
pid=$!
trap 'kill $pid' EXIT
for _ in $(seq 100); do [ -s port ] && break; sleep 0.1; done
base=http://127.0.0.1:$(cat port)
curl -s --noproxy '*' -o /dev/null "$base/ok/config.json"
[ $? -ne 7 ] || ! kill -0 $pid || { echo "no connection to 127.0.0.1 can be made here"; exit 77; }
(cd "$TINY/model" && stat -c '%n %s' ./*.safetensors | sed 's,^\./,,') >sizes
echo "whole:"
get --base-url "$base/ok" --sizes sizes "a b"
diff -r -x k3.index "$TINY/model" "a b"
echo "again, nothing is asked for but what is not there:"
: >log; get --base-url "$base/ok" --sizes sizes "a b" | tail -n 1; grep -c . log
echo "without a list: the shards of the index, as the server measures them"
get --base-url "$base/ok" nolist
diff -r -x k3.index "$TINY/model" nolist
echo "a list with CRLF and no newline at its end:"
sed 's/$/\r/' sizes | head -c -2 >crlf
get --base-url "$base/ok" --sizes crlf "a b" | tail -n 1
echo "one line for the release: name, revision and sizes are known, the hub is asked (here one that refuses)"
mkdir small && printf '#!/bin/sh\necho head; echo disk 9 8 7 /\n' >small/df && chmod +x small/df
PATH="$PWD/small:$PATH" HF_ENDPOINT="$base/token" get release
HF_ENDPOINT="$base/token" get --repo some/other --revision v2 other
awk '{ n += $2 } END { printf "%d shards, %.0f bytes\n", NR, n }' "c d/released-sizes.txt"
[ -z "${K3_REAL:-}" ] || cmp "c d/released-sizes.txt" "$K3_REAL/shard_sizes.txt"
echo "cut four times a file:"
: >log; get --base-url "$base/cut" --sizes sizes cut | grep -v 'cut at'
diff -r -x k3.index "$TINY/model" cut && grep -c 'safetensors bytes=' log
echo "given up, then gone on with:"
get --base-url "$base/cut2" --sizes sizes --retries 1 again >first; ls again | grep -c part; cat first | grep -e exit -e complete
get --base-url "$base/ok" --sizes sizes again | head -n 1
diff -r -x k3.index "$TINY/model" again
echo "a file of another size is fetched again:"
head -c 100 "$TINY/model/model-00003-of-000015.safetensors" >again/model-00003-of-000015.safetensors
get --base-url "$base/ok" --sizes sizes again
cmp "$TINY/model/model-00003-of-000015.safetensors" again/model-00003-of-000015.safetensors
echo "short:"
get --base-url "$base/short" --sizes sizes --jobs 1 short
ls short | grep -c part
echo "refused:"
get --base-url "$base/token" --sizes sizes refused
HF_TOKEN=wrong get --base-url "$base/token" --sizes sizes refused
grep -c wrong err
echo "with the token:"
HF_TOKEN=secret get --base-url "$base/token" --sizes sizes token | head -n 1
grep -c secret err
echo "not there:"
(cat sizes; echo "model-99.safetensors 7") >"more"
get --base-url "$base/ok" --sizes more "a b"
echo "no space:"
echo "huge.safetensors 900000000000000" >huge
get --base-url "$base/ok" --sizes huge none | sed 's/none: [0-9]* /none: N /'
echo "misuse:"
get --repo x --sizes sizes x
get --base-url "$base/{revision}" --sizes sizes x
get --hf --base-url "$base/ok" x
get --sizes nowhere x
get --base-url "$base/ok" --sizes sizes
echo "../x 5" >evil
get --base-url "$base/ok" --sizes evil x
