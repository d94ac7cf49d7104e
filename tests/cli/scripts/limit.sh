# SPDX-License-Identifier: Apache-2.0
# a limit stops a command that takes more, and is no limit for one that takes less; its words and status pass
mkdir "a b" && cp "$FIXTURES/../../scripts/limit-memory.sh" "a b" && limit="$PWD/a b/limit-memory.sh"
hungry='head -c 100M /dev/zero | tail -n 1 | wc -c'
echo "ulimit:"
"$limit" -k ulimit 300M bash -c "$hungry"
"$limit" -k ulimit 40M bash -c "$hungry" 2>/dev/null
"$limit" -k ulimit 40M bash -c 'echo "$1"; exit 7' x "a  b"
echo $?
echo "systemd, as another program would see it:"
mkdir bin && cat >bin/systemd-run <<'X' && chmod +x bin/systemd-run
#!/bin/bash
printf '[%s]' "$@" >>calls
echo >>calls
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
X
PATH=$PWD/bin:$PATH "$limit" 1.5G bash -c 'cat; exit 5' <<<"through a scope"
echo $?
sed 's/\[--user\]//' calls
PATH=$PWD/bin:$PATH "$limit" -w
printf '#!/bin/sh\nexit 1\n' >bin/systemd-run
PATH=$PWD/bin:$PATH "$limit" -k systemd 1G true
echo $?
"$limit" -k none 1G echo "none: free"
for wrong in "" "1G" "-k frob 1G true" "1X true" "0 true" "-w 1G true"; do
    # shellcheck disable=SC2086
    "$limit" $wrong
    echo $?
done
