// SPDX-License-Identifier: GPL-2.0
/*
 * The engine that patches kernel text, raced in user space.
 *
 * Runners call generated functions, one instruction of which, the site, the
 * writer replaces all the time through the engine. A site has versions, and the
 * seed says what each of them is. A runner notes the last version that was done
 * before it calls, and the last one that was queued when it is back: what the
 * function did must be what one of these versions does, and nothing else. From
 * time to time a signal makes a runner call functions wherever it is, in the
 * handler too, as an NMI would.
 *
 * Fetchers do to a site what the slowest CPU may do: they fetch its bytes one by
 * one, in any order, and execute them much later, but before they let a sync
 * pass. What they find must be one version, too.
 */
#include "shim.h"

#include "../../../../arch/x86/kernel/text_patch.c"

#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <ucontext.h>

#define TEXT_SIZE	(SHIM_PAGES * PAGE_SIZE)
#define NR_TARGETS	8	/* functions to call, and as many to jump to */
#define MAX_SITES	4096
#define MAX_LEN		TEXT_POKE_MAX_INSN_SIZE
#define FUNC_SIZE	(3 + MAX_LEN + 15)
#define SLOW_READS	4

/* Which way a function went */
#define WENT_ON		0x1	/* past the site */
#define JUMPED(n)	(2UL << (n))
#define CALLED(n)	(0x100UL * (1 + (n)))
#define JUMPED_FAR(n)	(0x10000UL * (1 + (n)))

struct site {
	u8	*func, *addr;
	u8	*label[2];
	u8	len;
};

struct progress {
	u32	done, queued;
} __aligned(64);

/* One version of a site */
struct version {
	enum { NOP, CALL, JMP, JCC, RET } op;
	unsigned int	how;		/* shorter encodings, other NOPs */
	unsigned int	cc;
	u8		*target;
	u64		rcx;		/* when it goes there */
};

struct runner {
	struct shim_cpu	*cpu;
	pthread_t	thread;
	bool		fetches;
	/* What it is calling, and the last version that was done before it did */
	const struct site *site;
	u32		lo;
	u64		random;
	u64		calls;
} __aligned(128);

static struct site sites[MAX_SITES];
static struct progress progress[MAX_SITES];
static unsigned int nr_sites, nr_of_len[MAX_LEN + 1];
/* Those that begin on one cache line, or page, and end on the next */
static u16 on_lines[MAX_SITES], on_pages[MAX_SITES];
static unsigned int nr_on_lines, nr_on_pages;
static u8 *call_target[NR_TARGETS], *jump_target[NR_TARGETS];

static struct runner runners[SHIM_CPUS];
static __thread struct runner *me;

/* The sites of the batch that is under way: may be read at any time */
static u16 hot[MAX_SITES];
static unsigned int nr_hot = 1;

/*
 * Batches are of one site, one that straddles, and nothing else is called: this is
 * what real CPUs get wrong soonest. The race changes between this and the other.
 */
static bool narrow;

static u64 seed = 1;
static bool tail_first, bare_tail, one_slot, only_narrow, stop;
static unsigned int nr_runners, nr_fetchers = 1, seconds = 30;
static u64 enough_calls;

/* The flags that a runner sets, as LAHF and SETO read them, and which conditions they meet */
#define NR_FLAGS	64
static u16 flags_ax[NR_FLAGS], flags_meet[NR_FLAGS];

/* Finding something wrong ends the race. */

static __printf(1, 2) void __noreturn wrong(const char *fmt, ...)
{
	static bool said;
	sigset_t all;
	va_list args;

	/* What is nested here would go wrong, too. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);

	/* The first one speaks. */
	if (__atomic_exchange_n(&said, true, __ATOMIC_SEQ_CST)) {
		sleep(1);
		_exit(1);
	}

	va_start(args, fmt);
	dprintf(STDOUT_FILENO, "# caught: ");
	vdprintf(STDOUT_FILENO, fmt, args);
	dprintf(STDOUT_FILENO, "\n");
	_exit(1);
}

static __printf(4, 5) void __noreturn
wrong_site(unsigned int nr, u32 lo, u32 hi, const char *fmt, ...)
{
	char what[200];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	wrong("site %u (%u bytes at +%#lx), versions %u to %u: %s", nr, sites[nr].len,
	      (long)(sites[nr].addr - shim_text), lo, hi, what);
}

static unsigned int below(u64 *random, unsigned int n)
{
	return ((shim_random(random) >> 32) * n) >> 32;
}

/* Generated code */

/*
 * What a function returns: in AX the flags, as LAHF and SETO read them; in RCX
 * which way it went; in RDX where what it called would have returned to. @damage is
 * 0 if all other registers and the stack are as they were.
 */
