# SPDX-License-Identifier: Apache-2.0
# tokenizer_config.json with wrong types and ids: exit 1, the field named
mkdir m
cp "$TINY/model/tiktoken.model" m
try() { printf '%s' "$1" >m/tokenizer_config.json; k3-tok ids -m m >out; echo "$? $1"; }
try ''
try '{'
try '[]'
try '{}'
try '{"added_tokens_decoder": []}'
try '{"added_tokens_decoder": null}'
try '{"added_tokens_decoder": {"1792": "[BOS]"}}'
try '{"added_tokens_decoder": {"1792": {"name": "[BOS]"}}}'
try '{"added_tokens_decoder": {"1792": {"content": 7}}}'
try '{"added_tokens_decoder": {"1792": {"content": ""}}}'
try '{"added_tokens_decoder": {"x": {"content": "[BOS]"}}}'
try '{"added_tokens_decoder": {"01792": {"content": "[BOS]"}}}'
try '{"added_tokens_decoder": {"-1": {"content": "[BOS]"}}}'
try '{"added_tokens_decoder": {"99999999999999999999": {"content": "[BOS]"}}}'
try '{"added_tokens_decoder": {"1791": {"content": "[BOS]"}}}'
try '{"added_tokens_decoder": {"2048": {"content": "[BOS]"}}}'
try '{"added_tokens_decoder": {"1792": {"content": "a"}, "1792": {"content": "b"}}}'
try '{"added_tokens_decoder": {"1792": {"content": "[BOS]"}, "2000": {"content": "[BOS]"}}}'
try '{"added_tokens_decoder": {"1792": {"content": "<|reserved_token_1900|>"}}}'
try '{"added_tokens_decoder": {"1792": {"content": "\u0000"}}}'
try 'version https://git-lfs.github.com/spec/v1'
try '{"added_tokens_decoder": {}}'
