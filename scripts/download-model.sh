#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Downloads a checkpoint: resumable, every shard's size checked, then k3-index check.
# usage: download-model.sh [--repo NAME] [--revision REV] [--base-url URL] [--sizes FILE] [--jobs N] [--retries N] [--hf] DIR
#   --repo NAME      the repository on the hub (default: moonshotai/Kimi-K3)
#   --revision REV   the revision to fetch (default: $K3_REVISION, or main)
#   --base-url URL   where the files are instead: URL/FILE; {revision} in it is replaced (default: $K3_BASE_URL,
#                    or the repository's at $HF_ENDPOINT, https://huggingface.co)
#   --sizes FILE     lines "NAME BYTES": the shards, and what each must measure (default: those of the release;
#                    with --base-url or another repository: the shards of its index, as the server measures them)
#   --jobs N         files at once (default: 4)
#   --retries N      tries for each file, each going on where the last stopped (default: 20)
#   --hf             let the hf command fetch the repository
# A token comes from $HF_TOKEN; it is handed to curl in a file and never shown. Run it again to go on.
# Exit: 0 all there · 1 a file is wrong · 2 usage · 3 no space, no server, no permission
set -u -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
say() { echo "download-model: $1" >&2; }
misuse() { say "$1; try --help"; exit 2; }
released=moonshotai/Kimi-K3
url=${K3_BASE_URL:-} repo=$released sizes="" revision=${K3_REVISION:-} jobs=4 retries=20 dir="" hf=0
small="config.json generation_config.json tokenizer_config.json tiktoken.model model.safetensors.index.json"
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) sed -n '/^# usage/,/^# Exit/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --hf) hf=1; shift; continue ;;
    --base-url | --repo | --sizes | --revision | --jobs | --retries) [ $# -gt 1 ] || misuse "$1 needs a value" ;;
    -*) misuse "$1: unknown" ;;
    *) [ -z "$dir" ] || misuse "$1: a second folder"; dir=$1; shift; continue ;;
    esac
    case $1 in
    --base-url) url=$2 ;;
    --repo) repo=$2 ;;
    --sizes) [ -r "$2" ] || misuse "--sizes: $2 cannot be read"; sizes=$2 ;;
    --revision) revision=$2 ;;
    --jobs) jobs=$2 ;;
    --retries) retries=$2 ;;
    esac
    shift 2
done
[[ $jobs =~ ^[1-9][0-9]?$ && $retries =~ ^[1-9][0-9]?$ ]] || misuse "--jobs and --retries are numbers from 1 to 99"
[ -n "$dir" ] || misuse "which folder?"
[[ $repo =~ ^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$ ]] || misuse "--repo: \"$repo\" is not OWNER/NAME"
[[ $url != *"{revision}"* ]] || [ -n "$revision" ] || misuse "the URL needs --revision"
[ $hf -eq 0 ] || [ -z "$url" ] || misuse "--hf goes with --repo, not with --base-url"
if [ -n "$url" ]; then
    url=${url//"{revision}"/$revision}
else
    [ -n "$sizes" ] || [ "$repo" != "$released" ] || sizes=$here/released-sizes.txt
    url=${HF_ENDPOINT:-https://huggingface.co}/$repo/resolve/${revision:-main}
    say "the same by the hub's own program: hf download $repo --revision ${revision:-main} --local-dir $(printf %q "$dir")"
fi
[ $hf -eq 1 ] || command -v curl >/dev/null || { say "there is no curl"; exit 3; }
mkdir -p -- "$dir" || exit 3
work=$(mktemp -d "${TMPDIR:-/tmp}/k3-download.XXXXXX") || exit 3
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
umask 077
: >"$work/curlrc"
[ -z "${HF_TOKEN:-}" ] || printf 'header = "Authorization: Bearer %s"\n' "$HF_TOKEN" >"$work/curlrc"
umask 022

size_of() { stat -c %s -- "$1" 2>/dev/null || echo 0; }
# ---- how to fetch a file ----
# fetch NAME BYTES: into NAME.part, which gets its name when it is whole. BYTES may be "": any size.
fetch() {
    local name=$1 bytes=$2 part="$dir/$1.part" try code before got
    if [ -e "$dir/$name" ]; then
        [ -n "$bytes" ] && [ "$(size_of "$dir/$name")" != "$bytes" ] || return 0
        say "$name: has $(size_of "$dir/$name") bytes, not $bytes; fetched again"
        rm -f -- "$dir/$name"
    fi
    for ((try = 1; try <= retries; try++)); do
        got=$(size_of "$part")
        if [ -n "$bytes" ] && [ "$got" -gt "$bytes" ]; then
            say "$name: $got bytes came, $bytes wanted"
            rm -f -- "$part"
            return 1
        fi
        [ -n "$bytes" ] && [ "$got" = "$bytes" ] && break
        before=$got
        [ -n "$bytes" ] || rm -f -- "$part"
        code=$(curl -sSL -K "$work/curlrc" --connect-timeout 30 --speed-limit 1000 --speed-time 60 -C "$(size_of "$part")" -f \
            -o "$part" -w '%{http_code}' -- "$url/$name" 2>"$work/$name.err")
        local status=$?
        case $code in
        401 | 403) say "$name: the server refuses ($code)${HF_TOKEN:+, with the token of HF_TOKEN}"; return 3 ;;
        404) say "$name: not there (404)"; return 1 ;;
        416) say "$name: the server has fewer than $bytes bytes"; rm -f -- "$part"; return 1 ;;
        esac
        got=$(size_of "$part")
        if [ $status -eq 0 ]; then
            [ -z "$bytes" ] || [ "$got" = "$bytes" ] || { say "$name: ended with $got bytes, $bytes wanted"; rm -f -- "$part"; return 1; }
            break
        fi
        if [ $status -eq 33 ]; then rm -f -- "$part"; fi # no ranges on this server: from the start
        say "$name: cut at $got bytes, trying again"
        [ "$got" -gt "$before" ] || sleep "${K3_RETRY_SECONDS:-5}"
    done
    if [ "$try" -gt "$retries" ]; then
        say "$name: given up after $retries tries: $(tail -n 1 "$work/$name.err")"
        return 3
    fi
    mv -- "$part" "$dir/$name"
}

