/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - what the run did. */
#ifndef REPORT_H
#define REPORT_H

#include "session.h"

/* A few lines on stderr. */
void report_short(const struct session *s, int status);
/* --report: JSON into the file, which appears. `why` is what went wrong if status is not 0. */
int report_write(const struct session *s, k3_file **file, int status, const k3_err *why, k3_err *err);

#endif
