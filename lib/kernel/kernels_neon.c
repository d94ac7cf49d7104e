/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for NEON, which every aarch64 has. */
#include "isa.h"
#ifdef K3_HAVE_NEON
#include "v16_neon.h"
#define TABLE k3_kernels_neon
#define TABLE_NAME "neon"
#include "kernels.inc.h"
#endif
