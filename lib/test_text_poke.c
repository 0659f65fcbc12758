// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of the x86 text patcher, arch/x86/kernel/text_patch.c.
 *
 * The arena is text that belongs to nobody but this suite. Each test lays out
 * instructions there, has them replaced, and executes them at every stage: with
 * the breakpoint planted and the old tail behind it, with the new tail, and
 * when all is done. At all three they must do what the Intel SDM says that the
 * instruction does; the last stage holds the CPU itself against the same
 * expectation.
 *
 * No KUNIT_ASSERT and no kunit_skip() where text_mutex is held: the test's
 * thread would end there and then.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/execmem.h>
#include <linux/jiffies.h>
#include <linux/jump_label.h>
#include <linux/kdebug.h>
#include <linux/kprobes.h>
#include <linux/kthread.h>
#include <linux/memory.h>
#include <linux/pgtable.h>
#include <linux/prandom.h>
#include <linux/set_memory.h>
#include <linux/slab.h>
#include <linux/unaligned.h>
#include <linux/vmalloc.h>
#include <kunit/test.h>

#include <asm/nops.h>
#include <asm/text-patching.h>

#include "test_text_poke.h"

#define ARENA_SIZE	(ARENA_PAGES * PAGE_SIZE)

static_assert(offsetof(struct cpu_state, flags) == STATE_FLAGS);
static_assert(offsetof(struct cpu_state, top) == STATE_TOP);
static_assert(offsetof(struct cpu_state, sp) == STATE_SP);
static_assert(offsetof(struct cpu_state, ip) == STATE_IP);
static_assert(offsetof(struct cpu_state, landing) == STATE_LANDING);

struct cpu_state text_poke_test_before, text_poke_test_after;
unsigned long text_poke_test_sp;

/*
 * text_poke_test_arena, but the compiler does not know: objtool would wonder
 * about addresses in the middle of it.
 */
static u8 *arena;
static u8 *want;		/* what the arena should hold */

static atomic_t nr_trapped;	/* breakpoints that the engine left to others */
static struct task_struct *racer;

/* What may become of a CPU that executes an instruction. */
enum action { FALLS_THROUGH, JUMPS, BRANCHES, CALLS, RETURNS, TRAPS };

struct site {
	const char	*name;
	u8		*addr;
	unsigned int	len;
	u8		text[TEXT_POKE_MAX_INSN_SIZE];
	enum action	does;
	const u8	*emulate;
	enum action	meanwhile;	/* if there is something to emulate */
	u8		cc;		/* of what BRANCHES */
};

/* The lengths of code put round a site, see lay_out(). */
#define JMP_LEN		5
#define SITE_ROOM	(JMP_LEN + TEXT_POKE_MAX_INSN_SIZE + 2 * JMP_LEN)

static void put_disp32(u8 *insn, u8 opcode, const u8 *addr, const u8 *to)
{
	/* Folded into one constant, objtool would take it for a pointer to code. */
	OPTIMIZER_HIDE_VAR(to);

	insn[0] = opcode;
	put_unaligned((s32)(to - (addr + JMP_LEN)), (s32 *)(insn + 1));
}

static void arena_jump(u8 *addr, const u8 *to)
{
	put_disp32(want + (addr - arena), 0xe9, addr, to);
}

static void arena_put(u8 *addr, const void *bytes, size_t len)
{
	memcpy(want + (addr - arena), bytes, len);
}

/* Nothing is planted and nobody executes there, so it may be written at once. */
static void arena_write(void)
{
	text_poke(arena, want, ARENA_SIZE);
	text_poke_sync();
}

static void arena_check(struct kunit *test, const char *what)
{
	size_t i;

	if (!memcmp(arena, want, ARENA_SIZE))
		return;

	for (i = 0; arena[i] == want[i]; i++)
		;
	KUNIT_FAIL(test, "%s: arena+%#zx holds %*ph, should be %*ph", what, i,
		   (int)min(ARENA_SIZE - i, 8), arena + i, (int)min(ARENA_SIZE - i, 8), want + i);
}

/*
 * A site in the arena, a NOP as yet, between jumps to where it may lead. Short
 * jumps cannot reach a landing, so there is one within their reach on each side.
 */
static void lay_out(const struct site *site)
{
	arena_jump(site->addr - JMP_LEN, text_poke_test_taken);
	arena_put(site->addr, x86_nops[site->len], site->len);
	arena_jump(site->addr + site->len, text_poke_test_next);
	arena_jump(site->addr + site->len + JMP_LEN, text_poke_test_taken);
}

#define DISP8_FORWARD	JMP_LEN
#define DISP8_BACK(len)	((u8)-((len) + JMP_LEN))

/* SDM Vol. 2A, "Jcc - Jump if Condition Is Met", line by line. */
static bool branch_taken(u8 cc, unsigned long flags)
{
	bool cf = flags & X86_EFLAGS_CF;
	bool pf = flags & X86_EFLAGS_PF;
	bool zf = flags & X86_EFLAGS_ZF;
	bool sf = flags & X86_EFLAGS_SF;
	bool of = flags & X86_EFLAGS_OF;

	switch (cc) {
	case 0x0: return of;			/* JO  */
	case 0x1: return !of;			/* JNO */
	case 0x2: return cf;			/* JB  */
	case 0x3: return !cf;			/* JAE */
	case 0x4: return zf;			/* JE  */
	case 0x5: return !zf;			/* JNE */
	case 0x6: return cf || zf;		/* JBE */
	case 0x7: return !cf && !zf;		/* JA  */
	case 0x8: return sf;			/* JS  */
	case 0x9: return !sf;			/* JNS */
	case 0xa: return pf;			/* JP  */
	case 0xb: return !pf;			/* JNP */
	case 0xc: return sf != of;		/* JL  */
	case 0xd: return sf == of;		/* JGE */
	case 0xe: return zf || sf != of;	/* JLE */
	default:  return !zf && sf == of;	/* JG  */
	}
}

static const unsigned long arith_flags[] = {
	X86_EFLAGS_CF, X86_EFLAGS_PF, X86_EFLAGS_AF, X86_EFLAGS_ZF, X86_EFLAGS_SF, X86_EFLAGS_OF,
};

#define ARITH_COMBINATIONS	BIT(ARRAY_SIZE(arith_flags))

/* One of the combinations of the arithmetic flags, the others as they are now. */
static unsigned long combine_flags(unsigned int combination)
{
	unsigned long flags;
	unsigned int i;

	local_save_flags(flags);
	for (i = 0; i < ARRAY_SIZE(arith_flags); i++) {
		flags &= ~arith_flags[i];
		if (combination & BIT(i))
			flags |= arith_flags[i];
	}

	return flags;
}

static void run_at(const u8 *addr, unsigned long flags)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(text_poke_test_before.gpr); i++)
		text_poke_test_before.gpr[i] = 0x0123456789abcdefUL * (2 * i + 1);
	text_poke_test_before.flags = flags;
	text_poke_test_before.top = (unsigned long)text_poke_test_back;
	text_poke_test_before.ip = (unsigned long)addr;
	text_poke_test_after = (struct cpu_state){};

	text_poke_test_run();
}

/* Where the instruction leads, and what it does to the stack: SDM Vol. 2, at each one. */
static unsigned int expected_landing(const struct site *site, enum action does,
				     unsigned long flags, long *sp, unsigned long *top)
{
	switch (does) {
	case FALLS_THROUGH:
		return NEXT;
	case JUMPS:
		return TAKEN;
	case BRANCHES:
		return branch_taken(site->cc, flags) ? TAKEN : NEXT;
	case CALLS:
		/* "Pushes the ... address of the instruction following the CALL" */
		*sp -= sizeof(long);
		*top = (unsigned long)site->addr + 5;
		return TAKEN;
	case RETURNS:
		*sp += sizeof(long);
		return BACK;
	default:
		return TRAPPED;
	}
}

static void check_run(struct kunit *test, const struct site *site, enum action does,
		      unsigned long flags, const char *stage)
{
	unsigned long sp, top = (unsigned long)text_poke_test_back;
	long sp_change = 0;
	unsigned int where = expected_landing(site, does, flags, &sp_change, &top);

	run_at(site->addr, flags);
	sp = text_poke_test_sp - sizeof(long) + sp_change;

	KUNIT_EXPECT_EQ_MSG(test, text_poke_test_after.landing, where,
			    "%s %s, flags %#lx: where it leads", site->name, stage, flags);
	KUNIT_EXPECT_EQ_MSG(test, text_poke_test_after.sp, sp,
			    "%s %s: stack pointer", site->name, stage);
	if (does != RETURNS)
		KUNIT_EXPECT_EQ_MSG(test, text_poke_test_after.top, top,
				    "%s %s: top of stack", site->name, stage);
	KUNIT_EXPECT_EQ_MSG(test, text_poke_test_after.flags, flags,
			    "%s %s: flags", site->name, stage);
	KUNIT_EXPECT_MEMEQ_MSG(test, text_poke_test_after.gpr, text_poke_test_before.gpr,
			       sizeof(text_poke_test_after.gpr),
			       "%s %s: registers", site->name, stage);
}

/* Return: how often it was executed. */
static unsigned int check_runs(struct kunit *test, const struct site *site, enum action does,
			       const char *stage)
{
	unsigned int i, step = does == BRANCHES ? 1 : ARITH_COMBINATIONS - 1;
	unsigned int runs = 0;

	for (i = 0; i < ARITH_COMBINATIONS; i += step) {
		check_run(test, site, does, combine_flags(i), stage);
		runs++;
	}

	return runs;
}

