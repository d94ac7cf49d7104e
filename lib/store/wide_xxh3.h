/* SPDX-License-Identifier: Apache-2.0 */
/* wide_xxh3.h - xxHash; XXH3_64bits() with the widest instructions that the machine has, for
 * whole weights. The library's plain function is built for any machine. The sums are the same. */
#ifndef WIDE_XXH3_H
#define WIDE_XXH3_H

#include <xxhash.h>

#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#endif

#endif
