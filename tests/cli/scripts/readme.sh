# What the README shows is what the programs print: every command of its console blocks, in one shell, with its output.
readme=$FIXTURES/../../README.md
mkdir build && cp -r "$TINY/model" build/demo && rm -f build/demo/k3.index
k3-index -q build/demo
awk '/^```console$/ {inside = 1; next} /^```$/ {inside = 0} inside' "$readme" >want
grep -c '^\$ ' want
: >script
while IFS= read -r line; do
    [[ $line == '$ '* ]] || continue
    printf 'printf "%%s\\n" %q\n%s\n' "$line" "${line#$ }" >>script
done <want
bash script >have </dev/null
diff want have