struct result {
	u64 ax, cx, dx, damage;
};

/* Call @func, which begins with setting the flags to @ax. */
static __naked noinline void call_func(const u8 *func, unsigned long ax, struct result *result)
{
	asm("push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
	    "push %rdx\n"
	    "push %rdi\n"
	    "mov %esi, %eax\n"
	    "mov %rdi, %r11\n"
	    "movabs $0x5ca1ab1e0ddba11, %rbx\n"
	    "mov %rbx, %rbp; mov %rbx, %rsi; mov %rbx, %rdi; mov %rbx, %r8; mov %rbx, %r9\n"
	    "mov %rbx, %r10; mov %rbx, %r13; mov %rbx, %r14; mov %rbx, %r15\n"
	    "push %rbx\n"
	    "mov %rsp, %r12\n"
	    "xor %ecx, %ecx\n"
	    "xor %edx, %edx\n"
	    "call *%r11\n"
	    "seto %al\n"
	    "lahf\n"
	    "xor %rbx, %rbp; xor %rbx, %rsi; xor %rbx, %rdi; xor %rbx, %r8; xor %rbx, %r9\n"
	    "xor %rbx, %r10; xor %rbx, %r13; xor %rbx, %r14; xor %rbx, %r15\n"
	    "or %rbp, %r15; or %rsi, %r15; or %rdi, %r15; or %r8, %r15; or %r9, %r15\n"
	    "or %r10, %r15; or %r13, %r15; or %r14, %r15\n"
	    "movabs $0x5ca1ab1e0ddba11, %r14\n"
	    "xor %rbx, %r14\n"
	    "or %r14, %r15\n"
	    "xor (%r12), %rbx\n"
	    "or %rbx, %r15\n"
	    "mov %r12, %rbx\n"
	    "xor %rsp, %rbx\n"
	    "or %rbx, %r15\n"
	    "mov %r12, %rsp\n"
	    "add $8, %rsp\n"
	    "pop %rdi\n"
	    "xor %rdi, %r11\n"
	    "or %r11, %r15\n"
	    "pop %rdi\n"
	    "mov %rax, (%rdi); mov %rcx, 8(%rdi); mov %rdx, 16(%rdi); mov %r15, 24(%rdi)\n"
	    "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	    "ret\n");
}

static u8 *writable(const u8 *addr)
{
	return shim_writable + (addr - shim_text);
}

static u8 *emit(u8 *to, const void *code, size_t len)
{
	memcpy(writable(to), code, len);
	return to + len;
}

/* lea imm(%rcx), %rcx; ret: leaves the flags alone */
static u8 *emit_answer(u8 *to, u32 answer)
{
	if (answer < 0x80) {
		to = emit(to, "\x48\x8d\x49", 3);
		to = emit(to, &answer, 1);
	} else {
		to = emit(to, "\x48\x8d\x89", 3);
		to = emit(to, &answer, 4);
	}
	return emit(to, "\xc3", 1);
}

static void make_func(struct site *site, u8 *addr, unsigned int len)
{
	u8 *to;

	/* add $0x7f, %al; sahf */
	site->func = addr - 3;
	emit(site->func, "\x04\x7f\x9e", 3);

	site->addr = addr;
	site->len = len;
	to = emit_answer(addr + len, WENT_ON);
	site->label[0] = to;
	to = emit_answer(to, JUMPED(0));
	site->label[1] = to;
	emit_answer(to, JUMPED(1));

	nr_of_len[len]++;
	if (offset_in_page(addr) + len > PAGE_SIZE)
		on_pages[nr_on_pages++] = site - sites;
	else if (offset_in_page(addr) % 64 + len > 64)
		on_lines[nr_on_lines++] = site - sites;
}

static struct version site_version(unsigned int nr, u32 version)
{
	const struct site *site = &sites[nr];
	u64 state = seed + ((u64)nr << 32) + version;
	u64 random = shim_random(&state);
	unsigned int to = random >> 8 & 0xff, n = to % NR_TARGETS;
	struct version v = { .how = random >> 32, .cc = random >> 16 & 0xf };

	switch (random % 8) {
	case 0:
		v.op = RET;
		break;
	case 1 ... 2:
		v.op = NOP;
		break;
	case 3 ... 4:
		v.op = site->len > 1 ? JMP : NOP;
		break;
	default:
		v.op = site->len == CALL_INSN_SIZE ? CALL :
		       site->len == 2 || site->len == 6 ? JCC :
		       site->len > 1 ? JMP : RET;
		break;
	}

	if (v.op == CALL) {
		v.target = call_target[n];
		v.rcx = WENT_ON + CALLED(n);
	} else if (site->len >= JMP32_INSN_SIZE && to & 0x80) {
		v.target = jump_target[n];
		v.rcx = JUMPED_FAR(n);
	} else {
		v.target = site->label[n & 1];
		v.rcx = JUMPED(n & 1);
	}

	return v;
}

static const struct nop {
	u8	len;
	u8	code[MAX_LEN];
} nops[] = {
	{ 1, { 0x90 } },
	{ 2, { 0x66, 0x90 } },
	{ 3, { 0x0f, 0x1f, 0x00 } },
	{ 3, { 0x66, 0x66, 0x90 } },
	{ 4, { 0x0f, 0x1f, 0x40, 0x00 } },
	{ 4, { 0x66, 0x0f, 0x1f, 0x00 } },
	{ 5, { 0x0f, 0x1f, 0x44, 0x00, 0x00 } },
	{ 5, { 0x66, 0x0f, 0x1f, 0x40, 0x00 } },
	{ 5, { 0x66, 0x66, 0x66, 0x66, 0x90 } },
	{ 5, { 0x0f, 0x1f, 0x44, 0x00, 0x00 } },
	{ 6, { 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00 } },
};

/* A JMP or RET that is shorter than the site is followed by INT3. */
static void encode(unsigned int nr, const struct version *v, u8 code[8])
{
	const struct site *site = &sites[nr];
	unsigned int i, len = site->len, near = 0;
	s32 disp;

	memset(code, INT3_INSN_OPCODE, 8);

	switch (v->op) {
	case NOP:
		i = v->how % ARRAY_SIZE(nops);
		while (nops[i].len != site->len)
			i = (i + 1) % ARRAY_SIZE(nops);
		memcpy(code, nops[i].code, site->len);
		return;
	case RET:
		code[0] = RET_INSN_OPCODE;
		return;
	case CALL:
		code[0] = CALL_INSN_OPCODE;
		break;
	case JMP:
		near = v->target == site->label[0] || v->target == site->label[1];
		if (len < JMP32_INSN_SIZE || (near && v->how & 1)) {
			code[0] = JMP8_INSN_OPCODE;
			code[1] = v->target - site->addr - JMP8_INSN_SIZE;
			return;
		}
		code[0] = JMP32_INSN_OPCODE;
		len = JMP32_INSN_SIZE;
		break;
	case JCC:
		if (len == JMP8_INSN_SIZE) {
			code[0] = 0x70 | v->cc;
			code[1] = v->target - site->addr - JMP8_INSN_SIZE;
			return;
		}
		code[0] = 0x0f;
		code[1] = 0x80 | v->cc;
		break;
	}

	disp = v->target - site->addr - len;
	memcpy(code + len - sizeof(disp), &disp, sizeof(disp));
}

static void site_code(unsigned int nr, u32 version, u8 code[8])
{
	struct version v = site_version(nr, version);

	encode(nr, &v, code);
}

/*
 * All over the text: functions and targets, with INT3 between them. At the end of
 * every page, and often at the end of a cache line, is the middle of a site.
 */
static void make_text(void)
{
	static const u8 lengths[] = { 5, 5, 5, 5, 6, 6, 2, 2, 3, 4, 1 };
	u8 *to = shim_text + 16, *end = shim_text + TEXT_SIZE;
	unsigned int targets = 0;
	u64 random = seed;

	memset(shim_writable, INT3_INSN_OPCODE, TEXT_SIZE);

	while (nr_sites < MAX_SITES) {
		unsigned int len = lengths[below(&random, ARRAY_SIZE(lengths))];
		unsigned long room = PAGE_SIZE - offset_in_page(to);
		u8 *addr = to + 3 + below(&random, 64);

		if (room < 64 + 2 * FUNC_SIZE) {
			while (len < 2)
				len = lengths[below(&random, ARRAY_SIZE(lengths))];
			addr = to + room - 1 - below(&random, len - 1);
		} else if (len > 1 && below(&random, 2)) {
			addr = (u8 *)round_up((unsigned long)to + FUNC_SIZE, 64);
			addr -= 1 + below(&random, len - 1);
		}
		if (addr + len + FUNC_SIZE >= end)
			break;

		make_func(&sites[nr_sites++], addr, len);
		to = addr + len + 15;

		/* They must be in reach, no matter where. */
		if (targets < 2 * NR_TARGETS && offset_in_page(to) < 3072 && !below(&random, 16)) {
			unsigned int n = targets / 2;

			if (targets % 2) {
				jump_target[n] = to;
				to = emit_answer(to, JUMPED_FAR(n));
			} else {
				/* mov (%rsp), %rdx */
				call_target[n] = to;
				to = emit_answer(emit(to, "\x48\x8b\x14\x24", 4), CALLED(n));
			}
			targets++;
		}
		to += below(&random, 200);
	}
	if (targets < 2 * NR_TARGETS)
		wrong("no room for targets");
}

static void map_text(void)
{
	int fd = memfd_create("text", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, TEXT_SIZE)) {
		perror("memfd");
		exit(2);
	}
	shim_text = mmap(NULL, TEXT_SIZE, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_POPULATE, fd, 0);
	shim_writable = mmap(NULL, TEXT_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
			     fd, 0);
	if (shim_text == MAP_FAILED || shim_writable == MAP_FAILED) {
		perror("mmap");
		exit(2);
	}
}

