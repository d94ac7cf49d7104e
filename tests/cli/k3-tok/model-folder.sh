# SPDX-License-Identifier: Apache-2.0
# the folder and what may be missing from it
try() { k3-tok encode "$@" </dev/null; echo $?; }
mkdir empty half 'with a space' $'with\na newline'
cp "$TINY/model/tiktoken.model" half
echo '{}' >empty/tokenizer.json
echo >file
try -m nowhere
try -m empty
try -m half
try -m file
for d in 'with a space' $'with\na newline'; do
    try -m "$d"
    cp "$TINY"/model/t*.* "$d"
    printf sea | k3-tok encode -m "$d/"
done
mkdir -p denied/tiktoken.model
try -m denied
