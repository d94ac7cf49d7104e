# What the README shows is what the programs print: every command of its console blocks, in one shell, with its output.
readme=$FIXTURES/../../README.md
mkdir -p tests/fixtures/tiny && cp -r "$TINY/model" tests/fixtures/tiny/model && rm -f tests/fixtures/tiny/model/k3.index
k3-index -q tests/fixtures/tiny/model
awk '/^```console$/ {inside = 1; next} /^```$/ {inside = 0} inside' "$readme" >want
grep -c '^\$ ' want
: >script
while IFS= read -r line; do
    [[ $line == '$ '* ]] || continue
    printf 'printf "%%s\\n" %q\n%s\n' "$line" "${line#$ }" >>script
done <want
bash script >have </dev/null
diff want have