/* Flags, and what the processor makes of them */

#define MEETS(cc, name)							\
do {									\
	u8 _is;								\
									\
	asm volatile("add $0x7f, %%al; sahf; set" name " %1"		\
		     : "+a" (_ax), "=&r" (_is) : : "cc");		\
	_meets |= _is << (cc);						\
	_ax = ax;							\
} while (0)

static u16 conditions_met(unsigned long ax)
{
	unsigned long _ax = ax;
	u16 _meets = 0;

	MEETS(0, "o"); MEETS(1, "no"); MEETS(2, "b"); MEETS(3, "nb");
	MEETS(4, "e"); MEETS(5, "ne"); MEETS(6, "be"); MEETS(7, "nbe");
	MEETS(8, "s"); MEETS(9, "ns"); MEETS(10, "p"); MEETS(11, "np");
	MEETS(12, "l"); MEETS(13, "nl"); MEETS(14, "le"); MEETS(15, "nle");
	return _meets;
}

static void make_flags(void)
{
	unsigned int i;

	for (i = 0; i < NR_FLAGS; i++) {
		/* SF, ZF, AF, PF, bit 1 always, CF */
		unsigned int ah = (i & 3) << 6 | (i & 4) << 2 | (i & 8) >> 1 | 2 | (i & 16) >> 4;

		flags_ax[i] = ah << 8 | i >> 5;
		flags_meet[i] = conditions_met(flags_ax[i]);
	}
}

