# SPDX-License-Identifier: Apache-2.0
# Lines that are written are forgotten: 10,000 need no more memory than 500 (tests/long/endless_lines.sh takes 100,000).
# Would catch lines, ids or states that are kept to the end though no report asks for them.
case $(ldd "$(command -v k3-decode)") in *libasan* | *libtsan*) echo "memory under a sanitizer is another one"; exit 77 ;; esac
export K3_MODEL=$ODD/model
few=${FEW_LINES:-500} many=${MANY_LINES:-10000}
# peak LINES: kilobytes
peak() {
    yes 7 | head -n "$1" | k3-decode --gen 0 --layers 1 --threads 1 --io-depth 1 2>err | wc -l >&2
    sed -n 's/.*; memory \([0-9.]*\) MB of.*/\1/p' err | awk '{print int(1000 * $1)}'
}
a=$(peak "$few" 2>lines) b=$(peak "$many" 2>>lines)
echo "$few $many" | tr ' ' '\n' | cmp - lines
[ "$a" -gt 1000 ] && [ "$b" -le $((a + 400)) ] || echo "$a kB for $few lines, $b for $many"
# A report lists them, so then they are kept.
yes 7 | head -n 100 | k3-decode -q --gen 1 --layers 1 --report r.json >ids
jsonq r.json generated_tokens
[ "$(jsonq r.json sequences 99 ids)" = "$(tail -n 1 ids)" ] || echo "the report lost a line"