static void check_bytes(struct kunit *test, const struct site *site, u8 first, const u8 *tail,
			const char *stage)
{
	KUNIT_EXPECT_EQ_MSG(test, *site->addr, first, "%s %s: first byte", site->name, stage);
	KUNIT_EXPECT_MEMEQ_MSG(test, site->addr + 1, tail + 1, site->len - 1,
			       "%s %s: tail", site->name, stage);
}

/*
 * Replace a site and execute it at each stage. The breakpoint must really be
 * there, and be counted whenever it is run into, or the test would only compare
 * the CPU with itself.
 */
static void check_replacing(struct kunit *test, const struct site *site)
{
	struct text_poke_test_counters start, now;
	enum action meanwhile = site->emulate ? site->meanwhile : site->does;
	u8 old[TEXT_POKE_MAX_INSN_SIZE];
	unsigned int runs = 0;

	memcpy(old, site->addr, site->len);
	text_poke_test_counters(&start);

	KUNIT_EXPECT_EQ(test, 0, text_poke_queue(site->addr, site->text, site->len, site->emulate));
	check_bytes(test, site, old[0], old, "queued");

	KUNIT_EXPECT_EQ(test, 0, text_poke_test_step());
	check_bytes(test, site, INT3_INSN_OPCODE, old, "planted");
	runs += check_runs(test, site, meanwhile, "planted");

	KUNIT_EXPECT_EQ(test, 0, text_poke_test_step());
	check_bytes(test, site, INT3_INSN_OPCODE, site->text, "with its new tail");
	runs += check_runs(test, site, meanwhile, "with its new tail");

	KUNIT_EXPECT_EQ(test, 0, text_poke_finish());
	check_bytes(test, site, site->text[0], site->text, "replaced");
	check_runs(test, site, site->does, "replaced");

	text_poke_test_counters(&now);
	KUNIT_EXPECT_EQ_MSG(test, now.traps - start.traps, meanwhile == TRAPS ? 0 : runs,
			    "%s: breakpoints emulated", site->name);
	KUNIT_EXPECT_EQ_MSG(test, now.stale_traps, start.stale_traps,
			    "%s: stale breakpoints", site->name);
}

/* The same in the arena, with nothing else touched. */
static void check_site(struct kunit *test, struct site *site)
{
	lay_out(site);
	arena_write();
	check_replacing(test, site);
	arena_put(site->addr, site->text, site->len);
	arena_check(test, site->name);
}

/* Far from the ends of the arena, and of a page. */
static u8 *anywhere(void)
{
	return arena + 2 * PAGE_SIZE + 0x200;
}

static struct site disp32_site(const char *name, u8 opcode, enum action does, const u8 *to)
{
	struct site site = {
		.name = name, .addr = anywhere(), .len = JMP_LEN, .does = does,
	};

	put_disp32(site.text, opcode, site.addr, to);
	return site;
}

static struct site call_site(void)
{
	return disp32_site("CALL", 0xe8, CALLS, text_poke_test_taken);
}

static struct site jmp_site(void)
{
	return disp32_site("JMP rel32", 0xe9, JUMPS, text_poke_test_taken);
}

static struct site jcc32_site(u8 *addr, u8 cc)
{
	struct site site = {
		.name = "Jcc rel32", .addr = addr, .len = 6, .cc = cc, .does = BRANCHES,
	};

	put_disp32(site.text + 1, 0x80 | cc, addr + 1, text_poke_test_taken);
	site.text[0] = 0x0f;
	return site;
}

static void test_call(struct kunit *test)
{
	struct site site = call_site();

	mutex_lock(&text_mutex);
	check_site(test, &site);
	mutex_unlock(&text_mutex);
}

static void test_jmp32(struct kunit *test)
{
	struct site site = jmp_site();

	mutex_lock(&text_mutex);
	check_site(test, &site);
	mutex_unlock(&text_mutex);
}

static void test_jmp8(struct kunit *test)
{
	struct site sites[] = {
		{ "JMP rel8", anywhere(), 2, { 0xeb, DISP8_FORWARD }, JUMPS },
		{ "JMP rel8, back", anywhere(), 2, { 0xeb, DISP8_BACK(2) }, JUMPS },
		{ "JMP rel8, padded", anywhere(), 5,
		  { 0xeb, DISP8_FORWARD + 3, 0xcc, 0xcc, 0xcc }, JUMPS },
	};
	unsigned int i;

	mutex_lock(&text_mutex);
	for (i = 0; i < ARRAY_SIZE(sites); i++)
		check_site(test, &sites[i]);
	mutex_unlock(&text_mutex);
}

static void test_jcc8(struct kunit *test)
{
	u8 cc;

	mutex_lock(&text_mutex);
	for (cc = 0; cc < 16; cc++) {
		struct site forward = {
			"Jcc rel8", anywhere(), 2, { 0x70 | cc, DISP8_FORWARD }, BRANCHES, .cc = cc,
		};
		struct site back = {
			"Jcc rel8, back", anywhere(), 2, { 0x70 | cc, DISP8_BACK(2) }, BRANCHES,
			.cc = cc,
		};

		check_site(test, &forward);
		check_site(test, &back);
	}
	mutex_unlock(&text_mutex);
}

static void test_jcc32(struct kunit *test)
{
	u8 cc;

	mutex_lock(&text_mutex);
	for (cc = 0; cc < 16; cc++) {
		struct site site = jcc32_site(anywhere(), cc);

		check_site(test, &site);
	}
	mutex_unlock(&text_mutex);
}

static void test_ret(struct kunit *test)
{
	struct site sites[] = {
		{ "RET", anywhere(), 1, { 0xc3 }, RETURNS },
		{ "RET, padded", anywhere(), 5, { 0xc3, 0xcc, 0xcc, 0xcc, 0xcc }, RETURNS },
	};
	unsigned int i;

	mutex_lock(&text_mutex);
	for (i = 0; i < ARRAY_SIZE(sites); i++)
		check_site(test, &sites[i]);
	mutex_unlock(&text_mutex);
}

/* SDM Vol. 2B, "NOP - No Operation", and the other forms that are in use. */
static void test_nop(struct kunit *test)
{
	struct site others[] = {
		{ "NOP, two prefixes", anywhere(), 3, { 0x66, 0x66, 0x90 }, FALLS_THROUGH },
		{ "NOP, disp8", anywhere(), 4, { 0x0f, 0x1f, 0x40, 0x7f }, FALLS_THROUGH },
		{ "NOP, SIB", anywhere(), 4, { 0x0f, 0x1f, 0x04, 0x00 }, FALLS_THROUGH },
		{ "NOP, CS prefix", anywhere(), 6, { 0x2e, 0x0f, 0x1f, 0x44, 0x00, 0x00 },
		  FALLS_THROUGH },
		{ "NOP, register", anywhere(), 3, { 0x0f, 0x1f, 0xc0 }, FALLS_THROUGH },
	};
	unsigned int i;

	mutex_lock(&text_mutex);
	for (i = 1; i <= TEXT_POKE_MAX_INSN_SIZE; i++) {
		struct site site = {
			.name = "NOP", .addr = anywhere(), .len = i, .does = FALLS_THROUGH,
		};

		memcpy(site.text, x86_nops[i], i);
		check_site(test, &site);
	}
	for (i = 0; i < ARRAY_SIZE(others); i++)
		check_site(test, &others[i]);
	mutex_unlock(&text_mutex);
}

/* A breakpoint for somebody else: never emulated, not even while it is being planted. */
static void test_int3(struct kunit *test)
{
	struct site sites[] = {
		{ "INT3", anywhere(), 1, { 0xcc }, TRAPS },
		{ "INT3, any tail", anywhere(), 5, { 0xcc, 0x11, 0x22, 0x33, 0x44 }, TRAPS },
	};
	int trapped = atomic_read(&nr_trapped);
	unsigned int i;

	mutex_lock(&text_mutex);
	for (i = 0; i < ARRAY_SIZE(sites); i++) {
		check_site(test, &sites[i]);
		/* Two runs at each of three stages. */
		trapped += 6;
		KUNIT_EXPECT_EQ(test, atomic_read(&nr_trapped), trapped);
	}
	mutex_unlock(&text_mutex);
}

/* A planted site does what @emulate says, and only a finished one what was written. */
static void test_emulate_differs(struct kunit *test)
{
	struct site call = call_site();
	struct site nop = {
		"NOP, meanwhile CALL", anywhere(), 5, { BYTES_NOP5 }, FALLS_THROUGH,
		call.text, CALLS,
	};
	static const u8 ret[] = { 0xc3, 0xcc, 0xcc, 0xcc, 0xcc };
	static const u8 int3[] = { 0xcc, 0, 0, 0, 0 };
	struct site jmp = jmp_site();

	mutex_lock(&text_mutex);
	check_site(test, &nop);

	jmp.name = "JMP, meanwhile RET";
	jmp.emulate = ret;
	jmp.meanwhile = RETURNS;
	check_site(test, &jmp);

	jmp.name = "JMP, meanwhile INT3";
	jmp.emulate = int3;
	jmp.meanwhile = TRAPS;
	check_site(test, &jmp);
	mutex_unlock(&text_mutex);
}