static bool goes_there(const struct version *v, unsigned int flags)
{
	return v->op == JMP || v->op == CALL || (v->op == JCC && flags_meet[flags] & 1 << v->cc);
}

/* Runners */

static bool did_version(unsigned int nr, u32 version, unsigned int flags,
			const struct result *result)
{
	struct version v = site_version(nr, version);
	u64 rcx = v.op == RET ? 0 : goes_there(&v, flags) ? v.rcx : WENT_ON;
	u64 rdx = v.op == CALL ? (unsigned long)sites[nr].addr + CALL_INSN_SIZE : 0;

	return result->cx == rcx && result->dx == rdx;
}

/*
 * Read a version. Slowly: through pointers that each come from memory. A CPU has
 * the whole call fetched and decoded meanwhile, so if it finds that the version is
 * done, it must not execute what it has.
 */
static u32 read_done(unsigned int nr, bool slowly)
{
	static __thread struct { void *to; } __aligned(128) chain[SLOW_READS];
	void **from = &chain[0].to;
	unsigned int i;

	if (!slowly)
		return __atomic_load_n(&progress[nr].done, __ATOMIC_ACQUIRE);

	for (i = 0; i < SLOW_READS; i++) {
		chain[i].to = i + 1 < SLOW_READS ? (void *)&chain[i + 1].to : &progress[nr];
		__builtin_ia32_clflush((const void *)&chain[i]);
	}
	__builtin_ia32_clflush(&progress[nr]);
	__builtin_ia32_mfence();

	for (i = 1; i < SLOW_READS; i++)
		from = __atomic_load_n(from, __ATOMIC_RELAXED);
	return __atomic_load_n(&((const struct progress *)*from)->done, __ATOMIC_ACQUIRE);
}

static void call_one(unsigned int nr, bool slowly)
{
	const struct site *site = &sites[nr], *outer = me->site;
	unsigned int flags = below(&me->random, NR_FLAGS);
	u32 lo, hi, version, outer_lo = me->lo;
	struct result result;

	lo = read_done(nr, slowly);
	me->lo = lo;
	barrier();
	me->site = site;
	barrier();

	call_func(site->func, flags_ax[flags], &result);

	barrier();
	me->site = outer;
	barrier();
	me->lo = outer_lo;
	hi = __atomic_load_n(&progress[nr].queued, __ATOMIC_ACQUIRE);
	me->calls++;

	if (result.damage || (u16)result.ax != flags_ax[flags])
		wrong_site(nr, lo, hi, "registers, stack, or flags: %#lx, were %#x",
			   (long)result.ax, flags_ax[flags]);

	for (version = lo; !did_version(nr, version, flags, &result); version++) {
		if (version == hi)
			wrong_site(nr, lo, hi, "none goes to %#lx and returns to %#lx",
				   (long)result.cx, (long)result.dx);
	}
}

