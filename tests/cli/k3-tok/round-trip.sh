# SPDX-License-Identifier: Apache-2.0
# any bytes return from encode | decode
export K3_MODEL="$TINY/model"
cat "$TINY"/model/*.safetensors "$FIXTURES/tok/small.jsonl" >bytes
k3-tok encode <bytes | k3-tok decode | cmp - bytes
k3-tok encode --special <bytes | k3-tok decode | cmp - bytes
k3-tok encode --binary <bytes | k3-tok decode --binary | cmp - bytes
cat bytes | k3-tok encode | cmp - <(k3-tok encode <bytes)
