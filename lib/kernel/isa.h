/* SPDX-License-Identifier: Apache-2.0 */
/* isa.h - the tables that select.c chooses from. */
#ifndef K3_KERNEL_ISA_H
#define K3_KERNEL_ISA_H

#include "k3_kernel.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define K3_HAVE_X86 1
#elif defined(__aarch64__) && defined(__ARM_NEON) && defined(__GNUC__)
#define K3_HAVE_NEON 1
#endif

extern const k3_kernels k3_kernels_scalar;
#ifdef K3_HAVE_X86
extern const k3_kernels k3_kernels_avx2;
extern const k3_kernels k3_kernels_avx512;
extern const k3_kernels k3_kernels_avx512vbmi2;
#endif
#ifdef K3_HAVE_NEON
extern const k3_kernels k3_kernels_neon;
#endif

#endif
