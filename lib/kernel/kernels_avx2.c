/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for AVX2 with FMA. */
#include "isa.h"
#ifdef K3_HAVE_X86
#include "v16_avx2.h"
#define TABLE k3_kernels_avx2
#define TABLE_NAME "avx2"
#include "kernels.inc.h"
#endif