/* Every way in which an instruction can cross the end of a page. */
static void test_page_end(struct kunit *test)
{
	u8 *page_end = arena + 3 * PAGE_SIZE;
	unsigned int on_first;

	mutex_lock(&text_mutex);
	for (on_first = 1; on_first < JMP_LEN; on_first++) {
		struct site site = call_site();

		site.name = "CALL over a page end";
		site.addr = page_end - on_first;
		put_disp32(site.text, 0xe8, site.addr, text_poke_test_taken);
		check_site(test, &site);

		/* The jumps of the last one would be in the way of the next. */
		memset(want, INT3_INSN_OPCODE, ARENA_SIZE);
	}
	for (on_first = 1; on_first < 6; on_first++) {
		struct site site = jcc32_site(page_end - on_first, on_first);

		site.name = "Jcc rel32 over a page end";
		check_site(test, &site);
		memset(want, INT3_INSN_OPCODE, ARENA_SIZE);
	}
	mutex_unlock(&text_mutex);
}

static struct site page_end_site(unsigned int page)
{
	struct site site = call_site();

	site.name = "CALL over one of many page ends";
	site.addr = arena + (page + 1) * PAGE_SIZE - 1 - page % (JMP_LEN - 1);
	put_disp32(site.text, 0xe8, site.addr, text_poke_test_taken);
	return site;
}

static void check_page_ends(struct kunit *test, unsigned int stride)
{
	struct site site;
	unsigned int i;

	memset(want, INT3_INSN_OPCODE, ARENA_SIZE);
	for (i = 0; i < ARENA_PAGES - 1; i += stride) {
		site = page_end_site(i);
		lay_out(&site);
	}
	arena_write();

	for (i = 0; i < ARENA_PAGES - 1; i += stride) {
		site = page_end_site(i);
		text_poke_queue(site.addr, site.text, site.len, NULL);
		arena_put(site.addr, site.text, site.len);
	}
	KUNIT_EXPECT_EQ(test, 0, text_poke_test_step());
	for (i = 0; i < ARENA_PAGES - 1; i += stride) {
		site = page_end_site(i);
		check_bytes(test, &site, INT3_INSN_OPCODE, x86_nops[JMP_LEN], "planted");
		check_runs(test, &site, CALLS, "planted");
	}
	KUNIT_EXPECT_EQ(test, 0, text_poke_finish());
	arena_check(test, "over page ends");
}

/*
 * Far apart, each one over another page end: more pages than the engine maps at a
 * time, first one after the other, then with one left out after every two.
 */
static void test_page_ends(struct kunit *test)
{
	mutex_lock(&text_mutex);
	check_page_ends(test, 1);
	check_page_ends(test, 3);
	mutex_unlock(&text_mutex);
}

/*
 * Many sites, close to each other: 5 bytes and the jump behind them. They cross
 * page ends at every offset, and there are more than the three slots can hold.
 */
#define MANY_SITES	6400
#define MANY_STRIDE	11

static_assert(MANY_SITES * MANY_STRIDE < ARENA_PAGES * 4096);

static struct site many_site(unsigned int i)
{
	struct site site = {
		.name = "one of many", .addr = arena + i * MANY_STRIDE, .len = JMP_LEN,
	};

	switch (i % 3) {
	case 0:
		site.does = CALLS;
		put_disp32(site.text, 0xe8, site.addr, text_poke_test_taken);
		break;
	case 1:
		site.does = JUMPS;
		put_disp32(site.text, 0xe9, site.addr, text_poke_test_taken);
		break;
	default:
		site.does = RETURNS;
		memset(site.text, INT3_INSN_OPCODE, site.len);
		site.text[0] = 0xc3;
	}

	return site;
}

static void lay_out_many(unsigned int nr)
{
	unsigned int i;

	memset(want, INT3_INSN_OPCODE, ARENA_SIZE);
	for (i = 0; i < nr; i++) {
		struct site site = many_site(i);

		arena_put(site.addr, x86_nops[site.len], site.len);
		arena_jump(site.addr + site.len, text_poke_test_next);
	}
	arena_write();
}

static void queue_many(struct kunit *test, unsigned int i)
{
	struct site site = many_site(i);
	int ret = text_poke_queue(site.addr, site.text, site.len, NULL);

	KUNIT_EXPECT_EQ(test, 0, ret);
	arena_put(site.addr, site.text, site.len);
}

/* Return: how many are planted. All are executed. */
static unsigned int check_planted_many(struct kunit *test)
{
	unsigned int i, planted = 0;

	for (i = 0; i < MANY_SITES; i++) {
		struct site site = many_site(i);

		if (*site.addr == INT3_INSN_OPCODE) {
			planted++;
			check_run(test, &site, site.does, combine_flags(0), "planted");
		}
	}

	return planted;
}

/*
 * Have all of them replaced in @order. Whatever the order is, K slots take K + 2
 * syncs: the slots share them, see the head of text_patch.c.
 */
static void check_many(struct kunit *test, const u16 *order)
{
	struct text_poke_test_counters start, now;
	unsigned int i, planted;

	lay_out_many(MANY_SITES);
	text_poke_test_counters(&start);

	for (i = 0; i < MANY_SITES; i++)
		queue_many(test, order[i]);
	KUNIT_EXPECT_EQ(test, 0, text_poke_test_step());
	planted = check_planted_many(test);
	KUNIT_EXPECT_EQ(test, 0, text_poke_finish());

	text_poke_test_counters(&now);
	arena_check(test, "many sites");
	KUNIT_EXPECT_GT(test, planted, 0);
	KUNIT_EXPECT_EQ(test, now.traps - start.traps, planted);
	KUNIT_EXPECT_EQ(test, now.batches - start.batches, 1);
	KUNIT_EXPECT_EQ(test, now.sites - start.sites, MANY_SITES);
	KUNIT_EXPECT_GT(test, now.slots - start.slots, 3);
	KUNIT_EXPECT_EQ(test, now.syncs - start.syncs, now.slots - start.slots + 2);

	for (i = 0; i < MANY_SITES; i++) {
		struct site site = many_site(i);

		check_run(test, &site, site.does, combine_flags(0), "replaced");
	}
}

static u16 *new_order(struct kunit *test)
{
	u16 *order = kunit_kcalloc(test, MANY_SITES, sizeof(*order), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, order);
	for (i = 0; i < MANY_SITES; i++)
		order[i] = i;
	return order;
}

static void test_more_than_three_slots(struct kunit *test)
{
	u16 *order = new_order(test);

	mutex_lock(&text_mutex);
	check_many(test, order);
	mutex_unlock(&text_mutex);
}

static void test_reverse_order(struct kunit *test)
{
	u16 *order = new_order(test);
	unsigned int i;

	for (i = 0; i < MANY_SITES / 2; i++)
		swap(order[i], order[MANY_SITES - 1 - i]);

	mutex_lock(&text_mutex);
	check_many(test, order);
	mutex_unlock(&text_mutex);
}

static void test_random_order(struct kunit *test)
{
	u16 *order = new_order(test);
	struct rnd_state rnd;
	unsigned int i;

	/* The same one each time. */
	prandom_seed_state(&rnd, 612);
	for (i = MANY_SITES - 1; i > 0; i--) {
		unsigned int with = prandom_u32_state(&rnd) % (i + 1);

		swap(order[i], order[with]);
	}

	mutex_lock(&text_mutex);
	check_many(test, order);
	mutex_unlock(&text_mutex);
}

/* Between two that came in reverse order, and are planted meanwhile. */
static void test_between_planted(struct kunit *test)
{
	static const unsigned int order[] = { 2, 0, 1 };
	struct text_poke_test_counters start, now;
	unsigned int i;

	mutex_lock(&text_mutex);
	lay_out_many(ARRAY_SIZE(order));
	text_poke_test_counters(&start);
	for (i = 0; i < ARRAY_SIZE(order); i++) {
		if (i == 2)
			KUNIT_EXPECT_EQ(test, 0, text_poke_test_step());
		queue_many(test, order[i]);
	}
	KUNIT_EXPECT_EQ(test, 0, text_poke_finish());
	text_poke_test_counters(&now);
	arena_check(test, "between planted sites");
	KUNIT_EXPECT_EQ(test, now.sites - start.sites, ARRAY_SIZE(order));
	KUNIT_EXPECT_EQ(test, now.syncs - start.syncs, 2 + 2);
	mutex_unlock(&text_mutex);
}

/* The address of one twice: the later one wins, and they are never both planted. */
static void test_same_site_twice(struct kunit *test)
{
	struct text_poke_test_counters start, now;
	struct site call = call_site(), jmp = jmp_site();

	mutex_lock(&text_mutex);
	lay_out(&call);
	arena_write();
	text_poke_test_counters(&start);
	KUNIT_EXPECT_EQ(test, 0, text_poke_queue(call.addr, call.text, call.len, NULL));
	KUNIT_EXPECT_EQ(test, 0, text_poke_queue(jmp.addr, jmp.text, jmp.len, NULL));
	check_bytes(test, &call, 0xe8, call.text, "replaced, as it is queued again");
	KUNIT_EXPECT_EQ(test, 0, text_poke_finish());
	text_poke_test_counters(&now);
	arena_put(jmp.addr, jmp.text, jmp.len);
	arena_check(test, "queued twice");
	check_runs(test, &jmp, JUMPS, "queued twice");

	/* One pipeline, emptied in between. */
	KUNIT_EXPECT_EQ(test, now.batches - start.batches, 1);
	KUNIT_EXPECT_EQ(test, now.slots - start.slots, 2);
	KUNIT_EXPECT_EQ(test, now.sites - start.sites, 2);
	KUNIT_EXPECT_EQ(test, now.syncs - start.syncs, 2 * 3);

	/* The same when the first one is planted already, and further on. */
	KUNIT_EXPECT_EQ(test, 0, text_poke_queue(call.addr, call.text, call.len, NULL));
	KUNIT_EXPECT_EQ(test, 0, text_poke_test_step());
	KUNIT_EXPECT_EQ(test, 0, text_poke_queue(jmp.addr, jmp.text, jmp.len, NULL));
	check_bytes(test, &call, 0xe8, call.text, "replaced, as it is queued when planted");
	KUNIT_EXPECT_EQ(test, 0, text_poke_test_step());
	KUNIT_EXPECT_EQ(test, 0, text_poke_test_step());
	KUNIT_EXPECT_EQ(test, 0, text_poke_queue(call.addr, call.text, call.len, NULL));
	check_bytes(test, &jmp, 0xe9, jmp.text, "replaced, as it is queued with its tail new");
	KUNIT_EXPECT_EQ(test, 0, text_poke_finish());
	arena_put(call.addr, call.text, call.len);
	arena_check(test, "queued three times");
	mutex_unlock(&text_mutex);
}

