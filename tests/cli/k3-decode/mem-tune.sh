# SPDX-License-Identifier: Apache-2.0
# How many reads are in flight is measured where --io-depth does not say it: with a device that answers late, as many
# as there can be. On trial and after it the answer and the bytes read are the same.
# Would catch a trial that is not ended, or ends with the slowest way, and a tile that two ways read.
. "${0%/*}/mem-common"
model tiny m
echo 77 121 700 1015 >prompts
reference m --gen 9
# tuned OPTION ...: on trial in the passes 2 to 4; trunk and head come once in each
tuned() {
    same --trunk-gb 0 --cache-gb 0 "$@" --report report.json
    numbers report.json
    [ $((trunk_bytes + head_bytes)) = $((passes * 4649744)) ] || echo "$passes passes read $trunk_bytes and $head_bytes: $*"
}
tuned
tuned --ring 3
tuned --tile 64Ki --ring 18 --direct off
tuned --tile 64Ki --ring 18 --slow-reads 1000
echo "late: $reads_in_flight of $io_depth reads in flight after $passes passes"
tuned --tile 64Ki --ring 12 --slow-reads 300 --io-depth 5
echo "told: $reads_in_flight"
