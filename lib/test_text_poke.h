/* SPDX-License-Identifier: GPL-2.0 */
/* What the C and the assembly part of the text_poke KUnit suite share. */
#ifndef _TEST_TEXT_POKE_H
#define _TEST_TEXT_POKE_H

/* Even two thirds of them are more than the engine maps at a time. */
#define ARENA_PAGES	54

/* Where code in the arena ends up. Breakpoints that nobody wants are TRAPPED. */
#define NEXT		0
#define TAKEN		1
#define BACK		2
#define TRAPPED		3

/* In struct cpu_state. */
#define STATE_FLAGS	120
#define STATE_TOP	128
#define STATE_SP	136
#define STATE_LANDING	144
#define STATE_IP	144

#ifndef __ASSEMBLY__

#include <linux/types.h>

/* What the CPU holds when it comes to a site, and when it has left it. */
struct cpu_state {
	unsigned long gpr[15];	/* rax, rbx, rcx, rdx, rsi, rdi, rbp, r8 ... r15 */
	unsigned long flags;
	unsigned long top;	/* of the stack */
	unsigned long sp;
	union {
		unsigned long ip;	/* where to begin */
		unsigned long landing;	/* the one that was reached */
	};
};

/* All used under text_mutex. */
extern struct cpu_state text_poke_test_before, text_poke_test_after;
extern unsigned long text_poke_test_sp;

void text_poke_test_run(void);

extern u8 text_poke_test_next[], text_poke_test_taken[];
extern u8 text_poke_test_back[], text_poke_test_trapped[];
extern u8 text_poke_test_arena[];

#endif /* !__ASSEMBLY__ */

#endif /* _TEST_TEXT_POKE_H */