/* Two sites that share bytes are replaced one after the other, too. */
static void test_overlapping_sites(struct kunit *test)
{
	static const u8 nop[] = { BYTES_NOP2 };
	struct site call = call_site();
	int shift;

	mutex_lock(&text_mutex);
	for (shift = -1; shift < JMP_LEN; shift++) {
		lay_out(&call);
		arena_write();
		KUNIT_EXPECT_EQ(test, 0, text_poke_queue(call.addr, call.text, call.len, NULL));
		KUNIT_EXPECT_EQ(test, 0, text_poke_queue(call.addr + shift, nop, 2, NULL));
		check_bytes(test, &call, 0xe8, call.text, "replaced, as another overlaps");
		KUNIT_EXPECT_EQ(test, 0, text_poke_finish());
		arena_put(call.addr, call.text, call.len);
		arena_put(call.addr + shift, nop, 2);
		arena_check(test, "overlapping");
	}

	/* Next to each other they are no trouble: one slot. */
	for (shift = -2; shift <= JMP_LEN; shift += 2 + JMP_LEN) {
		struct text_poke_test_counters start, now;

		lay_out(&call);
		arena_write();
		text_poke_test_counters(&start);
		KUNIT_EXPECT_EQ(test, 0, text_poke_queue(call.addr, call.text, call.len, NULL));
		KUNIT_EXPECT_EQ(test, 0, text_poke_queue(call.addr + shift, nop, 2, NULL));
		KUNIT_EXPECT_EQ(test, 0, text_poke_finish());
		text_poke_test_counters(&now);
		arena_put(call.addr, call.text, call.len);
		arena_put(call.addr + shift, nop, 2);
		arena_check(test, "adjacent");
		KUNIT_EXPECT_EQ(test, now.slots - start.slots, 1);
	}
	mutex_unlock(&text_mutex);
}

/* Few enough for one slot, whatever its size is at the time. */
#define FEW_SITES	48

static void few_sites(struct text_poke_site *sites)
{
	unsigned int i;

	lay_out_many(FEW_SITES);
	for (i = 0; i < FEW_SITES; i++) {
		struct site site = many_site(i);

		/* What is behind an instruction does not matter. */
		memset(&sites[i], 0xa5, sizeof(sites[i]));
		sites[i].addr = site.addr;
		sites[i].len = site.len;
		sites[i].verified = false;
		memcpy(sites[i].old.insn, x86_nops[site.len], site.len);
		memcpy(sites[i].new.insn, site.text, site.len);
	}
}

static void want_few_sites(const struct text_poke_site *sites, unsigned int from, unsigned int to)
{
	for (; from < to; from++)
		arena_put(sites[from].addr, sites[from].new.insn, sites[from].len);
}

/* One byte of one site is not what the caller says: nothing of that slot is written. */
static void test_wrong_old_bytes(struct kunit *test)
{
	struct text_poke_site *sites = kunit_kcalloc(test, FEW_SITES, sizeof(*sites), GFP_KERNEL);
	struct text_poke_test_counters start, now;
	unsigned int byte;

	KUNIT_ASSERT_NOT_NULL(test, sites);
	mutex_lock(&text_mutex);
	few_sites(sites);
	for (byte = 0; byte < JMP_LEN; byte++) {
		text_poke_test_counters(&start);
		sites[20].old.insn[byte] ^= 0x80;
		KUNIT_EXPECT_EQ(test, 0, text_poke_queue_sites(sites, FEW_SITES));
		KUNIT_EXPECT_EQ(test, -EINVAL, text_poke_finish());
		sites[20].old.insn[byte] ^= 0x80;
		text_poke_test_counters(&now);
		arena_check(test, "wrong old bytes");
		KUNIT_EXPECT_EQ(test, now.syncs, start.syncs);
		KUNIT_EXPECT_EQ(test, now.sites, start.sites);
	}

	/* The error is told once, and does no harm to what follows. */
	KUNIT_EXPECT_EQ(test, 0, text_poke_finish());
	KUNIT_EXPECT_EQ(test, 0, text_poke_queue_sites(sites, FEW_SITES));
	KUNIT_EXPECT_EQ(test, 0, text_poke_finish());
	want_few_sites(sites, 0, FEW_SITES);
	arena_check(test, "right old bytes");

	/* Or the caller has looked by itself, and has the last word. */
	sites[20].verified = true;
	KUNIT_EXPECT_EQ(test, 0, text_poke_queue_sites(sites + 20, 1));
	KUNIT_EXPECT_EQ(test, 0, text_poke_finish());
	arena_check(test, "old bytes verified by the caller");
	mutex_unlock(&text_mutex);
}

/* Slots before and after the bad one are written, and the error is not lost. */
static void test_wrong_old_bytes_between(struct kunit *test)
{
	struct text_poke_site *sites = kunit_kcalloc(test, FEW_SITES, sizeof(*sites), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, sites);
	mutex_lock(&text_mutex);
	few_sites(sites);
	KUNIT_EXPECT_EQ(test, 0, text_poke_queue_sites(sites, 16));
	KUNIT_EXPECT_EQ(test, 0, text_poke_test_step());
	sites[20].old.insn[0]++;
	KUNIT_EXPECT_EQ(test, 0, text_poke_queue_sites(sites + 16, 16));
	KUNIT_EXPECT_EQ(test, -EINVAL, text_poke_test_step());
	/* This one's caller is not told of the errors of others. */
	KUNIT_EXPECT_EQ(test, 0, text_poke_bp(sites[0].addr, sites[0].new.insn, JMP_LEN, NULL));
	KUNIT_EXPECT_EQ(test, 0, text_poke_queue_sites(sites + 32, 16));
	KUNIT_EXPECT_EQ(test, -EINVAL, text_poke_finish());
	want_few_sites(sites, 0, 16);
	want_few_sites(sites, 32, 48);
	arena_check(test, "bad slot between good ones");
	KUNIT_EXPECT_EQ(test, 0, text_poke_finish());

	/* Queued twice: what the first one writes is what the second one finds. */
	few_sites(sites);
	sites[1] = sites[0];
	memcpy(sites[1].old.insn, sites[0].new.insn, JMP_LEN);
	memcpy(sites[1].new.insn, x86_nops[JMP_LEN], JMP_LEN);
	KUNIT_EXPECT_EQ(test, 0, text_poke_queue_sites(sites, 2));
	KUNIT_EXPECT_EQ(test, 0, text_poke_finish());
	arena_check(test, "there and back");

	sites[1].old = sites[0].old;
	KUNIT_EXPECT_EQ(test, 0, text_poke_queue_sites(sites, 2));
	KUNIT_EXPECT_EQ(test, -EINVAL, text_poke_finish());
	want_few_sites(sites, 0, 1);
	arena_check(test, "there and not back");
	mutex_unlock(&text_mutex);
}

static bool is_executable(const void *addr)
{
	unsigned int level;
	pte_t *pte = lookup_address((unsigned long)addr, &level);

	return pte && pte_present(*pte) && pte_exec(*pte);
}

/* Refused when it is queued, or when it is verified; in neither case is anything harmed. */
static void check_no_text(struct kunit *test, const char *what, void *addr, int error)
{
	struct site call = call_site();
	u8 mapped = error == -EACCES ? *(u8 *)addr : 0;

	lay_out(&call);
	arena_write();

	/* Not alone: it sorts before or after what is text. */
	KUNIT_EXPECT_EQ(test, 0, text_poke_queue(call.addr, call.text, call.len, NULL));
	if (text_poke_queue(addr, x86_nops[JMP_LEN], JMP_LEN, NULL))
		arena_put(call.addr, call.text, call.len);
	KUNIT_EXPECT_EQ_MSG(test, error, text_poke_finish(), "%s", what);
	arena_check(test, what);
	if (mapped)
		KUNIT_EXPECT_EQ_MSG(test, mapped, *(u8 *)addr, "%s", what);

	KUNIT_EXPECT_EQ_MSG(test, error, text_poke_bp(addr, x86_nops[JMP_LEN], JMP_LEN, NULL),
			    "text_poke_bp(%s)", what);
	if (error == -EFAULT)
		KUNIT_EXPECT_NULL_MSG(test, text_poke(addr, x86_nops[JMP_LEN], JMP_LEN),
				      "text_poke(%s)", what);
}

