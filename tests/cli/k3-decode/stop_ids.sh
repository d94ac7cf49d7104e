# SPDX-License-Identifier: Apache-2.0
# Where a sequence ends: the id that stops is written and counted; by default the end ids of config and tokenizer stop.
export K3_MODEL=$TINY/model
prompt=$(jsonq "$TINY/expected/expected.json" cases tonight prompt_ids)
decode() { echo "$prompt" | k3-decode -q "$@"; }
decode --gen 6 --stop-id none
decode --gen 6
decode --gen 6 --stop-id 109
decode --gen 6 --stop-id 343 --stop-id 39 --report r.json --logits l.npy
jsonq r.json sequences 0 stopped; jsonq r.json generated_tokens
head -c 80 l.npy | tail -c +11; echo
decode --gen 6 --stop-id 317
decode --gen 6 --stop-id none --stop-id 109
decode --gen 6 --stop-id 602 --report r.json; jsonq r.json sequences 0 stopped
decode --gen 2 --stop-id 109 --report r.json; jsonq r.json sequences 0 stopped
decode --gen 0 --stop-id 317
# One line's end is not another's.
printf '%s\n%s\n' "$prompt" 1 | k3-decode -q --gen 4 --stop-id 39
# A stop id in the prompt is no end.
echo 39 | k3-decode -q --gen 2 --stop-id 39 | wc -w

# The config's id, then the tokenizer's, then both; the odd model has no tokenizer of its own.
cp -r "$ODD/model" m && rm -f m/k3.index
export K3_MODEL=m
prompt=$(jsonq "$ODD/expected/expected.json" cases walk prompt_ids)
decode --gen 8
second=$(decode --gen 8 | cut -d ' ' -f 2)
fourth=$(decode --gen 8 | cut -d ' ' -f 4)
sed "s/\"eos_token_id\": 79/\"eos_token_id\": $fourth/" "$ODD/model/config.json" >m/config.json
decode --gen 8
echo "{\"eos_token\": \"[EOS]\", \"added_tokens_decoder\": {\"$second\": {\"content\": \"[EOS]\", \"special\": true}}}" >m/tokenizer_config.json
decode --gen 8
decode --gen 8 --stop-id none
echo '{"eos_token": "[EOS]", "added_tokens_decoder": {}}' >m/tokenizer_config.json
decode --gen 8; echo "exit $?"
