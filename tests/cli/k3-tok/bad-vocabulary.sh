# SPDX-License-Identifier: Apache-2.0
# a vocabulary that is not whole: exit 1, the file and its line named
mkdir m
cp "$TINY/model/tokenizer_config.json" m
ranks=$TINY/model/tiktoken.model
try() { echo "$1:"; k3-tok encode -m m </dev/null; echo $?; }
sed '7s/^..../AB*=/' "$ranks" >m/tiktoken.model; try 'bad digit'
sed '7s/ 6$/= 6/' "$ranks" >m/tiktoken.model; try 'padding too long'
sed '7s/^BQ==\|^Bg==/Bh==/' "$ranks" >m/tiktoken.model; try 'bits behind the padding'
sed '300s/^[^ ]*//' "$ranks" >m/tiktoken.model; try 'empty token'
sed '7s/ 6$//' "$ranks" >m/tiktoken.model; try 'no rank'
sed '7s/ 6$/ six/' "$ranks" >m/tiktoken.model; try 'rank no number'
sed '7s/ 6$/ /' "$ranks" >m/tiktoken.model; try 'empty rank'
sed '7s/$/\r/' "$ranks" >m/tiktoken.model; try 'carriage return'
sed '7d' "$ranks" >m/tiktoken.model; try 'rank gap'
sed '7p' "$ranks" >m/tiktoken.model; try 'rank repeat'
sed '7s/ 6$/ 18446744073709551616/' "$ranks" >m/tiktoken.model; try 'rank too large'
sed '7s/^\(.*\)$/\n\1/' "$ranks" >m/tiktoken.model; try 'empty line'
awk 'NR == 66 { $1 = "QUI=" } { print }' "$ranks" >m/tiktoken.model; try 'a byte is missing'
awk 'NR == 1700 { $1 = token } NR == 1500 { token = $1 } { print }' "$ranks" >m/tiktoken.model; try 'a token twice'
head -n 1700 "$ranks" >m/tiktoken.model; try 'lines missing at the end'
head -c 20000 "$ranks" >m/tiktoken.model; try 'cut inside a line'
{ cat "$ranks"; echo 'enp6enp6 1792'; } >m/tiktoken.model; try 'a line too many'
: >m/tiktoken.model; try 'empty file'
printf '{"model": 1}' >m/tiktoken.model; try 'another file'
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 2795286\n' >m/tiktoken.model; try 'git-lfs pointer'
printf '<!doctype html>\n<html>' >m/tiktoken.model; try 'web page'
head -c -1 "$ranks" >m/tiktoken.model; try 'no newline at the end is fine'
