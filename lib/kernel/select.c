/* SPDX-License-Identifier: Apache-2.0 */
/* Which instruction sets this machine and its operating system support. */
#include "isa.h"

#include <stdlib.h>
#include <string.h>
#ifdef K3_HAVE_X86
#include <cpuid.h>

static bool has_avx2(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) && __builtin_cpu_supports("avx2") &&
           __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("popcnt");
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

static bool has_vbmi2(void)
{
    return has_avx512() && __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2");
}
#endif

const k3_kernels *k3_kernels_available(int i)
{
    if (i == 0)
        return &k3_kernels_scalar; /* without cpuid, which a virtual machine traps */
    const k3_kernels *found[4] = {&k3_kernels_scalar};
    int n = 1;
#ifdef K3_HAVE_X86
    __builtin_cpu_init();
    if (has_avx2())
        found[n++] = &k3_kernels_avx2;
    if (has_avx512())
        found[n++] = &k3_kernels_avx512;
    if (has_vbmi2())
        found[n++] = &k3_kernels_avx512vbmi2;
#endif
#ifdef K3_HAVE_NEON
    found[n++] = &k3_kernels_neon; /* part of every aarch64 */
#endif
    return i >= 0 && i < n ? found[i] : NULL;
}

const k3_kernels *k3_kernels_select(const char *isa, k3_err *err)
{
    const char *from = "";
    if (!isa) {
        isa = getenv("K3_ISA");
        from = "K3_ISA=";
    }
    char names[64] = "";
    const k3_kernels *k = NULL, *best = NULL;
    for (int i = 0; (k = k3_kernels_available(i)); i++) {
        if (isa && strcmp(isa, k->name) == 0)
            return k;
        best = k;
        if (i)
            strcat(names, ", ");
        strcat(names, k->name);
    }
    if (!isa || (!*isa && *from))
        return best;
    static const char *const sets[] = {"avx2", "avx512", "avx512vbmi2", "neon"};
    bool known = false;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        known = known || strcmp(isa, sets[i]) == 0;
    k3_fail(err, K3_EUSAGE, "%s%s: %s; available here: %s", from, isa,
            known ? "this machine lacks that instruction set" : "unknown instruction set", names);
    return NULL;
}
