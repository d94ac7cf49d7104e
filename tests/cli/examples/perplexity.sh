# SPDX-License-Identifier: Apache-2.0
# the perplexity of a text is what its scores say
. "${0%/*}/common"
make -s perplexity | sed 's/	.*//; s/ .*//'
awk -F '\t' 'NR > 1 || $4 + 0 != 0 { if ($4 + 0 < 0) { s -= $4; n++ } } END { printf "%.3f\n", s / n }' out/perplexity/scores.tsv >a
awk '/^mean_nll/ { printf "%.3f\n", $2 }' out/perplexity/result | diff a -
wc -l <out/perplexity/ids
