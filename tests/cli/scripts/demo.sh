# SPDX-License-Identifier: Apache-2.0
# The demo, from a folder with a blank in its name; then what it proposes next.
bin=$(dirname "$(command -v k3-decode)")
mkdir -p "a b/scripts" "a b/tests/fixtures"
cp "$FIXTURES/../../scripts/demo" "a b/scripts/"
cp -r "$TINY" "a b/tests/fixtures/"
rm -f "a b/tests/fixtures/tiny/model/k3.index"
"a b/scripts/demo" "$bin"
cd "a b" && export K3_MODEL=build/demo
printf 'The President of the United States' | k3-tok encode | k3-decode -q --gen 23 | k3-tok decode
cmp -s build/demo/config.json tests/fixtures/tiny/model/config.json || echo "the demo's folder is not the model"
find build/demo -type l -lname '/*' # none: links are relative, so the folder can be moved with the tree
cd .. && mv "a b" c && (cd c && echo 84 257 1255 | k3-decode -q --gen 3)
cd c || exit
ls tests/fixtures/tiny/model/k3.index 2>/dev/null # the fixture stays as it is
exit 0
