/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator's own policies: each replays requests on a cache of its kind. */
#ifndef K3_TRACE_SIM_POLICIES_H
#define K3_TRACE_SIM_POLICIES_H

#include "sim_state.h"

/* ---- over one list (sim_queues.c) ---- */
void k3_sim_fifo(k3_sim *s, const k3_requests *q);
void k3_sim_clock(k3_sim *s, const k3_requests *q);
void k3_sim_random(k3_sim *s, const k3_requests *q);
void k3_sim_sieve(k3_sim *s, const k3_requests *q);
/* Chooses what is pinned, then replays. K3_ESYS without memory. */
int k3_sim_pin(k3_sim *s, const k3_requests *q, k3_err *err);

/* ---- over several (sim_segments.c) ---- */
void k3_sim_slru(k3_sim *s, const k3_requests *q);
void k3_sim_twoq(k3_sim *s, const k3_requests *q);
void k3_sim_arc(k3_sim *s, const k3_requests *q);
void k3_sim_s3fifo(k3_sim *s, const k3_requests *q);
void k3_sim_wtinylfu(k3_sim *s, const k3_requests *q);

/* ---- over next uses (sim_belady.c); K3_ESYS without memory ---- */
int k3_sim_belady(k3_sim *s, const k3_requests *q, bool bypass, k3_err *err);

#endif
