# SPDX-License-Identifier: Apache-2.0
# 100,000 lines in constant memory.
MANY_LINES=100000 . "${0%/*}/../cli/k3-decode/mem-lines.sh"
