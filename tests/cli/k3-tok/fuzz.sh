# SPDX-License-Identifier: Apache-2.0
# damaged vocabulary files, odd texts and ids in any order, the same ones every time
export K3_MODEL="$TINY/model"
fuzz-vocab 1500 "$TINY/model/tiktoken.model" "$TINY/model/tokenizer_config.json"
fuzz-text 100 "$TINY/README.md" "$TINY/model/tokenizer_config.json"
fuzz-chat 3000 "$FIXTURES/tok/request.json"
# the markup of a whole message, its control ids as the bytes 240 to 245 (open, close, separator, end, image, EOS)
printf '\360message role="assistant"\362\360think\362hm\361think\362\360response\362yes\364\361response\362\360tools\362\360call tool="f"\362\360argument key="a" type="number"\3621\361argument\362\361call\362\361tools\362\361message\362\363\365' >markup
printf '\360message role="assistant"\362\361message\362\363\360call\362\360json\362{}\361json\362' >odd
fuzz-parse 5000 markup odd "$FIXTURES/tok/request.json"