static unsigned int pick(u64 *random)
{
	u64 r = shim_random(random);

	if (r & 1 || __atomic_load_n(&narrow, __ATOMIC_RELAXED))
		return hot[(r >> 32) % __atomic_load_n(&nr_hot, __ATOMIC_RELAXED)];
	return (r >> 32) % nr_sites;
}

static void run(void)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		call_one(pick(&me->random), !(me->calls & (only_narrow ? 1 : 63)));
}

/* Fetchers */

static bool went_version(unsigned int nr, u32 version, unsigned int flags,
			 const struct pt_regs *regs, const unsigned long *sp,
			 unsigned long came_from)
{
	unsigned long next = (unsigned long)sites[nr].addr + sites[nr].len;
	struct version v = site_version(nr, version);

	switch (v.op) {
	case RET:
		return regs->ip == came_from && regs->sp == (unsigned long)(sp + 1);
	case CALL:
		return regs->ip == (unsigned long)v.target && sp[-1] == next &&
		       regs->sp == (unsigned long)(sp - 1);
	default:
		return regs->ip == (goes_there(&v, flags) ? (unsigned long)v.target : next) &&
		       regs->sp == (unsigned long)sp;
	}
}

static bool is_version(unsigned int nr, u32 version, const u8 *code)
{
	u8 expected[8];

	site_code(nr, version, expected);
	return !memcmp(code, expected, sites[nr].len);
}

static void fetch_one(unsigned int nr)
{
	unsigned int flags = below(&me->random, NR_FLAGS), i, first, step, slow;
	unsigned long stack[3] = { 0, (unsigned long)&stack, 0 }, *sp = stack + 1;
	const struct site *site = &sites[nr];
	u32 before, lo, hi, version;
	struct pt_regs regs;
	bool were_on;
	u8 code[8] = {};

	/* Up or down, from any of its bytes; one in four times with a wait after one of them. */
	first = below(&me->random, site->len);
	step = below(&me->random, 2) ? 1 : site->len - 1;
	slow = below(&me->random, 4) ? site->len + 1 : 1 + below(&me->random, site->len);

	before = __atomic_load_n(&progress[nr].done, __ATOMIC_ACQUIRE);
	were_on = shim_irqs_off();

	for (i = 0; i < site->len; i++) {
		unsigned int pos = (first + i * step) % site->len;

		code[pos] = __atomic_load_n(site->addr + pos, __ATOMIC_RELAXED);
		if (i + 1 == slow)
			shim_delay();
	}

	lo = __atomic_load_n(&progress[nr].done, __ATOMIC_ACQUIRE);
	if (code[0] == INT3_INSN_OPCODE) {
		regs.ip = (unsigned long)site->addr + INT3_INSN_SIZE;
		regs.sp = (unsigned long)sp;
		regs.flags = (flags_ax[flags] >> 8 & 0xd5) | (flags_ax[flags] & 1) << 11;
		if (!poke_int3_handler(&regs))
			wrong_site(nr, before, lo, "fetched a breakpoint that is not the engine's");
	}
	hi = __atomic_load_n(&progress[nr].queued, __ATOMIC_ACQUIRE);

	if (code[0] == INT3_INSN_OPCODE && lo == hi)
		wrong_site(nr, lo, hi, "fetched a breakpoint after all is done");

	for (version = before; ; version++) {
		if (code[0] == INT3_INSN_OPCODE ?
		    went_version(nr, version, flags, &regs, sp, (unsigned long)&stack) :
		    is_version(nr, version, code))
			break;
		if (version != hi)
			continue;
		if (code[0] == INT3_INSN_OPCODE)
			wrong_site(nr, before, hi, "fetched a breakpoint, none goes to +%#lx",
				   (long)(regs.ip - (unsigned long)shim_text));
		wrong_site(nr, before, hi, "fetched %02x %02x %02x %02x %02x %02x",
			   code[0], code[1], code[2], code[3], code[4], code[5]);
	}

	shim_irqs_restore(were_on);
	me->calls++;
}

static void fetch(void)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		fetch_one(pick(&me->random));
}

/* Signals */

