/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _KERNEL_TRACE_FTRACE_BATCH_TEST_H
#define _KERNEL_TRACE_FTRACE_BATCH_TEST_H

/* Called directly, from the call site of a target: counts, and leaves all registers alone. */
void ftrace_batch_test_direct_1(void);
void ftrace_batch_test_direct_2(void);

extern unsigned long ftrace_batch_test_direct_calls;

#endif /* _KERNEL_TRACE_FTRACE_BATCH_TEST_H */
