/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for any machine. */
#include "isa.h"
#include "v16_scalar.h"
#define TABLE k3_kernels_scalar
#define TABLE_NAME "scalar"
#include "kernels.inc.h"