static void on_trap(int sig, siginfo_t *info, void *context)
{
	greg_t *gregs = ((ucontext_t *)context)->uc_mcontext.gregs;
	struct pt_regs regs = {
		.ip = gregs[REG_RIP], .sp = gregs[REG_RSP], .flags = gregs[REG_EFL],
	};
	unsigned long ip = regs.ip - INT3_INSN_SIZE;
	const struct site *site = me ? me->site : NULL;
	bool were_on;

	if (!me || ip - (unsigned long)shim_text >= TEXT_SIZE)
		wrong("breakpoint outside of text, at %#lx", ip);

	were_on = shim_irqs_off();
	if (site && ip == (unsigned long)site->addr &&
	    __atomic_load_n(&progress[site - sites].queued, __ATOMIC_ACQUIRE) == me->lo)
		wrong("site %ld: version %u is done, and a CPU still runs into the breakpoint",
		      (long)(site - sites), me->lo);
	if (!poke_int3_handler(&regs))
		wrong("breakpoint at +%#lx (site %ld is at +%#lx) is not the engine's",
		      ip - (unsigned long)shim_text, site ? (long)(site - sites) : -1,
		      site ? (long)(site->addr - shim_text) : 0);
	shim_irqs_restore(were_on);

	gregs[REG_RIP] = regs.ip;
	gregs[REG_RSP] = regs.sp;
}

static void on_nmi(int sig)
{
	unsigned int i;

	for (i = 0; me && i < 4; i++)
		call_one(pick(&me->random), false);
}

static void on_crash(int sig, siginfo_t *info, void *context)
{
	greg_t *gregs = ((ucontext_t *)context)->uc_mcontext.gregs;
	const struct site *site = me ? me->site : NULL;

	wrong("SIG%s at +%#lx calling site %ld (at +%#lx)", sigabbrev_np(sig),
	      (long)gregs[REG_RIP] - (long)shim_text, site ? (long)(site - sites) : -1,
	      site ? (long)(site->addr - shim_text) : 0);
}

static void set_signals(void)
{
	static const int crashes[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE };
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER };
	unsigned int i;

	sigaction(SIGTRAP, &action, NULL);

	action.sa_sigaction = on_crash;
	action.sa_flags |= SA_ONSTACK;
	for (i = 0; i < ARRAY_SIZE(crashes); i++)
		sigaction(crashes[i], &action, NULL);

	action.sa_handler = on_nmi;
	action.sa_flags = SA_RESTART;
	sigaction(SIGUSR1, &action, NULL);
}

static void *runner(void *arg)
{
	stack_t stack = { .ss_size = 64 * 1024, .ss_sp = malloc(64 * 1024) };

	me = arg;
	this_cpu = me->cpu;
	sigaltstack(&stack, NULL);
	if (me->fetches)
		fetch();
	else
		run();
	return NULL;
}

/* The writer */

static struct {
	u64 batches, sites, nmis;
} wrote;

/* How it must not be done. */
static void write_badly(unsigned int nr, u32 version)
{
	u8 *to = writable(sites[nr].addr);
	u8 code[8];
	unsigned int i;

	site_code(nr, version, code);
	for (i = 1; i < sites[nr].len; i++)
		__atomic_store_n(to + i, code[i], __ATOMIC_RELAXED);
	if (bare_tail)
		__atomic_store_n(to, code[0], __ATOMIC_RELEASE);
}

static unsigned int batch_len(u64 *random)
{
	if (narrow)
		return 1;
	if (one_slot)
		return 1 + below(random, BATCH_SIZE_MIN);

	switch (below(random, 8)) {
	case 0 ... 2:
		return 1;
	case 3 ... 4:
		return 1 + below(random, 16);
	case 5 ... 6:
		return 1 + below(random, 200);
	default:
		return 1 + below(random, nr_sites);
	}
}

