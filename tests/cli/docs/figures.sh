# SPDX-License-Identifier: Apache-2.0
# The tables of predictions in README and TUNING are what k3-decode --plan says of the released config, row by row.
[ -n "${K3_REAL:-}" ] || { echo "K3_REAL is not set"; exit 77; }
repo=$FIXTURES/../..
mkdir real && cp "$K3_REAL/config.json" real
# plan SIZE: pinned, expert cache, read, all in GB, and seconds
plan() {
    k3-decode -q -m real --plan --json --memory "$1" --disk-rate 3G --mem-limit 400G --threads 2 </dev/null | awk -F '[:,]' '
        /"pinned tiles"/ { pinned = $2 }
        /"expert cache"/ { cache = $2 }
        /"(trunk|head|experts|embedding)":/ { n += $2 }
        /"seconds_per_token"/ { s = $2 }
        END { printf "%.10g %.10g %.10g %.10g\n", pinned / 1e9, cache / 1e9, n / 1e9, s }'
}
near() { awk -v a="$1" -v b="$2" -v by="$3" 'BEGIN { d = a - b; exit !(d <= by && -d <= by) }'; }
rows=0
# README: | 8 GB | peak | 129.6 GB | 43.2 |
while IFS='|' read -r _ size _ read_gb seconds _; do
    read -r _ _ want_read want_s < <(plan "$(tr -d ' ' <<<"$size")")
    near "${read_gb% GB*}" "$want_read" 0.051 || echo "README, $size: reads$read_gb, the plan says $want_read"
    near "$seconds" "$want_s" 0.051 || echo "README, $size: $seconds s, the plan says $want_s"
    rows=$((rows + 1))
done < <(sed -n '1,/^## /{/^| *[0-9]* [MG]B |/p}' "$repo/README.md")
sed -n '/^a decode step reads/,/^predicted/p' "$repo/README.md" |
    diff - <(k3-decode -q -m real --plan --memory 24G --mem-limit 400G --disk-rate 3G --threads 2 </dev/null | tail -n 6)
# TUNING: | 8 GB | pinned | cache or – | 129.6 GB | 43.2 |
while IFS='|' read -r _ size pinned cache read_gb seconds _; do
    read -r want_pinned want_cache want_read want_s < <(plan "$(tr -d ' ' <<<"$size")")
    near "$(awk '{ print ($2 == "MB" ? $1 / 1000 : $1) }' <<<"$pinned")" "$want_pinned" 0.051 || echo "TUNING, $size: pinned$pinned, the plan says $want_pinned"
    near "$(awk '{ print $1 + 0 }' <<<"$cache")" "$want_cache" 0.051 || echo "TUNING, $size: cache$cache, the plan says $want_cache"
    near "${read_gb% GB*}" "$want_read" 0.051 || echo "TUNING, $size: reads$read_gb, the plan says $want_read"
    near "${seconds%%,*}" "$want_s" 0.051 || echo "TUNING, $size: $seconds s, the plan says $want_s"
    rows=$((rows + 1))
done < <(sed -n '/^## Where a gigabyte/,/^## /{/^| *[0-9]* [MG]B |/p}' "$repo/docs/TUNING.md")
[ $rows -ge 12 ] || echo "only $rows rows of tables found"
# README: the measured ladder is that of the table in docs/data
grep -v '^#' "$repo/docs/data/ladder-full4.tsv" | awk -F '\t' 'NR > 1 { p = p sprintf(" %.2f |", $3 / 1e9); s = s sprintf(" %.2f |", $4) } END { print "| peak, GB |" p; print "| s a token |" s }' >want
grep -e '^| peak, GB |' -e '^| s a token |' "$repo/README.md" | diff want -
# rounding errors of the small model do not depend on the machine
grep -v '^#' "$repo/docs/data/quant-tiny.tsv" | diff - <(k3-layer quant-error -q -m "$TINY/model")
