/* SPDX-License-Identifier: Apache-2.0 */
/* exp, tanh and sigmoid on v16. NaN in, NaN out; denormal results are rounded properly. */

/* e^x = 2^n * e^r, n = round(x / ln 2), r in [-ln2/2, ln2/2]; e^r = 1 + (r + r^2 q(r)).
 * Outside the clamps 2^n * e^r overflows to infinity or rounds to 0 by itself. */
INLINE v16 v_exp(v16 x)
{
    x = v_min(v_set1(89.0f), v_max(v_set1(-104.5f), x));
    v16 t = v_fma(x, v_set1(0x1.715476p+0f), v_set1(ROUNDER));
    v16 n = v_sub(t, v_set1(ROUNDER));
    v16 r = v_fma(n, v_set1(-0x1.62e430p-1f), x);
    r = v_fma(n, v_set1(0x1.05c610p-29f), r);
    v16 q = v_set1(0x1.6a4748p-10f);
    q = v_fma(q, r, v_set1(0x1.1239a2p-7f));
    q = v_fma(q, r, v_set1(0x1.5558b6p-5f));
    q = v_fma(q, r, v_set1(0x1.555492p-3f));
    q = v_fma(q, r, v_set1(0x1.fffffcp-2f));
    v16 p = v_add(v_fma(v_mul(r, r), q, r), v_set1(1.0f));
    return v_ldexp(p, t);
}

/* 1/(1+e^-x) for x >= 0 and e^x/(1+e^x) below, so that nothing overflows and small results keep their digits. */
INLINE v16 v_sigmoid(v16 x)
{
    v16 one = v_set1(1.0f);
    v16 e = v_exp(v_sub(v_zero(), v_abs(x)));
    return v_div(v_select_lt(x, v_zero(), e, one), v_add(one, e));
}

/* x + x^3 p(x^2) below 0.5625, else 1 - 2/(e^2x + 1); the sign is put back at the end. */
INLINE v16 v_tanh(v16 x)
{
    v16 a = v_abs(x), z = v_mul(a, a);
    v16 p = v_set1(-0x1.9454f0p-8f);
    p = v_fma(p, z, v_set1(0x1.5811f6p-6f));
    p = v_fma(p, z, v_set1(-0x1.b905c4p-5f));
    p = v_fma(p, z, v_set1(0x1.110c5ep-3f));
    p = v_fma(p, z, v_set1(-0x1.555548p-2f));
    v16 small = v_fma(v_mul(a, z), p, a);
    v16 e = v_exp(v_add(a, a));
    v16 large = v_sub(v_set1(1.0f), v_div(v_set1(2.0f), v_add(e, v_set1(1.0f))));
    return v_copysign(v_select_lt(a, v_set1(0.5625f), small, large), x);
}
