/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for AVX-512 with VBMI2. */
#include "isa.h"
#ifdef K3_HAVE_X86
#include "v16_avx512.h"
#define TABLE k3_kernels_avx512vbmi2
#define TABLE_NAME "avx512vbmi2"
#include "kernels.inc.h"
#endif