static void write_batch(u64 *random)
{
	static struct text_poke_site queue[MAX_SITES];
	unsigned int n = batch_len(random), way = below(random, 3), i;
	unsigned int stride = below(random, 2) ? 1 : 1 + below(random, nr_sites - 1);
	unsigned int nr = below(random, nr_sites);
	int ret = 0;

	/* One of a few, so that it is soon its turn again */
	if (narrow && way)
		nr = on_lines[(wrote.batches / 256 + below(random, 2)) % nr_on_lines];
	else if (narrow)
		nr = on_pages[(wrote.batches / 256 + below(random, 2)) % nr_on_pages];

	/* Neighbours, or from all over the text; some come twice. */
	for (i = 0; i < n; i++) {
		hot[i] = nr;
		if (below(random, 64))
			nr = (nr + stride) % nr_sites;
	}
	__atomic_store_n(&nr_hot, n, __ATOMIC_RELAXED);
	if (!one_slot)
		WRITE_ONCE(batch_max, below(random, 4) ? 0 : 1 + below(random, 256));

	shim_syncs = 0;
	for (i = 0; i < n; i++) {
		u32 version = progress[hot[i]].queued + 1;
		const struct site *site = &sites[hot[i]];
		struct text_poke_site *q = &queue[i];

		*q = (struct text_poke_site){ .addr = shim_kernel(site->addr), .len = site->len };
		site_code(hot[i], version - 1, q->old.insn);
		site_code(hot[i], version, q->new.insn);
		__atomic_store_n(&progress[hot[i]].queued, version, __ATOMIC_RELEASE);

		if (tail_first || bare_tail) {
			write_badly(hot[i], version);
			q->verified = true;
		}
	}
	if (bare_tail)
		goto done;

	switch (n == 1 ? 0 : way) {
	case 0:
		for (i = 0; i < n && !ret; i++) {
			const struct text_poke_site *q = &queue[i];

			if (n == 1)
				ret = text_poke_bp(q->addr, q->new.insn, q->len, NULL);
			else
				ret = text_poke_queue(q->addr, q->new.insn, q->len, q->new.insn);
		}
		break;
	case 1:
		ret = text_poke_queue_sites(queue, n);
		break;
	default:
		/* As callers do that have a buffer of a few */
		for (i = 0; i < n && !ret; i += 16)
			ret = text_poke_queue_sites(queue + i, min(n - i, 16U));
		break;
	}
	ret = text_poke_finish() ?: ret;
	if (ret)
		wrong("the engine returned %d", ret);

done:
	for (i = 0; i < n; i++)
		__atomic_store_n(&progress[hot[i]].done, progress[hot[i]].queued,
				 __ATOMIC_RELEASE);
	for (i = 0; i < n; i++) {
		if (!is_version(hot[i], progress[hot[i]].done, sites[hot[i]].addr))
			wrong("site %u: version %u got lost", hot[i], progress[hot[i]].done);
	}

	wrote.batches++;
	wrote.sites += n;
}

static void *writer(void *arg)
{
	u64 random = seed;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		__atomic_store_n(&narrow, only_narrow || wrote.batches % 4096 >= 512,
				 __ATOMIC_RELAXED);
		write_batch(&random);
		if (nr_runners && !below(&random, narrow ? 64 : 4)) {
			pthread_kill(runners[below(&random, nr_runners)].thread, SIGUSR1);
			wrote.nmis++;
		}
	}
	return NULL;
}

static void start(void)
{
	unsigned int i;
	u8 code[8];

	make_flags();
	map_text();
	make_text();
	for (i = 0; i < nr_sites; i++) {
		site_code(i, 0, code);
		emit(sites[i].addr, code, sites[i].len);
	}

	if (__stop_percpu - __start_percpu > sizeof(shim_cpus->percpu))
		wrong("a CPU's variables need more room");
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0)) {
		perror("membarrier");
		exit(4);
	}
	poking_init();
	set_signals();

	shim_nr_cpus = nr_runners + nr_fetchers;
	for (i = 0; i < shim_nr_cpus; i++) {
		shim_cpus[i].id = i;
		shim_cpus[i].random = seed + i;
		runners[i].cpu = &shim_cpus[i];
		runners[i].random = seed * 31 + i;
		runners[i].fetches = i >= nr_runners;
	}
}

static u64 now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ULL + now.tv_nsec / 1000000;
}

/* A CPU that executes rubbish may do so forever. */
static void watch(void)
{
	static u64 seen[SHIM_CPUS + 1], when[SHIM_CPUS + 1];
	u64 begin = now_ms(), now = begin, calls = 0;
	unsigned int i;

	while (now < begin + seconds * 1000ULL || calls < enough_calls) {
		usleep(20000);
		now = now_ms();
		calls = 0;
		for (i = 0; i <= shim_nr_cpus; i++) {
			u64 count = i < shim_nr_cpus ? READ_ONCE(runners[i].calls) :
						       READ_ONCE(wrote.batches);

			if (i < nr_runners)
				calls += count;
			if (!when[i] || seen[i] != count) {
				seen[i] = count;
				when[i] = now;
			} else if (now - when[i] > 10000) {
				wrong("thread %u does nothing any more", i);
			}
		}
	}
}

