# SPDX-License-Identifier: Apache-2.0
# Every source, script and manual page names its licence in its first two lines.
cd "${0%/*}/../../.." || exit
files=$(git -c safe.directory='*' ls-files '*.c' '*.h' '*.sh' '*.py' 'man/*' Makefile examples/Makefile 2>/dev/null | grep -v '^tests/fixtures/')
[ -n "$files" ] || { echo "not a clone"; exit 77; }
while IFS= read -r f; do
    [ ! -e "$f" ] || head -n 2 "$f" | grep -q 'SPDX-License-Identifier: Apache-2.0' || echo "$f"
done <<<"$files"
