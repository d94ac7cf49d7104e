/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for AVX-512 (F, BW, DQ, VL). */
#include "isa.h"
#ifdef K3_HAVE_X86
#include "v16_avx512.h"
#define TABLE k3_kernels_avx512
#define TABLE_NAME "avx512"
#include "kernels.inc.h"
#endif
