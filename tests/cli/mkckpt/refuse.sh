# SPDX-License-Identifier: Apache-2.0
# Misuse: one line, nothing left behind.
cp "$ODD/model/config.json" c.json
c=c.json
mkckpt; echo $?
mkckpt --config "$c"; echo $?
mkckpt --config "$c" --layers 8 m; echo $?
mkckpt --config "$c" --layers 0 m; echo $?
mkckpt --config "$c" --experts 2 m; echo $?
mkckpt --config "$c" --order random m; echo $?
mkckpt --config nowhere.json m; echo $?
sed 's/"situ"/"silu"/' "$c" >odd.json
mkckpt --config odd.json m; echo $?
mkckpt --config "$c" no/such/m; echo $?
mkdir full && touch full/x
mkckpt --config "$c" full; echo $?
ls
