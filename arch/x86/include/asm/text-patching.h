/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Changing kernel text while it runs.
 *
 * Functions are documented where they are defined: arch/x86/kernel/text_patch.c,
 * and Documentation/trace/text-poke.rst has the protocol.
 */
#ifndef _ASM_X86_TEXT_PATCHING_H
#define _ASM_X86_TEXT_PATCHING_H

#include <linux/types.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <asm/ptrace.h>

#define INT3_INSN_SIZE		1
#define INT3_INSN_OPCODE	0xCC

#define RET_INSN_SIZE		1
#define RET_INSN_OPCODE		0xC3

#define CALL_INSN_SIZE		5
#define CALL_INSN_OPCODE	0xE8

#define JMP32_INSN_SIZE		5
#define JMP32_INSN_OPCODE	0xE9

#define JMP8_INSN_SIZE		2
#define JMP8_INSN_OPCODE	0xEB

#define DISP32_SIZE		4

/* CALL and JMP with a 32-bit displacement are what most callers write. */
#define POKE_MAX_OPCODE_SIZE	5

/* Jcc with a 32-bit displacement is the longest that can be poked live. */
#define TEXT_POKE_MAX_INSN_SIZE	6

/*
 * An instruction, filled up to a word, so that it can be copied and compared as
 * one. What is behind the instruction does not matter.
 */
union text_poke_code {
	u8	insn[sizeof(u64)];
	u64	word;
};

/**
 * struct text_poke_site - one instruction to be replaced
 * @addr:	where it begins
 * @len:	its length in bytes, at most TEXT_POKE_MAX_INSN_SIZE
 * @verified:	the caller has seen, under text_mutex, that @old is there now
 * @old:	what must be there now; not looked at if @verified
 * @new:	what shall be there
 */
struct text_poke_site {
	void			*addr;
	unsigned int		len;
	bool			verified;
	union text_poke_code	old;
	union text_poke_code	new;
};

/* The kernel's text is still writable, or not yet visible to other CPUs. */
void text_poke_early(void *addr, const void *opcode, size_t len);

void text_poke_apply_relocation(u8 *buf, const u8 * const instr, size_t instrlen,
				u8 *repl, size_t repl_len);

/* One write through the poking mm; what it means to running code is up to the caller. */
void *text_poke(void *addr, const void *opcode, size_t len);
void *text_poke_kgdb(void *addr, const void *opcode, size_t len);
void *text_poke_copy(void *addr, const void *opcode, size_t len);
void *text_poke_copy_locked(void *addr, const void *opcode, size_t len, bool core_ok);
void *text_poke_set(void *addr, int c, size_t len);
void text_poke_sync(void);

/* Instructions that CPUs may be executing. */
int poke_int3_handler(struct pt_regs *regs);

#ifdef CONFIG_X86_TEXT_PATCH
int text_poke_bp(void *addr, const void *opcode, size_t len, const void *emulate);
int text_poke_queue(void *addr, const void *opcode, size_t len, const void *emulate);
int text_poke_queue_sites(const struct text_poke_site *sites, unsigned int nr);
int text_poke_finish(void);

#if IS_ENABLED(CONFIG_TEXT_POKE_KUNIT_TEST)
struct text_poke_test_counters {
	u64 batches, slots, sites, syncs, traps, stale_traps;
};

int text_poke_test_step(void);
void text_poke_test_counters(struct text_poke_test_counters *counters);
#endif
#else
void text_poke_bp(void *addr, const void *opcode, size_t len, const void *emulate);
void text_poke_queue(void *addr, const void *opcode, size_t len, const void *emulate);
void text_poke_finish(void);
#endif

extern int after_bootmem;
extern __ro_after_init struct mm_struct *poking_mm;
extern __ro_after_init unsigned long poking_addr;

/* The size of an instruction that this header can generate, 0 for any other. */
static __always_inline int text_opcode_size(u8 opcode)
{
	switch (opcode) {
	case INT3_INSN_OPCODE:	return INT3_INSN_SIZE;
	case RET_INSN_OPCODE:	return RET_INSN_SIZE;
	case CALL_INSN_OPCODE:	return CALL_INSN_SIZE;
	case JMP32_INSN_OPCODE:	return JMP32_INSN_SIZE;
	case JMP8_INSN_OPCODE:	return JMP8_INSN_SIZE;
	default:		return 0;
	}
}

/* An opcode byte and its displacement, as they lie in memory. */
union text_poke_insn {
	u8 text[POKE_MAX_OPCODE_SIZE];
	struct {
		u8 opcode;
		s32 disp;
	} __packed;
};