static void __noreturn usage(const char *name)
{
	fprintf(stderr,
		"%s [options]\n"
		"  --seconds=N     how long at least (30)\n"
		"  --calls=N       how many calls at least (0)\n"
		"  --threads=N     that call (as many as there are CPUs)\n"
		"  --fetchers=N    that fetch as slowly as a CPU may (1)\n"
		"  --seed=N        of functions, versions and batches (1)\n"
		"  --narrow        only one instruction at a time, and one that straddles\n"
		"  --slow          handlers are slow, always\n"
		"What the race must notice:\n"
		"  --no-sync=N     the Nth sync of each change: 1 after INT3, 2 after the tail,\n"
		"                  3 after the first byte\n"
		"  --no-handler    a sync does not wait for handlers\n"
		"  --late-publish  INT3 is written before the handler can find the site\n"
		"  --tail-first    the tail is written before INT3\n"
		"  --bare-tail     no INT3 at all\n"
		"Returns 0 if nothing was wrong, 1 if something was.\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seconds", required_argument, NULL, 's' },
		{ "calls", required_argument, NULL, 'c' },
		{ "narrow", no_argument, NULL, 'w' },
		{ "slow", no_argument, NULL, 'o' },
		{ "threads", required_argument, NULL, 't' },
		{ "fetchers", required_argument, NULL, 'f' },
		{ "seed", required_argument, NULL, 'e' },
		{ "no-sync", required_argument, NULL, 'n' },
		{ "no-handler", no_argument, NULL, 'h' },
		{ "late-publish", no_argument, NULL, 'l' },
		{ "tail-first", no_argument, NULL, 'i' },
		{ "bare-tail", no_argument, NULL, 'b' },
		{ }
	};
	struct text_poke_test_counters counters;
	u64 calls = 0, fetched = 0, begin, ms;
	pthread_t writes;
	unsigned int i;
	int option;

	nr_runners = sysconf(_SC_NPROCESSORS_ONLN);
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 's':
			seconds = atoi(optarg);
			break;
		case 'c':
			enough_calls = strtoull(optarg, NULL, 0);
			break;
		case 'o':
			shim.slow = 1;
			break;
		case 'w':
			only_narrow = true;
			break;
		case 't':
			nr_runners = atoi(optarg);
			break;
		case 'f':
			nr_fetchers = atoi(optarg);
			break;
		case 'e':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			shim.no_sync |= BIT(atoi(optarg) & 31);
			/* So that each sync is there for one phase only */
			one_slot = true;
			break;
		case 'h':
			shim.no_handler = true;
			shim.slow = 1;
			break;
		case 'l':
			shim.late_publish = true;
			break;
		case 'i':
			tail_first = true;
			break;
		case 'b':
			bare_tail = true;
			break;
		default:
			usage(argv[0]);
		}
	}
	if (optind < argc || nr_runners + nr_fetchers > SHIM_CPUS)
		usage(argv[0]);

	setrlimit(RLIMIT_CORE, &(struct rlimit){});
	setvbuf(stdout, NULL, _IOLBF, 0);
	start();
	printf("# %u sites (of 1 to 6 bytes: %u %u %u %u %u %u), ", nr_sites, nr_of_len[1],
	       nr_of_len[2], nr_of_len[3], nr_of_len[4], nr_of_len[5], nr_of_len[6]);
	printf("%u on two cache lines, %u on two pages; ", nr_on_lines, nr_on_pages);
	printf("%u threads, %u fetchers, seed %llu\n", nr_runners, nr_fetchers,
	       (unsigned long long)seed);

	begin = now_ms();
	for (i = 0; i < shim_nr_cpus; i++)
		pthread_create(&runners[i].thread, NULL, runner, &runners[i]);
	pthread_create(&writes, NULL, writer, NULL);
	watch();
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	ms = now_ms() - begin;
	/* The writer first: it sends signals to the others, which must still be there. */
	pthread_join(writes, NULL);
	for (i = 0; i < shim_nr_cpus; i++)
		pthread_join(runners[i].thread, NULL);

	for (i = 0; i < shim_nr_cpus; i++)
		*(runners[i].fetches ? &fetched : &calls) += runners[i].calls;
	text_poke_test_counters(&counters);
	printf("# %llu calls, %llu fetches, ", (unsigned long long)calls,
	       (unsigned long long)fetched);
	printf("%llu patches in %llu batches (%llu sites/s), ", (unsigned long long)wrote.sites,
	       (unsigned long long)wrote.batches, (unsigned long long)(wrote.sites * 1000 / ms));
	printf("%llu syncs, %llu traps, %llu stale traps, %llu nested signals, torn = 0\n",
	       (unsigned long long)counters.syncs, (unsigned long long)counters.traps,
	       (unsigned long long)counters.stale_traps, (unsigned long long)wrote.nmis);
	return 0;
}