static void test_no_text(struct kunit *test)
{
	static u8 data[JMP_LEN] = { 1 };
	static const u8 rodata[JMP_LEN] = { 1 };
	u8 *vmalloced = vzalloc(PAGE_SIZE), *module = NULL;

	KUNIT_EXPECT_NOT_NULL(test, vmalloced);
	if (IS_ENABLED(CONFIG_EXECMEM))
		module = execmem_alloc(EXECMEM_MODULE_DATA, PAGE_SIZE);

	mutex_lock(&text_mutex);
	check_no_text(test, "NULL", NULL, -EFAULT);
	check_no_text(test, "user address", (void *)0x401000, -EFAULT);
	check_no_text(test, "last user address", (void *)TASK_SIZE_MAX - JMP_LEN, -EFAULT);
	check_no_text(test, "non-canonical address", (void *)BIT(63), -EFAULT);
	check_no_text(test, "end of all addresses", (void *)-3UL, -EFAULT);
	check_no_text(test, "unmapped module space", (void *)MODULES_END - PAGE_SIZE, -EFAULT);
	if (module) {
		memset(module, 1, PAGE_SIZE);
		check_no_text(test, "module data", module, -EACCES);
		/* vmalloc leaves a guard page behind it; nothing may run up to it either. */
		set_memory_rox((unsigned long)module, 1);
		check_no_text(test, "module text's end", module + PAGE_SIZE - 2, -EFAULT);
		execmem_free(module);
	}

	/* What is too far from the kernel for a jump is so for the engine. */
	KUNIT_EXPECT_EQ(test, -EFAULT, text_poke_queue(vmalloced, x86_nops[5], 5, NULL));
	KUNIT_EXPECT_EQ(test, -EFAULT, text_poke_queue(want, x86_nops[5], 5, NULL));
	KUNIT_EXPECT_EQ(test, -EFAULT, text_poke_finish());

	/* At boot, until mark_rodata_ro(), all of the kernel's image is executable. */
	if (!is_executable(data))
		check_no_text(test, "data", data, -EACCES);
	if (!is_executable(rodata))
		check_no_text(test, "read-only data", (void *)rodata, -EACCES);
	mutex_unlock(&text_mutex);

	vfree(vmalloced);
}

/* What cannot be emulated, or not safely, is refused before it is queued. */
static void test_bad_insns(struct kunit *test)
{
	static const struct {
		unsigned int len;
		u8 text[8];
		const char *what;
	} bad[] = {
		{ 0, { 0x90 },				"nothing at all" },
		{ 7, { BYTES_NOP7 },			"longer than a site can be" },
		{ 1, { 0x55 },				"PUSH" },
		{ 3, { 0x48, 0x89, 0xe5 },		"MOV" },
		{ 2, { 0x0f, 0x0b },			"UD2" },
		{ 2, { 0x0f, 0x05 },			"SYSCALL" },
		{ 2, { 0xf3, 0x90 },			"PAUSE" },
		{ 2, { 0xff, 0xd0 },			"CALL *%rax" },
		{ 2, { 0xff, 0xe0 },			"JMP *%rax" },
		{ 2, { 0xe3, 0x00 },			"JRCXZ" },
		{ 2, { 0xe2, 0x00 },			"LOOP" },
		{ 3, { 0xc2, 0x08, 0x00 },		"RET imm16" },
		{ 1, { 0xcb },				"RET far" },
		{ 1, { 0xcf },				"IRET" },
		{ 2, { 0xcd, 0x03 },			"INT 3 in two bytes" },
		{ 1, { 0xf1 },				"INT1" },
		{ 5, { 0x66, 0x66, 0x66, 0x66, 0x66 },	"prefixes only" },
		{ 4, { 0xe8, 0, 0, 0 },			"CALL, cut off" },
		{ 6, { 0xe8, 0, 0, 0, 0, 0xcc },	"CALL, which may come back, padded" },
		{ 1, { 0xeb },				"JMP rel8, cut off" },
		{ 4, { 0xe9, 0, 0, 0 },			"JMP rel32, cut off" },
		{ 5, { 0xeb, 0, 0x90, 0x90, 0x90 },	"JMP, not padded with INT3" },
		{ 5, { 0xc3, 0x90, 0x90, 0x90, 0x90 },	"RET, not padded with INT3" },
		{ 5, { 0x74, 0, 0xcc, 0xcc, 0xcc },	"Jcc, which may fall through, padded" },
		{ 5, { 0x0f, 0x84, 0, 0, 0 },		"Jcc rel32, cut off" },
		{ 5, { 0x66, 0x90, 0xcc, 0xcc, 0xcc },	"NOP padded with INT3" },
		{ 5, { 0x90, 0x90, 0x90, 0x90, 0x90 },	"many NOPs" },
		{ 4, { BYTES_NOP5 },			"NOP, cut off" },
	};
	struct site call = call_site();
	unsigned int i;

	mutex_lock(&text_mutex);
	lay_out(&call);
	arena_write();
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		const u8 *text = bad[i].text;
		unsigned int len = bad[i].len;

		KUNIT_EXPECT_EQ_MSG(test, -EINVAL, text_poke_queue(call.addr, text, len, NULL),
				    "%s", bad[i].what);
		KUNIT_EXPECT_EQ_MSG(test, -EINVAL, text_poke_finish(), "%s", bad[i].what);
		KUNIT_EXPECT_EQ_MSG(test, -EINVAL, text_poke_bp(call.addr, text, len, NULL),
				    "%s", bad[i].what);
		KUNIT_EXPECT_EQ(test, 0, text_poke_finish());
		/* If it is what shall be emulated, it does not help to write something else. */
		if (len && len <= TEXT_POKE_MAX_INSN_SIZE)
			KUNIT_EXPECT_EQ_MSG(test, -EINVAL,
					    text_poke_bp(call.addr, x86_nops[len], len, text),
					    "emulate %s", bad[i].what);
		arena_check(test, bad[i].what);
	}
	mutex_unlock(&text_mutex);
}

/* What was counted since @start; all of it at once, so that a miscount shows in full. */
static void check_counted(struct kunit *test, struct text_poke_test_counters *start, u64 batches,
			  u64 slots, u64 sites, u64 syncs, u64 traps)
{
	struct text_poke_test_counters now;

	text_poke_test_counters(&now);
	KUNIT_EXPECT_EQ(test, batches, now.batches - start->batches);
	KUNIT_EXPECT_EQ(test, slots, now.slots - start->slots);
	KUNIT_EXPECT_EQ(test, sites, now.sites - start->sites);
	KUNIT_EXPECT_EQ(test, syncs, now.syncs - start->syncs);
	KUNIT_EXPECT_EQ(test, traps, now.traps - start->traps);
	KUNIT_EXPECT_EQ(test, 0, now.stale_traps - start->stale_traps);
	*start = now;
}

static void test_counters(struct kunit *test)
{
	struct text_poke_site *sites = kunit_kcalloc(test, FEW_SITES, sizeof(*sites), GFP_KERNEL);
	static const u8 int3[] = { 0xcc, 0, 0, 0, 0 };
	struct text_poke_test_counters start;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, sites);
	mutex_lock(&text_mutex);
	few_sites(sites);
	text_poke_test_counters(&start);

	text_poke_finish();
	check_counted(test, &start, 0, 0, 0, 0, 0);

	text_poke_bp(sites[0].addr, sites[0].new.insn, JMP_LEN, NULL);
	check_counted(test, &start, 1, 1, 1, 3, 0);

	/*
	 * A slot takes three syncs whatever there is to write of it: without a
	 * tail, or where a breakpoint stays. See slot_retire().
	 */
	text_poke_bp(sites[0].addr, x86_nops[1], 1, NULL);
	check_counted(test, &start, 1, 1, 1, 3, 0);
	text_poke_bp(sites[0].addr, int3, JMP_LEN, NULL);
	check_counted(test, &start, 1, 1, 1, 3, 0);
	text_poke_queue(sites[0].addr, int3, JMP_LEN, NULL);
	text_poke_queue(sites[1].addr, sites[1].new.insn, JMP_LEN, NULL);
	text_poke_finish();
	check_counted(test, &start, 1, 1, 2, 3, 0);

	few_sites(sites);
	text_poke_test_counters(&start);
	text_poke_queue_sites(sites, FEW_SITES);
	check_counted(test, &start, 0, 0, 0, 0, 0);
	text_poke_test_step();
	for (i = 0; i < 7; i++)
		run_at(sites[i].addr, combine_flags(0));
	check_counted(test, &start, 0, 0, 0, 1, 7);
	text_poke_finish();
	check_counted(test, &start, 1, 1, FEW_SITES, 2, 0);
	run_at(sites[0].addr, combine_flags(0));
	check_counted(test, &start, 0, 0, 0, 0, 0);

	text_poke_sync();
	check_counted(test, &start, 0, 0, 0, 1, 0);
	mutex_unlock(&text_mutex);
}

/* Call the handler as the entry code does after a breakpoint at @addr. */
static int call_handler(struct pt_regs *regs, const u8 *addr, unsigned long *sp,
			unsigned long flags)
{
	unsigned long irq_flags;
	int ret;

	*regs = (struct pt_regs){
		.ip = (unsigned long)addr + INT3_INSN_SIZE,
		.sp = (unsigned long)sp,
		.flags = flags,
		.cs = __KERNEL_CS,
		.ax = 0xa,
	};
	local_irq_save(irq_flags);
	ret = poke_int3_handler(regs);
	local_irq_restore(irq_flags);
	return ret;
}

