# SPDX-License-Identifier: Apache-2.0
# the commands of the man page's EXAMPLES run as they stand
cp -r "$TINY/model" m
export K3_MODEL=m
sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE/s/^\.Dl //p' "$FIXTURES/../../man/k3-index.1" >commands
while IFS= read -r command; do
    echo "\$ $command"
    bash -o pipefail -c "$command"
    echo "[$?]"
done <commands