/**
 * __text_gen_insn - generate an instruction into a buffer
 * @buf:	the buffer, POKE_MAX_OPCODE_SIZE bytes
 * @opcode:	first byte of the instruction
 * @addr:	where the instruction will stand
 * @dest:	where it calls or jumps to
 * @size:	its length; more than the opcode's own for a prefixed one
 *
 * A destination out of the displacement's reach is a bug: no instruction can
 * express it. Whoever executes what is generated then traps there, and does not
 * go astray.
 */
static __always_inline
void __text_gen_insn(void *buf, u8 opcode, const void *addr, const void *dest, int size)
{
	union text_poke_insn *insn = buf;
	long disp;

	if (WARN_ON_ONCE(size < text_opcode_size(opcode)))
		opcode = INT3_INSN_OPCODE;

	/*
	 * If the compiler saw through to the symbols here, it would emit
	 * constants that objtool takes for references to code.
	 */
	OPTIMIZER_HIDE_VAR(insn);
	OPTIMIZER_HIDE_VAR(addr);
	OPTIMIZER_HIDE_VAR(dest);

	insn->opcode = opcode;
	if (size == 1)
		return;

	disp = (long)dest - (long)(addr + size);
	if (size == JMP8_INSN_SIZE && WARN_ON_ONCE(disp != (s8)disp))
		insn->opcode = INT3_INSN_OPCODE;

	insn->disp = disp;
}

/**
 * text_gen_insn - generate an instruction into a static buffer
 * @opcode:	first byte of the instruction
 * @addr:	where the instruction will stand
 * @dest:	where it calls or jumps to
 *
 * Context: every place that calls this has a buffer of its own; whoever
 *	    calls it there must be alone, usually by holding text_mutex.
 * Return: the instruction, valid until the same place generates another.
 */
static __always_inline
void *text_gen_insn(u8 opcode, const void *addr, const void *dest)
{
	static union text_poke_insn insn;

	__text_gen_insn(&insn, opcode, addr, dest, text_opcode_size(opcode));
	return &insn.text;
}

#ifndef CONFIG_UML_X86

/*
 * Emulation, from a breakpoint's handler, of the instruction that the
 * breakpoint stands for. noinstr code calls these, so all are inlined.
 */

static __always_inline
void int3_emulate_jmp(struct pt_regs *regs, unsigned long ip)
{
	regs->ip = ip;
}

/*
 * The entry code leaves a gap between the interrupted stack and pt_regs when
 * the kernel traps itself (create_gap in idtentry, FIXUP_FRAME on 32 bit), so
 * there is room to push a word.
 */
static __always_inline
void int3_emulate_push(struct pt_regs *regs, unsigned long val)
{
	regs->sp -= sizeof(val);
	*(unsigned long *)regs->sp = val;
}

static __always_inline
unsigned long int3_emulate_pop(struct pt_regs *regs)
{
	unsigned long val = *(unsigned long *)regs->sp;

	regs->sp += sizeof(val);
	return val;
}

/* regs->ip is after the breakpoint, which is the first byte of the CALL. */
static __always_inline
void int3_emulate_call(struct pt_regs *regs, unsigned long func)
{
	int3_emulate_push(regs, regs->ip - INT3_INSN_SIZE + CALL_INSN_SIZE);
	int3_emulate_jmp(regs, func);
}

static __always_inline
void int3_emulate_ret(struct pt_regs *regs)
{
	int3_emulate_jmp(regs, int3_emulate_pop(regs));
}

/* SDM Vol. 2, Appendix B.1.4.7: the condition codes, in pairs of true and negated. */
static __always_inline
bool int3_emulate_cc(unsigned long flags, u8 cc)
{
	bool sign_differs = !(flags & X86_EFLAGS_SF) != !(flags & X86_EFLAGS_OF);
	bool match = false;

	switch ((cc >> 1) & 7) {
	case 0:
		match = flags & X86_EFLAGS_OF;
		break;
	case 1:
		match = flags & X86_EFLAGS_CF;
		break;
	case 2:
		match = flags & X86_EFLAGS_ZF;
		break;
	case 3:
		match = flags & (X86_EFLAGS_CF | X86_EFLAGS_ZF);
		break;
	case 4:
		match = flags & X86_EFLAGS_SF;
		break;
	case 5:
		match = flags & X86_EFLAGS_PF;
		break;
	case 6:
		match = sign_differs;
		break;
	case 7:
		match = sign_differs || (flags & X86_EFLAGS_ZF);
		break;
	}

	return match != (cc & 1);
}

/* @ip: the address after the Jcc; @disp: its displacement; @cc: its low four opcode bits. */
static __always_inline
void int3_emulate_jcc(struct pt_regs *regs, u8 cc, unsigned long ip, unsigned long disp)
{
	if (int3_emulate_cc(regs->flags, cc))
		ip += disp;

	int3_emulate_jmp(regs, ip);
}

#endif /* !CONFIG_UML_X86 */

#endif /* _ASM_X86_TEXT_PATCHING_H */
