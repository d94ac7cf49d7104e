# SPDX-License-Identifier: Apache-2.0
# the commands of the man page's EXAMPLES run as they stand
export K3_MODEL="$TINY/model"
sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE/s/^\.Dl //p' "$FIXTURES/../../man/k3-tok.1" | sed 's/\\e/\\/g; s/\\(dq/"/g' >commands
while IFS= read -r command; do
    echo "\$ $command"
    bash -o pipefail -c "$command"
    echo "[$?]"
done <commands
