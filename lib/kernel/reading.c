/* How weights are best read from memory. */
#include "k3_kernel.h"

k3_reading k3_reading_usual(void)
{
    return (k3_reading){.hint = K3_HINT_NTA};
}

k3_reading k3_reading_kept(k3_reading r)
{
    r.hint = r.hint == K3_HINT_NTA ? K3_HINT_T0 : r.hint;
    return r;
}
