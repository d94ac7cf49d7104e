/* SPDX-License-Identifier: Apache-2.0 */
/* import.h - the readers of foreign formats. */
#ifndef K3_TRACE_IMPORT_H
#define K3_TRACE_IMPORT_H

#include "steps.h"

/* Reads lines of the columns that export writes, all but the end of the last step. K3_EDATA names file and line. */
int csv_read(FILE *from, struct steps *steps, k3_err *err);

#endif