/* Somebody else's breakpoints, while nothing, and while something is planted. */
static void test_foreign_int3(struct kunit *test)
{
	struct site call = call_site();
	struct site foreign = { "foreign INT3", arena, 1, { 0xcc }, TRAPS };
	struct text_poke_test_counters start;
	int trapped = atomic_read(&nr_trapped);
	unsigned long stack[2] = {};
	struct pt_regs regs, was;
	unsigned int i;

	mutex_lock(&text_mutex);
	lay_out(&call);
	arena_write();
	text_poke_test_counters(&start);

	for (i = 0; i < 3; i++) {
		/* Right before the site, right behind it, and far away. */
		u8 *where[] = { call.addr - JMP_LEN - 1, call.addr + JMP_LEN + 2 * JMP_LEN, arena };
		unsigned int j;

		for (j = 0; j < ARRAY_SIZE(where); j++) {
			foreign.addr = where[j];
			check_runs(test, &foreign, TRAPS, "met");
			KUNIT_EXPECT_EQ(test, 0, call_handler(&regs, where[j], stack + 1, 0));
		}
		if (!i)
			KUNIT_EXPECT_EQ(test, 0, text_poke_queue(call.addr, call.text, call.len,
								 NULL));
		text_poke_test_step();
	}
	KUNIT_EXPECT_EQ(test, 0, text_poke_finish());
	KUNIT_EXPECT_EQ(test, atomic_read(&nr_trapped) - trapped, 3 * 3 * 2);
	check_counted(test, &start, 1, 1, 1, 3, 0);

	/* User space may have its breakpoint at any address. */
	KUNIT_EXPECT_EQ(test, 0, text_poke_queue(call.addr, x86_nops[5], 5, NULL));
	KUNIT_EXPECT_EQ(test, 0, text_poke_test_step());
	memset(&regs, 0, sizeof(regs));
	regs.ip = (unsigned long)call.addr + 1;
	regs.cs = __USER_CS;
	was = regs;
	KUNIT_EXPECT_EQ(test, 0, poke_int3_handler(&regs));
	KUNIT_EXPECT_MEMEQ(test, &regs, &was, sizeof(regs));
	KUNIT_EXPECT_EQ(test, 1, call_handler(&regs, call.addr, stack + 1, 0));
	KUNIT_EXPECT_EQ(test, 0, text_poke_finish());
	arena_check(test, "foreign breakpoints");
	mutex_unlock(&text_mutex);
}

#ifdef CONFIG_KPROBES
static int kprobe_hits;

static int kprobe_pre(struct kprobe *p, struct pt_regs *regs)
{
	kprobe_hits++;
	return 0;
}

/* Keeps the kprobe a breakpoint: with this it cannot be optimised. */
static void kprobe_post(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
	kprobe_hits++;
}

/* Not traced: a kprobe at a call site of ftrace is no breakpoint. */
static noinline __noclone notrace int kprobe_target(int val)
{
	/* Not a pure function: each call is made. */
	barrier();
	return val * 3;
}

static void test_kprobe_int3(struct kunit *test)
{
	struct kprobe *kp = kunit_kzalloc(test, sizeof(*kp), GFP_KERNEL);
	struct text_poke_test_counters start;
	struct site call = call_site();

	KUNIT_ASSERT_NOT_NULL(test, kp);
	kp->addr = (void *)kprobe_target;
	kp->pre_handler = kprobe_pre;
	kp->post_handler = kprobe_post;
	KUNIT_ASSERT_EQ(test, 0, register_kprobe(kp));
	KUNIT_EXPECT_EQ(test, INT3_INSN_OPCODE, *(u8 *)kp->addr);
	mutex_lock(&text_mutex);
	lay_out(&call);
	arena_write();
	text_poke_test_counters(&start);
	kprobe_hits = 0;
	KUNIT_EXPECT_EQ(test, 15, kprobe_target(5));
	text_poke_queue(call.addr, call.text, call.len, NULL);
	text_poke_test_step();
	KUNIT_EXPECT_EQ(test, 15, kprobe_target(5));
	text_poke_test_step();
	KUNIT_EXPECT_EQ(test, 15, kprobe_target(5));
	text_poke_finish();
	KUNIT_EXPECT_EQ(test, 3 * 2, kprobe_hits);
	check_counted(test, &start, 1, 1, 1, 3, 0);
	mutex_unlock(&text_mutex);
	unregister_kprobe(kp);
	KUNIT_EXPECT_EQ(test, 15, kprobe_target(5));
	KUNIT_EXPECT_EQ(test, 3 * 2, kprobe_hits);
}
#else
static void test_kprobe_int3(struct kunit *test)
{
	kunit_skip(test, "no CONFIG_KPROBES");
}
#endif

/*
 * The CPU says there was a breakpoint, and memory says there is none: do what
 * memory says. On an emulator it has happened; here it is said by the test.
 */
static void check_stale(struct kunit *test, const struct site *site)
{
	unsigned int i, step = site->does == BRANCHES ? 1 : ARITH_COMBINATIONS - 1;
	struct text_poke_test_counters start, now;
	static const u8 *const landings[] = {
		[NEXT] = NULL,
		[TAKEN] = text_poke_test_taken,
		[BACK] = text_poke_test_back,
	};

	lay_out(site);
	arena_put(site->addr, site->text, site->len);
	arena_write();

	for (i = 0; i < ARITH_COMBINATIONS; i += step) {
		unsigned long stack[4] = { 0, 0, (unsigned long)text_poke_test_back, 0 };
		unsigned long top = stack[2], flags = combine_flags(i);
		const u8 *to = site->addr + site->len;
		unsigned int where;
		struct pt_regs regs;
		long sp_change = 0;

		text_poke_test_counters(&start);
		KUNIT_EXPECT_EQ_MSG(test, 1, call_handler(&regs, site->addr, stack + 2, flags),
				    "stale %s", site->name);
		text_poke_test_counters(&now);

		where = expected_landing(site, site->does, flags, &sp_change, &top);
		if (where == TAKEN && site->len < JMP_LEN)
			to += (s8)site->text[1];
		else if (where != NEXT)
			to = landings[where];

		KUNIT_EXPECT_PTR_EQ_MSG(test, (u8 *)regs.ip, to, "stale %s: where it leads",
					site->name);
		KUNIT_EXPECT_EQ_MSG(test, regs.sp, (unsigned long)(stack + 2) + sp_change,
				    "stale %s: stack pointer", site->name);
		KUNIT_EXPECT_EQ_MSG(test, stack[where == TAKEN && sp_change ? 1 : 2], top,
				    "stale %s: top of stack", site->name);
		KUNIT_EXPECT_EQ_MSG(test, regs.flags, flags, "stale %s: flags", site->name);
		KUNIT_EXPECT_EQ_MSG(test, regs.ax, 0xa, "stale %s: rax", site->name);
		KUNIT_EXPECT_EQ(test, now.stale_traps - start.stale_traps, 1);
		KUNIT_EXPECT_EQ(test, now.traps, start.traps);
	}
	memset(want, INT3_INSN_OPCODE, ARENA_SIZE);
}

static void check_not_stale(struct kunit *test, const char *what, const u8 *addr)
{
	struct text_poke_test_counters start, now;
	unsigned long stack[4] = {}, nothing[4] = {};
	struct pt_regs regs;

	text_poke_test_counters(&start);
	KUNIT_EXPECT_EQ_MSG(test, 0, call_handler(&regs, addr, stack + 2, 0), "%s", what);
	text_poke_test_counters(&now);
	KUNIT_EXPECT_EQ(test, now.stale_traps, start.stale_traps);
	KUNIT_EXPECT_PTR_EQ_MSG(test, (u8 *)regs.ip, addr + 1, "%s", what);
	KUNIT_EXPECT_MEMEQ(test, stack, nothing, sizeof(stack));
}

static void test_stale_trap(struct kunit *test)
{
	static const u8 int_3[] = { 0xcd, 0x03 }, push[] = { 0x55 }, ud2[] = { 0x0f, 0x0b };
	static const u8 ret_imm[] = { 0xc2, 0x08, 0x00 }, pause[] = { 0xf3, 0x90 };
	struct site call = call_site(), jmp = jmp_site();
	struct site ret = { "RET", anywhere(), 1, { 0xc3 }, RETURNS };
	struct site jmp8 = { "JMP rel8", anywhere(), 2, { 0xeb, DISP8_BACK(2) }, JUMPS };
	unsigned int i;

	mutex_lock(&text_mutex);
	check_stale(test, &call);
	check_stale(test, &jmp);
	check_stale(test, &jmp8);
	check_stale(test, &ret);
	for (i = 0; i < 16; i++) {
		struct site jcc32 = jcc32_site(anywhere(), i);
		struct site jcc8 = {
			"Jcc rel8", anywhere(), 2, { 0x70 | i, DISP8_FORWARD }, BRANCHES, .cc = i,
		};

		check_stale(test, &jcc32);
		check_stale(test, &jcc8);
	}
	/* All of them, also those that are too long to be queued. */
	for (i = 1; i <= ASM_NOP_MAX; i++) {
		unsigned long stack[2] = {};
		struct pt_regs regs;

		arena_put(anywhere(), x86_nops[i], i);
		arena_write();
		KUNIT_EXPECT_EQ(test, 1, call_handler(&regs, anywhere(), stack + 1, 0));
		KUNIT_EXPECT_PTR_EQ_MSG(test, (u8 *)regs.ip, anywhere() + i, "stale NOP%u", i);
	}

	arena_put(arena, int_3, sizeof(int_3));
	arena_put(arena + 16, push, sizeof(push));
	arena_put(arena + 32, ud2, sizeof(ud2));
	arena_put(arena + 48, ret_imm, sizeof(ret_imm));
	arena_put(arena + 64, pause, sizeof(pause));
	arena_write();
	/* It traps when both of its bytes are executed, so the address is that of the second. */
	check_not_stale(test, "INT 3 in two bytes", arena + 1);
	check_not_stale(test, "PUSH", arena + 16);
	check_not_stale(test, "UD2", arena + 32);
	check_not_stale(test, "RET imm16", arena + 48);
	check_not_stale(test, "PAUSE", arena + 64);
	check_not_stale(test, "a breakpoint that is there", arena + 80);
	mutex_unlock(&text_mutex);
}