# ---- which shards, and their sizes ----
# the shards that the index names, measured by the server
ask_sizes() {
    local name bytes
    fetch model.safetensors.index.json "" 2>"$work/index.err"
    case $? in
    0) grep -o '"[^"/]*\.safetensors"' "$dir/model.safetensors.index.json" | tr -d '"' | LC_ALL=C sort -u >"$work/names" ;;
    1) echo model.safetensors >"$work/names" ;; # no index: one shard
    *) cat "$work/index.err" >&2; return 3 ;;
    esac
    [ -s "$work/names" ] || { say "model.safetensors.index.json: names no shards"; return 1; }
    while IFS= read -r name; do
        bytes=$(curl -sSIL -f -K "$work/curlrc" --connect-timeout 30 -- "$url/$name" 2>"$work/head.err" | tr -d '\r' |
            awk 'tolower($1) == "content-length:" { n = $2 } END { print n }')
        [[ $bytes =~ ^[1-9][0-9]*$ ]] || { say "$name: the server does not say how large it is: $(tail -n 1 "$work/head.err")"; return 3; }
        echo "$name $bytes"
    done <"$work/names"
}
if [ -z "$sizes" ]; then
    [ $hf -eq 0 ] || misuse "--hf: give --sizes for another repository"
    fetch config.json "" || exit # first: a refusal shows at once
    ask_sizes >"$work/sizes" || exit
    sizes=$work/sizes
fi
declare -A want
total=0
while read -r name bytes rest || [ -n "$name" ]; do
    bytes=${bytes%$'\r'} rest=${rest%$'\r'} name=${name%$'\r'}
    [ -n "$name" ] || continue
    [[ -z $rest && $bytes =~ ^[0-9]{1,15}$ && $name != */* && $name != .* ]] || { say "$sizes: \"$(tr -cd '[:print:]' <<<"$name $bytes")\" is no name and size"; exit 2; }
    want[$name]=$bytes
    total=$((total + bytes))
done <"$sizes"
[ ${#want[@]} -gt 0 ] || { say "$sizes: lists nothing"; exit 2; }

have=0
for name in "${!want[@]}"; do
    for f in "$dir/$name" "$dir/$name.part"; do have=$((have + $(size_of "$f"))); done
done
free=$(df -PB1 -- "$dir" | awk 'NR == 2 { print $4 }')
if [ $((total - have)) -gt "$free" ]; then
    say "$dir: $((total - have)) bytes to come, $free free"
    exit 3
fi

status=0
note() { # keeps the worst: 3 over 1
    [ "$1" -le "$status" ] || status=$1
}
if [ $hf -eq 1 ]; then
    command -v hf >/dev/null || { say "there is no hf command; leave out --hf"; exit 3; }
    hf download "$repo" --revision "${revision:-main}" --local-dir "$dir" || exit 3
else
    fetch config.json ""; note $? # first: a refusal shows at once
    [ "$status" -eq 3 ] && exit 3
    for name in $small; do [ -e "$dir/$name" ] || { fetch "$name" "" || [ "$name" != config.json ] || note 1; }; done
    running=0
    while IFS= read -r name; do
        fetch "$name" "${want[$name]}" &
        running=$((running + 1))
        if [ $running -ge "$jobs" ]; then
            wait -n; note $?
            running=$((running - 1))
        fi
    done < <(printf '%s\n' "${!want[@]}" | LC_ALL=C sort)
    while [ $running -gt 0 ]; do
        wait -n; note $?
        running=$((running - 1))
    done
fi

there=0 bytes=0
for name in "${!want[@]}"; do
    got=$(size_of "$dir/$name")
    [ -e "$dir/$name" ] && there=$((there + 1)) bytes=$((bytes + got))
    [ "$got" = "${want[$name]}" ] || { [ "$status" -ne 0 ] || say "$name: $got bytes, ${want[$name]} wanted"; note 1; }
done
say "$there of ${#want[@]} files, $bytes of $total bytes"
[ "$status" -eq 0 ] || { say "not complete; run it again"; exit "$status"; }
index=k3-index
for f in "$here/k3-index" "$here/../bin/k3-index" "$here/../../bin/k3-index"; do [ -x "$f" ] && index=$f && break; done
if command -v "$index" >/dev/null; then
    "$index" check -m "$dir" --sizes "$sizes" || exit
else
    say "no k3-index to check it with: build, then k3-index check -m $(printf %q "$dir")"
fi
