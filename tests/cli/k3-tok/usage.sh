# SPDX-License-Identifier: Apache-2.0
# misuse: one line, exit 2
try() { k3-tok "$@" </dev/null; echo "$? $*"; }
try
try frobnicate
try encode text.txt
try encode
try encode -m ''
try encode --frob
try encode -x
try encode -m
try encode --binary=yes
try decode --special
try decode --lines --binary
try decode --count
try decode --pieces
try decode --json --binary
try encode --skip-special
try ids --binary
try ids --special
try encode --binary --count
try encode --count --pieces
try encode --pieces --json
try encode --binary -l
try chat --pieces
try chat --special
try parse --only content
try parse --only tools --json
try parse --binary
try decode --only tools
try chat --no-thinking