/* Boot-time writing and live writing leave the same text, which does the same. */
static void __ref test_early(struct kunit *test)
{
	u8 *early = arena + PAGE_SIZE, *live = arena + 8 * PAGE_SIZE;
	struct site site = call_site();
	struct rnd_state rnd;
	unsigned int i;

	/* KUnit runs at boot, but may be told to run again. */
	if (system_state >= SYSTEM_FREEING_INITMEM)
		kunit_skip(test, "text is read-only, as boot is over");

	mutex_lock(&text_mutex);
	prandom_seed_state(&rnd, 612);
	for (i = 0; i < 200; i++) {
		unsigned int off = prandom_u32_state(&rnd) % (2 * PAGE_SIZE - 16);
		unsigned int len = 1 + prandom_u32_state(&rnd) % 16;
		u8 bytes[16];

		prandom_bytes_state(&rnd, bytes, sizeof(bytes));
		text_poke_early(early + off, bytes, len);
		KUNIT_EXPECT_PTR_EQ(test, text_poke(live + off, bytes, len), (void *)live + off);
		arena_put(early + off, bytes, len);
		arena_put(live + off, bytes, len);
	}
	arena_check(test, "early and live");
	KUNIT_EXPECT_MEMEQ(test, early, live, 2 * PAGE_SIZE);

	for (i = 0; i < 2; i++) {
		site.addr = i ? live : early;
		put_disp32(site.text, 0xe8, site.addr, text_poke_test_taken);
		if (i)
			text_poke(site.addr, site.text, site.len);
		else
			text_poke_early(site.addr, site.text, site.len);
		text_poke_sync();
		check_runs(test, &site, CALLS, i ? "written live" : "written early");
	}
	mutex_unlock(&text_mutex);
}

#ifdef CONFIG_EXECMEM
/* Where modules, trampolines and JITs live: filled, copied to, and then patched. */
static void test_module_space(struct kunit *test)
{
	const size_t size = 4 * PAGE_SIZE, from = 100, len = 3 * PAGE_SIZE;
	u8 *code = execmem_alloc(EXECMEM_KPROBES, size);
	u8 *copy = kunit_kzalloc(test, size, GFP_KERNEL);
	struct site site = call_site();

	KUNIT_EXPECT_NOT_NULL(test, code);
	KUNIT_EXPECT_NOT_NULL(test, copy);
	if (!code || !copy)
		goto out;

	memset(code, 0, size);
	set_memory_rox((unsigned long)code, size / PAGE_SIZE);

	KUNIT_EXPECT_PTR_EQ(test, text_poke_set(code + 1, INT3_INSN_OPCODE, size - 2),
			    (void *)code + 1);
	memset(copy + 1, INT3_INSN_OPCODE, size - 2);
	KUNIT_EXPECT_MEMEQ(test, code, copy, size);

	/* A page end is crossed by the site, and its way out comes right behind it. */
	site.name = "CALL in module space";
	site.addr = code + PAGE_SIZE - 3;
	put_disp32(site.text, 0xe8, site.addr, text_poke_test_taken);
	memcpy(copy + PAGE_SIZE - 3, x86_nops[JMP_LEN], JMP_LEN);
	KUNIT_EXPECT_PTR_EQ(test, text_poke_copy(code + from, copy + from, len),
			    (void *)code + from);
	KUNIT_EXPECT_MEMEQ(test, code, copy, size);

	mutex_lock(&text_mutex);
	text_poke_sync();
	check_replacing(test, &site);
	memcpy(copy + PAGE_SIZE - 3, site.text, site.len);
	KUNIT_EXPECT_MEMEQ(test, code, copy, size);
	mutex_unlock(&text_mutex);
out:
	execmem_free(code);
}
#else
static void test_module_space(struct kunit *test)
{
	kunit_skip(test, "no CONFIG_EXECMEM");
}
#endif

/* A function that begins right before a page end, with a site that crosses it. */
#define RACE_VALUES	3

struct race {
	unsigned long	(*func)(void);
	unsigned long	calls;
	unsigned long	returned[RACE_VALUES];
	unsigned long	astray;
};

static int __nocfi race_thread(void *data)
{
	struct race *race = data;

	while (!kthread_should_stop()) {
		unsigned long val = race->func();

		if (val < RACE_VALUES)
			race->returned[val]++;
		else
			race->astray++;
		WRITE_ONCE(race->calls, race->calls + 1);

		/* An emulator may have to share one CPU among all of them. */
		if (!(race->calls % 256))
			usleep_range(20, 50);
	}

	return 0;
}

/* Two calls, as one may have begun before. */
static bool wait_for_race(struct race *race)
{
	unsigned long calls = READ_ONCE(race->calls), end = jiffies + 10 * HZ;

	while (READ_ONCE(race->calls) - calls < 2) {
		if (time_after(jiffies, end))
			return false;
		usleep_range(10, 50);
	}

	return true;
}

/*
 * Another CPU executes the site all the time, and only ever sees one of the
 * instructions that were written, while planted or not.
 */
static void test_other_cpu(struct kunit *test)
{
	static const u8 endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	u8 *func = arena + 3 * PAGE_SIZE - sizeof(endbr) - 2;
	u8 *site = func + sizeof(endbr), text[RACE_VALUES][JMP_LEN];
	struct race race = { .func = (void *)func };
	int trapped = atomic_read(&nr_trapped);
	struct text_poke_test_counters start, now;
	unsigned int i, round, waited = 0;
	struct task_struct *thread;

	if (num_online_cpus() < 2)
		kunit_skip(test, "only one CPU is online");

	thread = kthread_create(race_thread, &race, "text_poke_race");
	KUNIT_ASSERT_FALSE(test, IS_ERR(thread));
	kthread_bind(thread, cpumask_any_but(cpu_online_mask, raw_smp_processor_id()));

	mutex_lock(&text_mutex);
	arena_put(func, endbr, sizeof(endbr));
	for (i = 0; i < RACE_VALUES; i++) {
		/* MOV $i, %eax; RET. The NOP leads to the first of them. */
		const u8 tail[] = { 0xb8, i, 0, 0, 0, 0xc3 };
		u8 *to = site + JMP_LEN + i * sizeof(tail);

		arena_put(to, tail, sizeof(tail));
		put_disp32(text[i], 0xe9, site, to);
	}
	memcpy(text[0], x86_nops[JMP_LEN], JMP_LEN);
	arena_put(site, text[0], JMP_LEN);
	arena_write();
	text_poke_test_counters(&start);

	racer = thread;
	wake_up_process(thread);
	for (round = 0; round < 30; round++) {
		KUNIT_EXPECT_EQ(test, 0, text_poke_queue(site, text[(round + 1) % RACE_VALUES],
							 JMP_LEN, NULL));
		for (i = 0; i < 3; i++) {
			text_poke_test_step();
			waited += wait_for_race(&race);
		}
		KUNIT_EXPECT_EQ(test, 0, text_poke_finish());
	}
	mutex_unlock(&text_mutex);
	kthread_stop(thread);
	racer = NULL;

	text_poke_test_counters(&now);
	KUNIT_EXPECT_EQ(test, waited, 3 * round);
	KUNIT_EXPECT_EQ(test, race.astray, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&nr_trapped), trapped);
	for (i = 0; i < RACE_VALUES; i++)
		KUNIT_EXPECT_GT(test, race.returned[i], 0);
	/* At least one whole call in each of the stages in which it is planted. */
	KUNIT_EXPECT_GE(test, now.traps - start.traps, 2 * round);
}

#ifdef CONFIG_JUMP_LABEL
static DEFINE_STATIC_KEY_ARRAY_FALSE(keys_off, 3);
static DEFINE_STATIC_KEY_ARRAY_TRUE(keys_on, 3);

static struct static_key *const keys[] = {
	&keys_off[0].key, &keys_off[1].key, &keys_off[2].key,
	&keys_on[0].key, &keys_on[1].key, &keys_on[2].key,
};

#define NR_KEYS		ARRAY_SIZE(keys)
#define ALL_KEYS	GENMASK(NR_KEYS - 1, 0)
#define KEYS_AT_BOOT	GENMASK(5, 3)

/* 3 if both branches go where they should when the key is enabled, 0 if neither. */
static __always_inline u8 off_key_seen(struct static_key_false *key)
{
	return (static_branch_unlikely(key) ? 1 : 0) | (static_branch_likely(key) ? 2 : 0);
}

static __always_inline u8 on_key_seen(struct static_key_true *key)
{
	return (static_branch_unlikely(key) ? 1 : 0) | (static_branch_likely(key) ? 2 : 0);
}

static noinline void see_keys(u8 *seen)
{
	seen[0] = off_key_seen(&keys_off[0]);
	seen[1] = off_key_seen(&keys_off[1]);
	seen[2] = off_key_seen(&keys_off[2]);
	seen[3] = on_key_seen(&keys_on[0]);
	seen[4] = on_key_seen(&keys_on[1]);
	seen[5] = on_key_seen(&keys_on[2]);
}

