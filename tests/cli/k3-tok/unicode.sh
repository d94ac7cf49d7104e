# SPDX-License-Identifier: Apache-2.0
# the committed classes are what the generator makes of the Unicode 16 ranges
[ -n "${K3_REAL:-}" ] || { echo "K3_REAL is not set"; exit 77; }
"$FIXTURES/../../scripts/unicode-tables" "$K3_REAL/unicode16_classes.json" | cmp - "$FIXTURES/../../lib/text/unicode16.c"
