# SPDX-License-Identifier: Apache-2.0
# A character of four bytes, fed one id a line, comes out whole, and words come before the next id is asked for.
export K3_MODEL="$TINY/model"
coproc TOK { k3-tok decode; }
exec 7<&"${TOK[0]}" 8>&"${TOK[1]}" {TOK[1]}>&- # the array goes when the process does
want() { # reads as many bytes as its argument has and shows them; hangs if they do not come
    local got
    IFS= read -r -N "${#1}" got <&7
    echo "$got"
}
echo 67 >&8; want C
echo 471 >&8; want all
for id in 240 159 152; do echo $id >&8; done
printf '128 ' >&8; want 😀
printf '9' >&8     # half a number
printf '7\n' >&8; want a
exec 8>&-
cat <&7 | wc -c
wait
# with -l every line's ids come before the next line is asked for
coproc ENC { k3-tok encode -l; }
exec 7<&"${ENC[0]}" 8>&"${ENC[1]}" {ENC[1]}>&-
echo sea >&8; read -r ids <&7; echo "$ids"
echo Call >&8; read -r ids <&7; echo "$ids"
exec 8>&-
wait
