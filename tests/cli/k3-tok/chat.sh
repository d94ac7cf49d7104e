# SPDX-License-Identifier: Apache-2.0
# chat: a request to the ids of its prompt; decode shows it
export K3_MODEL="$TINY/model"
k3-tok chat <"$FIXTURES/tok/request.json" >ids
wc -l <ids
k3-tok decode <ids; echo
echo '[{"role": "user", "content": "sea"}]' >hello
k3-tok chat <hello | k3-tok decode; echo
k3-tok chat <hello
k3-tok chat --json <hello | tr -d '[],' | cmp - <(k3-tok chat <hello)
k3-tok chat --count <hello
k3-tok chat -b <hello | k3-tok decode -b | cmp - <(k3-tok chat <hello | k3-tok decode)
# -l: a request a line; a missing last newline changes nothing
{ cat hello; echo '{"messages": [], "template_kwargs": {"thinking": false}}'; printf '[]'; } | k3-tok chat -l --count
printf '' | k3-tok chat -l
