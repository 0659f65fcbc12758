/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The arena: text that belongs to nobody but the text_poke KUnit suite, and the
 * ways into it and out of it.
 */
#include <linux/linkage.h>
#include <linux/objtool.h>

#include <asm/nospec-branch.h>
#include <asm/page_types.h>

#include "test_text_poke.h"

.macro each_register insn:req, dst=, src=
	.set .Loffset, 0
	.irp reg, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15
	.ifb \src
	\insn	%\reg, \dst+.Loffset(%rip)
	.else
	\insn	\src+.Loffset(%rip), %\reg
	.endif
	.set .Loffset, .Loffset + 8
	.endr
.endm

.macro landing name:req, number:req
SYM_INNER_LABEL(text_poke_test_\name, SYM_L_GLOBAL)
	ANNOTATE_NOENDBR
	movq	$\number, text_poke_test_after+STATE_LANDING(%rip)
	jmp	.Llanded
.endm

	.text

/*
 * Enter the arena with everything that a program can see as it is in
 * text_poke_test_before, and leave in text_poke_test_after what it was at the
 * landing. A RET enters, as it touches neither registers nor flags and needs no
 * ENDBR where it goes to.
 */
SYM_FUNC_START(text_poke_test_run)
	pushq	%rbx
	pushq	%rbp
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	movq	%rsp, text_poke_test_sp(%rip)
	pushq	text_poke_test_before+STATE_TOP(%rip)
	pushq	text_poke_test_before+STATE_IP(%rip)
	pushq	text_poke_test_before+STATE_FLAGS(%rip)
	each_register movq, src=text_poke_test_before
	popfq
	ANNOTATE_UNRET_SAFE
	ret
	int3

	landing	next, NEXT
	landing	taken, TAKEN
	landing	back, BACK
	landing	trapped, TRAPPED

	/* Nothing here changes the flags before they are saved. */
.Llanded:
	movq	%rsp, text_poke_test_after+STATE_SP(%rip)
	each_register movq, dst=text_poke_test_after
	movq	(%rsp), %rax
	movq	%rax, text_poke_test_after+STATE_TOP(%rip)
	movq	text_poke_test_sp(%rip), %rsp
	pushfq
	popq	text_poke_test_after+STATE_FLAGS(%rip)
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbp
	popq	%rbx
	RET
SYM_FUNC_END(text_poke_test_run)
STACK_FRAME_NON_STANDARD text_poke_test_run

	.balign	PAGE_SIZE, 0xcc
SYM_CODE_START_NOALIGN(text_poke_test_arena)
	ANNOTATE_NOENDBR
	.fill	ARENA_PAGES * PAGE_SIZE, 1, 0xcc
SYM_CODE_END(text_poke_test_arena)
