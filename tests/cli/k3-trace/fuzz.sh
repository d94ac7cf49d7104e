# SPDX-License-Identifier: Apache-2.0
# damaged traces under good checksums, the same ones every time: what is accepted can be used and written again
fuzz-trace 600 "$FIXTURES"/../fuzz/seeds/trace/*.raw "$FIXTURES"/../fuzz/seeds/trace/*.k3t
