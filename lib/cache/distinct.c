/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which a layer's experts are asked for. */
#include "k3_cache.h"

size_t k3_distinct(uint8_t *seen, const uint16_t *experts, size_t rows, size_t k, uint16_t *distinct)
{
    size_t n = 0;
    for (size_t r = rows; r--;) {
        const uint16_t *row = experts + r * k;
        for (size_t i = 0; i < k; i++) {
            if (seen[row[i]])
                continue;
            seen[row[i]] = 1;
            distinct[n++] = row[i];
        }
    }
    for (size_t i = 0; i < n; i++)
        seen[distinct[i]] = 0;
    return n;
}
