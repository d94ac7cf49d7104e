# damaged vocabulary files and odd texts, the same ones every time
export K3_MODEL="$TINY/model"
fuzz-vocab 1500 "$TINY/model/tiktoken.model" "$TINY/model/tokenizer_config.json"
fuzz-text 100 "$TINY/README.md" "$TINY/model/tokenizer_config.json"
fuzz-chat 3000 "$FIXTURES/tok/request.json"
