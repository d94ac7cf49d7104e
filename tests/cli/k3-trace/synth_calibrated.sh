# SPDX-License-Identifier: Apache-2.0
# the default synthetic routing grows like the recorded one: 55, 109, 124, 205 unique experts a
# layer after 5, 12, 17, 40 positions, within 9 %; and a position repeats 40 % of the one before
for k in k3 py; do
    k3-trace synth $k -n 40 | k3-trace info -l -t 5,12,17,40 | awk -v k=$k '
        $1 == "unique" {
            split("5: 55 12: 109 17: 124 40: 205", want)
            for (i = 1; i <= 8; i += 2) {
                got = $(i + 6)
                print k, want[i], (got / want[i + 1] > 0.91 && got / want[i + 1] < 1.09 ? "ok" : got)
            }
        }
        $1 ~ /^[0-9]+$/ { repeats += $4; layers++ }
        END { if (k == "k3") print (repeats / layers > 36 && repeats / layers < 43 ? "ok" : repeats / layers) }'
done
