/* SPDX-License-Identifier: Apache-2.0 */
/* faults.h - makes the library's system calls fail, fall short or kill, at a chosen one. */
#ifndef FAULTS_H
#define FAULTS_H

enum { FAULT_PWRITE = 1, FAULT_PREAD = 2, FAULT_FSYNC = 4, FAULT_RENAME = 8 };

/* Lets `after` calls of the kinds in the mask pass; every one after that fails
 * with `error`. error 0: the process kills itself, a write after its first half. */
void faults_arm(unsigned calls, long after, int error);
/* Reads give at most `most` bytes a call; 0 for no limit. */
void faults_short_reads(long most);
void faults_off(void);

#endif
