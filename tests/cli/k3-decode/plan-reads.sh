# SPDX-License-Identifier: Apache-2.0
# Reads in flight and tiles for them: whatever the device, fewer where memory is short, as told where told.
plan() { k3-decode -q -m "$TINY/model" --plan --threads 2 --gen 4 --mem-limit 8G "$@" </dev/null | grep -o '^choices: [0-9]* tiles of [0-9.]* .B, [0-9]* readers'; }
plan --memory 1G --disk-rate 3G
plan --memory 1G --disk-rate 41G
echo short
plan --memory 20M --disk-rate 3G
plan --memory 15M --disk-rate 3G
echo told
plan --memory 1G --disk-rate 3G --io-depth 3
plan --memory 1G --disk-rate 41G --io-depth 16
plan --memory 1G --disk-rate 3G --ring 7
plan --memory 1G --disk-rate 3G --ring 7 --io-depth 9
