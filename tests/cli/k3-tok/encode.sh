# SPDX-License-Identifier: Apache-2.0
# encode: stdin is one sequence ended by one newline; empty input is an empty line
export K3_MODEL="$TINY/model"
printf 'Call me Ishmael.' | k3-tok encode
printf 'Call me Ishmael.\n' | k3-tok encode          # the newline is text
printf '' | k3-tok encode
printf 'nul \0 and bad \377\376 bytes' | k3-tok encode
printf 'two\nlines' | k3-tok encode
k3-tok encode -m "$TINY/model" </dev/null            # -m and $K3_MODEL alike
