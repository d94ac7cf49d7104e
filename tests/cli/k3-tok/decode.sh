# SPDX-License-Identifier: Apache-2.0
# blanks and newlines alike separate ids and give no text
export K3_MODEL="$TINY/model"
printf '67 471\n480\t317\r\n\n 115 104 109 97 777 46' | k3-tok decode; echo
printf '' | k3-tok decode | wc -c
printf ' \n\n ' | k3-tok decode | wc -c
printf '0067' | k3-tok decode; echo
# bytes that are not UTF-8 pass unchanged
echo 255 254 97 240 159 152 | k3-tok decode | od -An -tx1