static void check_keys(struct kunit *test, unsigned int enabled, const char *what)
{
	u8 seen[NR_KEYS];
	unsigned int i;

	see_keys(seen);
	for (i = 0; i < NR_KEYS; i++) {
		bool on = enabled & BIT(i);

		KUNIT_EXPECT_EQ_MSG(test, seen[i], on ? 3 : 0,
				    "%s: what branches see of key %u", what, i);
		KUNIT_EXPECT_EQ_MSG(test, atomic_read(&keys[i]->enabled), on,
				    "%s: count of key %u", what, i);
	}
}

/* Each by itself. Return: how many sites that were. */
static unsigned int flip_singly(struct kunit *test, unsigned int enabled)
{
	struct text_poke_test_counters start, now;
	unsigned int i, sites = 0;

	for (i = 0; i < NR_KEYS; i++) {
		text_poke_test_counters(&start);
		if (enabled & BIT(i))
			static_key_enable(keys[i]);
		else
			static_key_disable(keys[i]);
		text_poke_test_counters(&now);

		/* A breakpoint, the tails, the first bytes; two branches at least. */
		KUNIT_EXPECT_EQ(test, now.syncs - start.syncs, 3);
		KUNIT_EXPECT_GE(test, now.sites - start.sites, 2);
		sites += now.sites - start.sites;
	}

	check_keys(test, enabled, "singly");
	return sites;
}

static void batch_set(unsigned int i, bool enable)
{
	if (enable)
		static_key_batch_enable(keys[i]);
	else
		static_key_batch_disable(keys[i]);
}

/* All change, so there are as many sites as singly, for the syncs of one key. */
static void flip_together(struct kunit *test, unsigned int enabled, unsigned int sites)
{
	struct text_poke_test_counters start;
	unsigned int i;

	text_poke_test_counters(&start);
	static_key_batch_begin();
	for (i = 0; i < NR_KEYS; i++)
		batch_set(i, enabled & BIT(i));
	static_key_batch_end();
	check_counted(test, &start, 1, 1, sites, 3, 0);
	check_keys(test, enabled, "together");
}

/* A batch without keys, and one in which all are already what they shall be. */
static void flip_nothing(struct kunit *test, unsigned int enabled)
{
	struct text_poke_test_counters start;
	unsigned int i;

	text_poke_test_counters(&start);
	static_key_batch_begin();
	static_key_batch_end();
	static_key_batch_begin();
	for (i = 0; i < NR_KEYS; i++)
		batch_set(i, enabled & BIT(i));
	static_key_batch_end();
	check_counted(test, &start, 0, 0, 0, 0, 0);
	check_keys(test, enabled, "nothing to change");
}

/*
 * What is set last is right in the end, whatever was queued for the key before.
 * Begins with KEYS_AT_BOOT, of which keys 1, 2 and 4 change.
 */
static void flip_twice(struct kunit *test)
{
	struct text_poke_test_counters start, now;

	text_poke_test_counters(&start);
	static_key_batch_begin();
	batch_set(2, true);
	batch_set(0, true);
	batch_set(0, true);
	batch_set(0, false);		/* writes 2 and 0 */
	batch_set(1, true);
	batch_set(3, false);
	batch_set(3, true);		/* writes 0, 1 and 3 */
	batch_set(4, false);
	batch_set(5, false);
	batch_set(5, true);		/* writes 3, 4 and 5 */
	static_key_batch_end();		/* writes 5 */
	text_poke_test_counters(&now);

	KUNIT_EXPECT_EQ(test, now.batches - start.batches, 4);
	KUNIT_EXPECT_EQ(test, now.syncs - start.syncs, 4 * 3);
	check_keys(test, BIT(1) | BIT(2) | BIT(3) | BIT(5), "some twice");
}

/* Nobody may count on a key that the batch is still to enable. */
static void flip_and_count(struct kunit *test)
{
	unsigned int i;

	static_key_batch_begin();
	for (i = 0; i < NR_KEYS; i++)
		static_key_batch_enable(keys[i]);
	for (i = 0; i < NR_KEYS; i++) {
		KUNIT_EXPECT_TRUE(test, static_key_enabled(keys[i]));
		KUNIT_EXPECT_FALSE(test, static_key_fast_inc_not_disabled(keys[i]));
	}
	static_key_batch_end();
	check_keys(test, ALL_KEYS, "to be counted");

	for (i = 0; i < NR_KEYS; i++) {
		KUNIT_EXPECT_TRUE(test, static_key_slow_inc(keys[i]));
		KUNIT_EXPECT_EQ(test, atomic_read(&keys[i]->enabled), 2);
		static_key_slow_dec(keys[i]);
	}
	check_keys(test, ALL_KEYS, "counted");
}

/* Sites of a key that is flipped by itself take 3 syncs, those of a batch share them. */
static void test_static_keys(struct kunit *test)
{
	unsigned int i, sites;

	check_keys(test, KEYS_AT_BOOT, "at boot");
	sites = flip_singly(test, ALL_KEYS & ~KEYS_AT_BOOT);
	flip_together(test, KEYS_AT_BOOT, sites);
	flip_nothing(test, KEYS_AT_BOOT);
	flip_twice(test);

	for (i = 0; i < NR_KEYS; i++)
		static_key_disable(keys[i]);
	flip_together(test, ALL_KEYS, sites);
	flip_nothing(test, ALL_KEYS);
	flip_together(test, 0, sites);
	flip_and_count(test);

	for (i = 0; i < NR_KEYS; i++) {
		if (!(KEYS_AT_BOOT & BIT(i)))
			static_key_disable(keys[i]);
	}
	check_keys(test, KEYS_AT_BOOT, "put back");
}
#else
static void test_static_keys(struct kunit *test)
{
	kunit_skip(test, "no CONFIG_JUMP_LABEL");
}
#endif

/*
 * Last in line for breakpoints. One in the arena was left to others, or missed
 * by the engine: in either case the test goes on, and finds out.
 */
static int arena_int3(struct notifier_block *nb, unsigned long event, void *data)
{
	struct pt_regs *regs = ((struct die_args *)data)->regs;

	if (event != DIE_INT3 || user_mode(regs))
		return NOTIFY_DONE;
	if (regs->ip <= (unsigned long)arena || regs->ip > (unsigned long)arena + ARENA_SIZE)
		return NOTIFY_DONE;

	atomic_inc(&nr_trapped);
	if (current == racer) {
		/* It has no landings, but called a function. */
		regs->ip = *(unsigned long *)regs->sp;
		regs->sp += sizeof(long);
		regs->ax = RACE_VALUES;
	} else {
		regs->ip = (unsigned long)text_poke_test_trapped;
	}
	return NOTIFY_STOP;
}

NOKPROBE_SYMBOL(arena_int3);

static struct notifier_block arena_int3_nb = { .notifier_call = arena_int3 };

static int text_poke_suite_init(struct kunit_suite *suite)
{
	arena = text_poke_test_arena;
	want = kvmalloc(ARENA_SIZE, GFP_KERNEL);
	if (!want)
		return -ENOMEM;
	return register_die_notifier(&arena_int3_nb);
}

static void text_poke_suite_exit(struct kunit_suite *suite)
{
	unregister_die_notifier(&arena_int3_nb);
	kvfree(want);
}

static int text_poke_test_init(struct kunit *test)
{
	mutex_lock(&text_mutex);
	memset(want, INT3_INSN_OPCODE, ARENA_SIZE);
	arena_write();
	mutex_unlock(&text_mutex);
	return 0;
}

/* Leave the arena as it was built. */
static void text_poke_test_exit(struct kunit *test)
{
	text_poke_test_init(test);
	arena_check(test, "at the end");
}

static struct kunit_case text_poke_test_cases[] = {
	KUNIT_CASE(test_call),
	KUNIT_CASE(test_jmp32),
	KUNIT_CASE(test_jmp8),
	KUNIT_CASE(test_jcc8),
	KUNIT_CASE(test_jcc32),
	KUNIT_CASE(test_ret),
	KUNIT_CASE(test_nop),
	KUNIT_CASE(test_int3),
	KUNIT_CASE(test_emulate_differs),
	KUNIT_CASE(test_page_end),
	KUNIT_CASE(test_page_ends),
	KUNIT_CASE(test_more_than_three_slots),
	KUNIT_CASE(test_reverse_order),
	KUNIT_CASE(test_random_order),
	KUNIT_CASE(test_between_planted),
	KUNIT_CASE(test_same_site_twice),
	KUNIT_CASE(test_overlapping_sites),
	KUNIT_CASE(test_wrong_old_bytes),
	KUNIT_CASE(test_wrong_old_bytes_between),
	KUNIT_CASE(test_no_text),
	KUNIT_CASE(test_bad_insns),
	KUNIT_CASE(test_counters),
	KUNIT_CASE(test_foreign_int3),
	KUNIT_CASE(test_kprobe_int3),
	KUNIT_CASE(test_stale_trap),
	KUNIT_CASE(test_early),
	KUNIT_CASE(test_module_space),
	KUNIT_CASE(test_other_cpu),
	KUNIT_CASE(test_static_keys),
	{}
};

static struct kunit_suite text_poke_suite = {
	.name = "text_poke",
	.suite_init = text_poke_suite_init,
	.suite_exit = text_poke_suite_exit,
	.init = text_poke_test_init,
	.exit = text_poke_test_exit,
	.test_cases = text_poke_test_cases,
};

kunit_test_suite(text_poke_suite);
