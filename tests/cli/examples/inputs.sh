# SPDX-License-Identifier: Apache-2.0
# Another text, list of prompts, model or option with the same OUT gives another result, whatever the files' times; the same
# one is not made again. Lists may have CRLF and no last newline.
. "${0%/*}/common"
mean() { make -s "$@" perplexity; }
printf 'The whale\n' >one
printf 'The President of the United States\n' >two
touch -d '2 days ago' two
first=$(mean TEXT=one)
[ "$(mean TEXT=two)" != "$first" ] || echo "another TEXT: the old result"
[ "$(mean TEXT=one)" = "$first" ] || echo "the first TEXT again: another result"
printf 'The sea\n' >three && touch -r one three && cp -p three one
[ "$(mean TEXT=one)" != "$first" ] || echo "TEXT with other contents and an older time: the old result"
cp -r ../tests/fixtures/tiny/model m && touch m/config.json && before=$(stat -c %Y.%i out/perplexity/result)
mean TEXT=one >/dev/null
[ "$(stat -c %Y.%i out/perplexity/result)" = "$before" ] || echo "made again for nothing"
rm out/perplexity/scores.tsv
mean TEXT=one MODEL="$PWD/m" >/dev/null
[ -e out/perplexity/scores.tsv ] || echo "another MODEL: the old result"
printf 'The whale\r\nThe sea' >crlf
printf 'The whale\nThe sea\n' >lf
make -s GEN=2 PROMPTS=crlf batch | tail -n 1 && cat out/batch/text.0002 && echo && cp out/batch/prompts.ids crlf.ids
make -s GEN=3 PROMPTS=lf batch | tail -n 1 && cmp crlf.ids out/batch/prompts.ids
cat out/batch/text.0002; echo
