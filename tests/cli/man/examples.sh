# SPDX-License-Identifier: Apache-2.0
# The commands in the EXAMPLES of every man page run as they stand, page by page, in a scratch folder with a copy of the
# small model, and succeed. A command is a .Dl line (with "$ " before it or not) or a line in a .Bd -literal block
# that begins with "$ ". One that needs the released checkpoint has a line before it with the words
# "needs the checkpoint": a comment (.\" needs the checkpoint) or, in a block, "# needs the checkpoint".
man=$FIXTURES/../../man
PATH=$PATH:$(realpath "$FIXTURES/../../scripts")

# commands PAGE: one a line
commands() {
    awk '
        /^\.Sh / { inside = ($2 == "EXAMPLES"); next }
        !inside { next }
        /needs the checkpoint/ { skip = 1; next }
        /^\.Bd -literal/ { block = 1; next }
        /^\.Ed/ { block = 0; next }
        /^\.Dl / { text = substr($0, 5); if (substr(text, 1, 2) == "$ ") text = substr(text, 3) }
        block && /^\$ / { text = substr($0, 3) }
        text != "" { if (!skip) print text; skip = 0; text = "" }
    ' "$1" | sed 's/\\-/-/g; s/\\(aq/'\''/g; s/\\(dq/"/g; s/\\&//g; s/\\e/\\/g'
}

# mdoc takes the quotes out of a macro's arguments: a command on a .Dl line has to write them as \(dq to be readable
grep -n '^\.Dl .*"' "$man"/*.[1-9]

for page in "$man"/*.[1-9]; do
    name=$(basename "$page")
    commands "$page" >commands
    [ -s commands ] || case $name in *.1) echo "$name: no command in its EXAMPLES" ;; esac
    mkdir "$name" && cp -r "$TINY/model" "$name/model" && rm -f "$name/model/k3.index"
    while IFS= read -r command; do
        (cd "$name" && K3_MODEL=model bash -o pipefail -c "$command" </dev/null) >out 2>err
        status=$?
        [ $status -eq 0 ] && continue
        [ $status -eq 141 ] && continue # a tool before head, by SIGPIPE; ours end with 0
        echo "$name: exit $status from: $command"
        tail -n 3 err
    done <commands
done
