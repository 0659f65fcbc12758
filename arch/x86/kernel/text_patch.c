// SPDX-License-Identifier: GPL-2.0
/*
 * Changing kernel text while it runs: single writes through a private mapping,
 * and batches of instructions replaced under breakpoints.
 *
 * The breakpoint protocol for one instruction is: plant INT3 on its first
 * byte, make every CPU serialise, write the tail, make every CPU serialise,
 * write the first byte, make every CPU serialise. A CPU that runs into the
 * INT3 has the new instruction emulated by poke_int3_handler().
 *
 * Many instructions go through a pipeline of three slots. One step plants the
 * INT3s of slot k, writes the tails of slot k-1 and the first bytes of slot
 * k-2, then makes every CPU serialise once: K slots cost K + 2 rounds of IPIs.
 * The slots are static, so nothing is ever allocated under text_mutex.
 *
 * Documentation/trace/text-poke.rst has the argument why this is safe. Where it
 * comes from: Intel SDM Vol. 3A, 9.1.3 "Handling Self- and Cross-Modifying
 * Code"; commit fd4363fff3d9 ("x86: Introduce int3 (breakpoint)-based
 * instruction patching") and the discussion it quotes.
 *
 * Every function called once per site while breakpoints are planted is itself
 * traced, so it may be planted and trap: the loops over sites call nothing.
 */
#define pr_fmt(fmt) "text_poke: " fmt

#include <linux/cpufeature.h>
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/init.h>
#include <linux/memory.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/mmu_context.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sched/mm.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/sync_core.h>
#include <linux/sysctl.h>
#include <linux/unaligned.h>

#include <asm/debugreg.h>
#include <asm/kaslr.h>
#include <asm/nops.h>
#include <asm/paravirt.h>
#include <asm/sections.h>
#include <asm/text-patching.h>
#include <asm/tlbflush.h>

#define CREATE_TRACE_POINTS
#include <asm/trace/text_poke.h>

/*
 * Counters, for debugfs and the trace event. All but the traps are written
 * under text_mutex; the handler counts traps without sharing a cache line.
 */
static struct text_poke_stats {
	u64 batches;
	u64 slots;
	u64 sites;
	u64 pages;
	u64 windows;
	u64 syncs;
	u64 irqoff_max_ns;
	u64 planted_max_ns;
	u64 planted_ns;		/* of all sites, summed up */
} stats;

struct text_poke_traps {
	unsigned long emulated;
	unsigned long stale;
};

static DEFINE_PER_CPU(struct text_poke_traps, text_poke_traps);

static __always_inline void count_traps(struct text_poke_traps *sum)
{
	int cpu;

	*sum = (struct text_poke_traps){};
	for_each_possible_cpu(cpu) {
		const struct text_poke_traps *traps = &per_cpu(text_poke_traps, cpu);

		sum->emulated += READ_ONCE(traps->emulated);
		sum->stale += READ_ONCE(traps->stale);
	}
}

/* local_clock(), but without a call: tracing that would take longer than what is timed. */
static __always_inline u64 clock_ns(void)
{
	u64 ns;

	preempt_disable_notrace();
	ns = local_clock_noinstr();
	preempt_enable_notrace();
	return ns;
}

/*
 * The window: a few pages of text, mapped writable in an mm that no task ever
 * runs in, at a random address, and loaded on one CPU with its IRQs off. So no
 * other CPU can reach text that is writable, and no TLB but this CPU's must be
 * flushed.
 *
 * Its size bounds the time IRQs stay off; both bounds were chosen by measuring,
 * see Documentation/trace/text-poke.rst.
 */
#define WINDOW_PAGES	33U
#define WINDOW_SITES	320U

__ro_after_init struct mm_struct *poking_mm;
__ro_after_init unsigned long poking_addr;
static __ro_after_init pte_t *poking_ptes;
static __ro_after_init pte_t poking_pte;	/* but for the page frame */

struct text_poke_window {
	unsigned int	 pages;
	struct mm_struct *prev_mm;
	unsigned long	 irq_flags;
	u64		 opened;
};

/**
 * poking_init - prepare the mm through which text is written
 *
 * The page table of the window is allocated here, since it cannot be later,
 * under text_mutex.
 *
 * Context: boot, one CPU, before anything is patched through the mm.
 */
void __init poking_init(void)
{
	unsigned long index;
	p4d_t *p4d;
	pud_t *pud;
	pmd_t *pmd;

	poking_mm = mm_alloc();
	if (!poking_mm)
		panic("no memory for the mm that text is poked through\n");

	/* Xen PV guests need the PGD to be pinned. */
	paravirt_enter_mmap(poking_mm);

	poking_addr = TASK_UNMAPPED_BASE;
	if (IS_ENABLED(CONFIG_RANDOMIZE_BASE))
		poking_addr += (kaslr_get_random_long("Poking") & PAGE_MASK) %
			(TASK_SIZE - TASK_UNMAPPED_BASE - PMD_SIZE);

	/* Keep the window within one page table, and random but for that. */
	index = pte_index(poking_addr);
	if (index > PTRS_PER_PTE - WINDOW_PAGES)
		poking_addr -= (index - (PTRS_PER_PTE - WINDOW_PAGES)) * PAGE_SIZE;

	p4d = p4d_alloc(poking_mm, pgd_offset(poking_mm, poking_addr), poking_addr);
	pud = p4d ? pud_alloc(poking_mm, p4d, poking_addr) : NULL;
	pmd = pud ? pmd_alloc(poking_mm, pud, poking_addr) : NULL;
	if (!pmd || pte_alloc(poking_mm, pmd))
		panic("no memory for the page table that text is poked through\n");

	poking_ptes = pte_offset_kernel(pmd, poking_addr);
	/* Not global, as it is flushed with the mm. */
	poking_pte = pfn_pte(0, __pgprot(pgprot_val(PAGE_KERNEL) & ~_PAGE_GLOBAL));
}

/* text_pfn() for code in modules, trampolines and the BPF JIT, mapped by small or large pages. */
static int mapped_pfn(unsigned long addr, bool executable, unsigned long *pfn)
{
	unsigned int level;
	pte_t *pte;

	if (addr < TASK_SIZE_MAX || !__is_canonical_address(addr, boot_cpu_data.x86_virt_bits))
		return -EFAULT;

	pte = lookup_address(addr, &level);
	if (!pte || !pte_present(*pte))
		return -EFAULT;
	if (executable && !pte_exec(*pte))
		return -EACCES;

	switch (level) {
	case PG_LEVEL_4K:
		*pfn = pte_pfn(*pte);
		return 0;
	case PG_LEVEL_2M:
		*pfn = pmd_pfn(*(pmd_t *)pte) + PHYS_PFN(addr & ~PMD_MASK);
		return 0;
	default:
		/* Neither text nor anything that is loaded as text. */
		return -EFAULT;
	}
}

/*
 * Find the page frame behind a text address. Inlined, as it is needed for each
 * of the kernel's own text pages while breakpoints are planted.
 *
 * Return: 0, -EFAULT if nothing is mapped there, -EACCES if what is mapped must
 * be executable and is not.
 */
static __always_inline int text_pfn(unsigned long addr, bool executable, unsigned long *pfn)
{
	if (!__is_kernel_text(addr))
		return mapped_pfn(addr, executable, pfn);

	*pfn = PHYS_PFN(__pa_symbol(addr));
	return 0;
}

/*
 * Show some more pages of text in the window. The mm is loaded nowhere, so it
 * does not matter how long this takes, nor whether it is interrupted.
 *
 * Return: where they are shown, or NULL if not all of them are mapped.
 */
static __always_inline void *window_map(struct text_poke_window *window, unsigned long addr,
					unsigned int pages)
{
	unsigned int first = window->pages, i;
	unsigned long pfn;

	for (i = 0; i < pages; i++) {
		if (text_pfn(addr + i * PAGE_SIZE, false, &pfn))
			break;

		set_pte(poking_ptes + first + i, __pte(pte_val(poking_pte) | PFN_PHYS(pfn)));
	}

	window->pages += i;
	stats.pages += i;
	return i == pages ? (void *)(poking_addr + first * PAGE_SIZE) : NULL;
}

/* Load the poking mm. IRQs stay off until window_close(). */
static __always_inline void window_open(struct text_poke_window *window)
{
	local_irq_save(window->irq_flags);
	window->opened = clock_ns();

	/*
	 * A lazy CPU would come back from the poking mm with what it had
	 * loaded before, but without knowing any more that it is lazy.
	 */
	if (this_cpu_read(cpu_tlbstate_shared.is_lazy))
		leave_mm();

	window->prev_mm = this_cpu_read(cpu_tlbstate.loaded_mm);
	switch_mm_irqs_off_notrace(poking_mm, current);

	/* A task's watchpoints may match addresses of the window. */
	if (hw_breakpoint_active())
		hw_breakpoint_disable();
}

/*
 * The mm is loaded nowhere. What a CPU has cached of it is flushed when it is
 * loaded there again, for it has a new generation.
 */
static __always_inline void window_unmap(struct text_poke_window *window)
{
	unsigned int i;

	for (i = 0; i < window->pages; i++)
		pte_clear(poking_mm, poking_addr + i * PAGE_SIZE, poking_ptes + i);

	inc_mm_tlb_gen(poking_mm);
}

/*
 * Leave the poking mm and unmap the window. Loading CR3 serialises this CPU,
 * so it sees what it has written.
 */
static __always_inline void window_close(struct text_poke_window *window)
{
	u64 ns;

	/* The writes stay before this. */
	barrier();
	switch_mm_irqs_off_notrace(window->prev_mm, current);

	if (hw_breakpoint_active())
		hw_breakpoint_restore();

	ns = clock_ns() - window->opened;
	local_irq_restore(window->irq_flags);

	window_unmap(window);
	stats.windows++;
	stats.irqoff_max_ns = max(stats.irqoff_max_ns, ns);
}

/*
 * There is no KASAN shadow for the window's address, so what writes to it must
 * not be instrumented: assembly, and the bare __memcpy().
 */
static __always_inline void put_byte(u8 *dst, u8 byte)
{
	asm volatile("movb %1, %0" : "=m" (*dst) : "q" (byte));
}

static __always_inline void put_long(u8 *dst, u32 val)
{
	asm volatile("movl %1, %0" : "=m" (*(u32 *)dst) : "r" (val));
}

typedef void window_write_t(void *dst, const void *src, size_t len);

static void window_memcpy(void *dst, const void *src, size_t len)
{
	__memcpy(dst, src, len);
}

static void window_memset(void *dst, const void *src, size_t len)
{
	__memset(dst, *(const int *)src, len);
}

/* Write up to two pages of text. */
static int poke_range(window_write_t *write, void *addr, const void *src, size_t len)
{
	unsigned long start = (unsigned long)addr;
	struct text_poke_window window = {};
	void *page;

	/* Struct pages and the mm come up together, see poking_init(). */
	if (WARN_ONCE(!poking_mm, "%pS: too early in boot to be patched\n", addr))
		return -EBUSY;

	page = window_map(&window, start & PAGE_MASK,
			  PFN_DOWN(start + len - 1) - PFN_DOWN(start) + 1);
	if (!page) {
		pr_err("%pS: no text is mapped at this address\n", addr);
		window_unmap(&window);
		return -EFAULT;
	}

	window_open(&window);
	write(page + offset_in_page(start), src, len);
	window_close(&window);
	return 0;
}

/*
 * Write what may be longer than a window can be. Not safe against CPUs that
 * execute there, but for one byte, or an aligned word within one instruction.
 */
static void *poke_any(window_write_t *write, void *addr, const void *src, size_t len)
{
	size_t done = 0;

	while (done < len) {
		size_t part = min(len - done, 2 * PAGE_SIZE - offset_in_page(addr + done));
		const void *from = write == window_memcpy ? src + done : src;

		if (poke_range(write, addr + done, from, part))
			return NULL;
		done += part;
	}

	if (write == window_memcpy && WARN_ONCE(memcmp(addr, src, len),
						"%pS: text is not what was written\n", addr))
		return NULL;

	return addr;
}

/**
 * text_poke - write to kernel text
 * @addr:	where to
 * @opcode:	what to write
 * @len:	number of bytes
 *
 * The text may be executed meanwhile only if the write is atomic for whoever
 * fetches it: one byte, or an aligned word within one instruction. CPUs may
 * still execute what was there before until text_poke_sync().
 *
 * Context: text_mutex held; IRQs may be off. The caller keeps a module whose
 *	    text this is from going away.
 * Return: @addr, or NULL if no text is mapped there.
 */
void *text_poke(void *addr, const void *opcode, size_t len)
{
	lockdep_assert_held(&text_mutex);

	return poke_any(window_memcpy, addr, opcode, len);
}

/**
 * text_poke_kgdb - write to kernel text from the debugger
 * @addr:	where to
 * @opcode:	what to write
 * @len:	number of bytes
 *
 * Context: kgdb only, which has stopped all other CPUs and seen to it that
 *	    text_mutex, which cannot be taken there, is not held.
 * Return: @addr, or NULL if no text is mapped there.
 */
void *text_poke_kgdb(void *addr, const void *opcode, size_t len)
{
	return poke_any(window_memcpy, addr, opcode, len);
}

/**
 * text_poke_copy_locked - copy code to where nothing is executed yet
 * @addr:	where to
 * @opcode:	the code
 * @len:	number of bytes, may be many pages
 * @core_ok:	@addr may be in the kernel's own text
 *
 * Context: text_mutex held.
 * Return: @addr, or NULL if no text is mapped there.
 */
void *text_poke_copy_locked(void *addr, const void *opcode, size_t len, bool core_ok)
{
	if (WARN_ON_ONCE(!core_ok && core_kernel_text((unsigned long)addr)))
		return NULL;

	return poke_any(window_memcpy, addr, opcode, len);
}

/**
 * text_poke_copy - copy code to where nothing is executed yet
 * @addr:	where to, outside of the kernel's own text
 * @opcode:	the code
 * @len:	number of bytes, may be many pages
 *
 * For JITs. Once no pointer into the old code is left, synchronize_rcu_tasks()
 * waits for tasks that may still be executing it.
 *
 * Context: takes text_mutex, may sleep.
 * Return: @addr, or NULL if no text is mapped there.
 */
void *text_poke_copy(void *addr, const void *opcode, size_t len)
{
	mutex_lock(&text_mutex);
	addr = text_poke_copy_locked(addr, opcode, len, false);
	mutex_unlock(&text_mutex);
	return addr;
}

/**
 * text_poke_set - fill unused text with one byte
 * @addr:	where to, outside of the kernel's own text
 * @c:		the byte, such as that of INT3
 * @len:	number of bytes, may be many pages
 *
 * Context: takes text_mutex, may sleep.
 * Return: @addr, or NULL if no text is mapped there.
 */
void *text_poke_set(void *addr, int c, size_t len)
{
	if (WARN_ON_ONCE(core_kernel_text((unsigned long)addr)))
		return NULL;

	mutex_lock(&text_mutex);
	addr = poke_any(window_memset, addr, &c, len);
	mutex_unlock(&text_mutex);
	return addr;
}

static void do_sync_core(void *unused)
{
	sync_core();
}

/**
 * text_poke_sync - make every CPU serialise
 *
 * When this returns, every CPU executes what has been written before, and has
 * left every handler of a breakpoint that it had run into before (a handler
 * runs with IRQs off).
 *
 * Context: process context, IRQs on (or only one CPU online): waits for IPIs.
 */
void text_poke_sync(void)
{
	stats.syncs++;
	on_each_cpu(do_sync_core, NULL, 1);
}

/**
 * text_poke_early - write to text that only this CPU can execute
 * @addr:	where to
 * @opcode:	what to write
 * @len:	number of bytes
 *
 * Context: boot, before text is made read-only and other CPUs run; or a
 *	    module's text before it is made executable. An NMI must not run into
 *	    what is half written.
 */
void __init_or_module text_poke_early(void *addr, const void *opcode, size_t len)
{
	unsigned long flags;

	/* Not executable yet: nothing can have been fetched from there. */
	if (boot_cpu_has(X86_FEATURE_NX) && is_module_text_address((unsigned long)addr)) {
		memcpy(addr, opcode, len);
		return;
	}

	local_irq_save(flags);
	memcpy(addr, opcode, len);
	sync_core();
	local_irq_restore(flags);
}

/*
 * What must be known of an instruction to emulate it. Kinds that differ only
 * in their encoding are one: a NOP is a JMP8 to the next instruction, and a Jcc
 * with a 32-bit displacement is kept as the one with an 8-bit displacement.
 */
struct text_poke_insn_desc {
	s32	disp;		/* relative to the end of the instruction */
	u8	opcode;		/* CALL, RET, JMP8, INT3, or 0x70 | condition */
	u8	len;
};

#define JCC8_INSN_OPCODE	0x70
#define JCC32_INSN_OPCODE2	0x80

/* A NOP with a ModR/M byte, SDM Vol. 2B, "NOP": its length, beginning with the ModR/M byte. */
static __always_inline unsigned int nop_operand_len(u8 modrm)
{
	unsigned int len = 1;

	if ((modrm & 7) == 4 && modrm < 0xc0)
		len++;				/* SIB */

	switch (modrm >> 6) {
	case 0:
		return (modrm & 7) == 5 ? len + 4 : len;
	case 1:
		return len + 1;
	case 2:
		return len + 4;
	default:
		return len;
	}
}

/*
 * Decode the instruction at @p, whose first byte was read as @first. No byte
 * past its end is read, and none but the first eight.
 *
 * Return: false if this is nothing that can be emulated.
 */
static __always_inline bool decode_insn(u8 first, const u8 *p, struct text_poke_insn_desc *desc)
{
	unsigned int i = 0;
	u8 c = first;

	desc->opcode = first;
	desc->disp = 0;

	switch (first) {
	case INT3_INSN_OPCODE:
	case RET_INSN_OPCODE:
		desc->len = 1;
		return true;

	case CALL_INSN_OPCODE:
		desc->disp = get_unaligned((const s32 *)(p + 1));
		desc->len = CALL_INSN_SIZE;
		return true;

	case JMP32_INSN_OPCODE:
		desc->opcode = JMP8_INSN_OPCODE;
		desc->disp = get_unaligned((const s32 *)(p + 1));
		desc->len = JMP32_INSN_SIZE;
		return true;

	case JMP8_INSN_OPCODE:
	case JCC8_INSN_OPCODE ... JCC8_INSN_OPCODE + 15:
		desc->disp = (s8)p[1];
		desc->len = JMP8_INSN_SIZE;
		return true;

	case 0x0f:
		if ((p[1] & 0xf0) == JCC32_INSN_OPCODE2) {
			desc->opcode = JCC8_INSN_OPCODE | (p[1] & 0x0f);
			desc->disp = get_unaligned((const s32 *)(p + 2));
			desc->len = 6;
			return true;
		}
		break;
	}

	/* NOPs, as asm/nops.h and compilers make them. */
	desc->opcode = JMP8_INSN_OPCODE;
	while ((c == 0x66 || c == 0x2e) && i < 4)
		c = p[++i];

	if (c == 0x90) {
		desc->len = i + 1;
		return true;
	}
	if (c == 0x0f && p[i + 1] == 0x1f) {
		desc->len = i + 2 + nop_operand_len(p[i + 2]);
		return true;
	}

	return false;
}

/* Do what the instruction at @ip does. */
static __always_inline void emulate_insn(struct pt_regs *regs, unsigned long ip,
					 const struct text_poke_insn_desc *desc)
{
	unsigned long next = ip + desc->len;

	switch (desc->opcode) {
	case CALL_INSN_OPCODE:
		int3_emulate_call(regs, next + desc->disp);
		break;
	case RET_INSN_OPCODE:
		int3_emulate_ret(regs);
		break;
	case JMP8_INSN_OPCODE:
		int3_emulate_jmp(regs, next + desc->disp);
		break;
	default:
		int3_emulate_jcc(regs, desc->opcode & 0x0f, next, desc->disp);
		break;
	}
}

/*
 * A slot is filled by text_poke_queue(), passes through the three steps of the
 * pipeline, and is filled again. The sites stand in the order they came in;
 * @order lists them by address.
 */
#define SLOT_SITES_MAX	1024U

/* Bounds of the size that adapts. The upper one keeps an idle machine's sites planted briefly. */
#define BATCH_SIZE_MIN	64U
#define BATCH_SIZE_MAX	640U

/* What addresses are relative to, in 32 bits: the page that the kernel's text begins on. */
#define PAGE_STEXT	((unsigned long)_stext & PAGE_MASK)

struct text_poke_loc {
	s32			rel_addr;	/* from PAGE_STEXT */
	struct text_poke_insn_desc emulate;
	u8			len;
	union text_poke_code	old;
	union text_poke_code	new;
};

/* Pages of text, one after the other, that sites lie on: never more than a window holds. */
struct text_poke_run {
	long			page;		/* the first one, from PAGE_STEXT */
	u16			pages;
	u16			end;		/* the sites before this one, in order */
};

struct text_poke_slot {
	unsigned int		live;		/* sites that the handler sees */
	unsigned int		nr;
	unsigned int		nr_runs;
	int			error;		/* of a site, for which all are dropped */
	u64			planted;	/* when */
	u16			order[SLOT_SITES_MAX];
	struct text_poke_loc	loc[SLOT_SITES_MAX];
	struct text_poke_run	run[SLOT_SITES_MAX];
};

/* Three in the pipeline, and one that rests, see slot_retire(). */
#define NR_SLOTS	4
static struct text_poke_slot slots[NR_SLOTS];

static __always_inline unsigned long loc_addr(const struct text_poke_loc *loc)
{
	return PAGE_STEXT + loc->rel_addr;
}

static __always_inline struct text_poke_loc *slot_loc(struct text_poke_slot *slot, unsigned int i)
{
	return &slot->loc[slot->order[i]];
}

/* The number of the first @nr sites in order that lie below @rel_addr. */
static __always_inline unsigned int slot_lower_bound(struct text_poke_slot *slot,
						     unsigned int nr, s32 rel_addr)
{
	unsigned int low = 0, high = nr;

	while (low < high) {
		unsigned int mid = (low + high) / 2;

		if (slot_loc(slot, mid)->rel_addr < rel_addr)
			low = mid + 1;
		else
			high = mid;
	}

	return low;
}

/*
 * Find the planted site at @ip.
 *
 * The slots are published before their first breakpoint is written
 * (slot_publish()), and the breakpoint was seen before they are read here. A
 * slot seen to be live does not change until this CPU has left the handler: it
 * is only filled again after a text_poke_sync() that began when it was
 * unpublished.
 */
static __always_inline struct text_poke_loc *find_planted(unsigned long ip)
{
	s32 rel_addr = ip - PAGE_STEXT;
	unsigned int i;

	for (i = 0; i < NR_SLOTS; i++) {
		/* Pairs with smp_store_release() in slot_publish(). */
		unsigned int nr = smp_load_acquire(&slots[i].live);
		unsigned int pos;

		if (!nr)
			continue;

		pos = slot_lower_bound(&slots[i], nr, rel_addr);
		if (pos < nr && slot_loc(&slots[i], pos)->rel_addr == rel_addr)
			return slot_loc(&slots[i], pos);
	}

	return NULL;
}

/*
 * The CPU trapped where memory holds no breakpoint. An emulator may execute a
 * copy of code that is out of date, and a CPU may have run into a breakpoint
 * that has just been removed. Coming back to @ip would only run into the stale
 * copy again, so do what memory says.
 *
 * That is never a torn instruction: the tail is only written when a sync has
 * completed after the breakpoint was planted, and no sync completes while this
 * CPU has its IRQs off. So if @first is not the breakpoint, the tail belongs to
 * it.
 */
static __always_inline bool emulate_stale(struct pt_regs *regs, unsigned long ip, u8 first)
{
	struct text_poke_insn_desc desc;

	/* After "int $3", two bytes, @first is 0x03, an ADD: not emulated, left to others. */
	if (!decode_insn(first, (const u8 *)ip, &desc))
		return false;

	emulate_insn(regs, ip, &desc);
	return true;
}

/**
 * poke_int3_handler - emulate the instruction that is being replaced
 * @regs:	of the CPU that ran into a breakpoint
 *
 * Context: #BP from any context, NMI included; also nested, when an NMI hits
 *	    this handler and then a breakpoint. IRQs are off. Calls nothing that
 *	    could be patched, takes no lock, writes nothing that CPUs share.
 * Return: 1 if the instruction was emulated, 0 if this breakpoint is someone
 *	   else's.
 */
noinstr int poke_int3_handler(struct pt_regs *regs)
{
	unsigned long ip = regs->ip - INT3_INSN_SIZE;
	const struct text_poke_loc *loc;
	u8 first;

	if (user_mode(regs))
		return 0;

	/* Having seen the breakpoint, see the slot it belongs to. */
	smp_rmb();

	loc = find_planted(ip);
	if (!loc) {
		first = READ_ONCE(*(u8 *)ip);
		if (first != INT3_INSN_OPCODE) {
			if (!emulate_stale(regs, ip, first))
				return 0;
			raw_cpu_inc(text_poke_traps.stale);
			return 1;
		}

		/* A stale copy, but meanwhile a breakpoint was planted here? */
		smp_rmb();
		loc = find_planted(ip);
		if (!loc)
			return 0;
	}

	/* Somebody wants a breakpoint there, and wants to handle it. */
	if (loc->emulate.opcode == INT3_INSN_OPCODE)
		return 0;

	emulate_insn(regs, ip, &loc->emulate);
	raw_cpu_inc(text_poke_traps.emulated);
	return 1;
}

/*
 * Slots fill up to the batch size before they enter the pipeline. Larger ones
 * take fewer IPIs, but keep the breakpoints planted for longer, and on a busy
 * machine every call of a planted function traps.
 */
static unsigned int batch_size = BATCH_SIZE_MAX;	/* adapts */
static unsigned int batch_max;			/* sysctl, 0: the size adapts */

static struct text_poke_slot *filling = slots;	/* what text_poke_queue() fills */
static int queue_error;				/* what text_poke_finish() will return */
static unsigned long known_page;		/* the last page that was found to be text */

/* No queued site lies in this gap: one that does overlaps with none. */
static struct text_poke_gap {
	s32			start, end;
	unsigned int		behind;		/* sites behind it in the slot that is filled */
} gap = { S32_MIN, S32_MAX };

/* The slot @n steps of the pipeline ahead of the one that is filled. */
static struct text_poke_slot *slot_ahead(unsigned int n)
{
	return &slots[(filling - slots + NR_SLOTS - n) % NR_SLOTS];
}

static struct text_poke_batch {
	u64			begin;		/* 0: nothing is under way */
	struct text_poke_stats	stats;
	struct text_poke_traps	traps;
} batch;

static unsigned int fill_limit = BATCH_SIZE_MAX;	/* of the slot that is filled */

static void update_fill_limit(void)
{
	unsigned int limit = READ_ONCE(batch_max);

	fill_limit = limit ?: batch_size;
}

/*
 * What a larger slot saves is one IPI to every CPU; what it costs are traps. So
 * the more CPUs there are, the more traps in a step are worth it.
 */
static void batch_adapt(unsigned int sites, unsigned long traps)
{
	unsigned long worth_it = 16 * (1 + num_online_cpus());

	/* A few sites say nothing about a batch of many. */
	if (sites < BATCH_SIZE_MIN)
		return;

	/* Shrink at once where code is hot, and grow again little by little. */
	if (traps > worth_it)
		batch_size = max(batch_size / (traps > 4 * worth_it ? 4 : 2), BATCH_SIZE_MIN);
	else if (traps < worth_it / 4 && sites >= batch_size)
		batch_size = min(batch_size + batch_size / 4, BATCH_SIZE_MAX);
}

/* The bytes of a word that an instruction fills. */
static __always_inline u64 insn_mask(unsigned int len)
{
	return GENMASK_ULL(8 * len - 1, 0);
}

/* Let the handler see the slot, and only then plant its breakpoints. */
static void slot_publish(struct text_poke_slot *slot)
{
	slot->planted = clock_ns();
	/* Pairs with smp_load_acquire() in find_planted(). */
	smp_store_release(&slot->live, slot->nr);
	/* Pairs with smp_rmb() in poke_int3_handler(). */
	smp_wmb();
}

/* The first bytes are written: no CPU comes to the breakpoints any more. */
static void slot_lifted(struct text_poke_slot *slot)
{
	u64 ns = clock_ns() - slot->planted;

	stats.planted_max_ns = max(stats.planted_max_ns, ns);
	stats.planted_ns += ns * slot->nr;
}

/* What is written of each site in a step. */
enum text_poke_phase { PHASE_INT3, PHASE_TAIL, PHASE_FIRST };

static __always_inline bool phase_writes(const struct text_poke_loc *loc,
					 enum text_poke_phase phase)
{
	switch (phase) {
	case PHASE_INT3:
		return true;
	case PHASE_TAIL:
		return loc->len > INT3_INSN_SIZE;
	default:
		return loc->new.insn[0] != INT3_INSN_OPCODE;
	}
}

/* @dst: where the window shows the site's first byte. */
static __always_inline void phase_write(u8 *dst, const struct text_poke_loc *loc,
					enum text_poke_phase phase)
{
	unsigned int i;

	switch (phase) {
	case PHASE_INT3:
		put_byte(dst, INT3_INSN_OPCODE);
		break;
	case PHASE_TAIL:
		if (likely(loc->len == CALL_INSN_SIZE)) {
			put_long(dst + 1, get_unaligned((const u32 *)(loc->new.insn + 1)));
			break;
		}
		for (i = 1; i < loc->len; i++)
			put_byte(dst + i, loc->new.insn[i]);
		break;
	case PHASE_FIRST:
		put_byte(dst, loc->new.insn[0]);
		break;
	}
}

/* Find the pages that the sites lie on. */
static void slot_find_runs(struct text_poke_slot *slot)
{
	struct text_poke_run *run = slot->run;
	unsigned int i, first = 0;
	s32 page_end = S32_MIN;

	slot->nr_runs = 0;
	for (i = 0; i < slot->nr; i++) {
		const struct text_poke_loc *loc = slot_loc(slot, i);
		long page, last;

		/* Most lie on a page that is there already. */
		if (likely(loc->rel_addr + loc->len <= page_end && i - first < WINDOW_SITES))
			continue;

		page = loc->rel_addr >> PAGE_SHIFT;
		last = (loc->rel_addr + loc->len - 1) >> PAGE_SHIFT;
		if (!slot->nr_runs || page > run->page + run->pages ||
		    last - run->page >= (long)WINDOW_PAGES || i - first >= WINDOW_SITES) {
			run = &slot->run[slot->nr_runs++];
			run->page = page;
			first = i;
			if (run > slot->run)
				run[-1].end = i;
		}
		run->pages = last - run->page + 1;
		page_end = (last + 1) << PAGE_SHIFT;
	}
	run->end = slot->nr;
}

/* The first run that does not fit into one window with @run, which begins with site @first. */
static __always_inline const struct text_poke_run *
window_end(const struct text_poke_slot *slot, const struct text_poke_run *run, unsigned int first)
{
	unsigned int pages = 0;

	for (; run < slot->run + slot->nr_runs; run++) {
		pages += run->pages;
		if (pages > WINDOW_PAGES || run->end - first > WINDOW_SITES)
			break;
	}

	return run;
}

/*
 * Write one phase of all sites of a slot. Inlined, so that each phase gets a loop
 * of its own.
 */
static __always_inline void slot_write(struct text_poke_slot *slot, enum text_poke_phase phase)
{
	const struct text_poke_run *run = slot->run, *end, *r;
	unsigned int i = 0;

	while (i < slot->nr) {
		struct text_poke_window window = {};
		u8 *shown[WINDOW_PAGES], **page = shown;

		end = window_end(slot, run, i);
		for (r = run; r < end; r++)
			*page++ = window_map(&window, PAGE_STEXT + r->page * PAGE_SIZE, r->pages);

		window_open(&window);
		for (page = shown; run < end; run++, page++) {
			u8 *stext = *page - run->page * PAGE_SIZE;
			unsigned int stop = run->end;

			/* Its pages were there when it was queued; a module may be gone. */
			if (unlikely(!*page))
				i = stop;

			for (; i < stop; i++) {
				const struct text_poke_loc *loc = slot_loc(slot, i);

				/* Keep its address, do not compute it for each member. */
				OPTIMIZER_HIDE_VAR(loc);
				if (phase_writes(loc, phase))
					phase_write(stext + loc->rel_addr, loc, phase);
			}
		}
		window_close(&window);
	}
}

/*
 * Tell perf, for decoders of Intel PT: at this time every CPU runs into the
 * breakpoint, so a decoder that changes its idea of the code here is never
 * wrong.
 */
static void slot_emit_perf(struct text_poke_slot *slot)
{
	unsigned int i;

	if (!perf_text_poke_enabled())
		return;

	for (i = 0; i < slot->nr; i++) {
		const struct text_poke_loc *loc = slot_loc(slot, i);

		perf_event_text_poke((void *)loc_addr(loc), loc->old.insn, loc->len,
				     loc->new.insn, loc->len);
	}
}

/* Write a slot while this is the only CPU and, but for trampolines, text is writable. */
static void slot_write_early(struct text_poke_slot *slot)
{
	unsigned long flags;
	unsigned int i;

	local_irq_save(flags);
	for (i = 0; i < slot->nr; i++) {
		const struct text_poke_loc *loc = slot_loc(slot, i);
		unsigned long addr = loc_addr(loc);

		if (__is_kernel_text(addr) || is_kernel_inittext(addr))
			__memcpy((void *)addr, loc->new.insn, loc->len);
		else
			poke_any(window_memcpy, (void *)addr, loc->new.insn, loc->len);
	}
	sync_core();
	local_irq_restore(flags);
}

static void slot_clear(struct text_poke_slot *slot)
{
	slot->nr = 0;
	slot->error = 0;
}

/*
 * A handler that began after the sync, for whatever breakpoint, may have seen
 * that the slot is live and still be searching it. So the slot rests: it is
 * filled again after the next step, whose sync ends that handler.
 */
static void slot_retire(struct text_poke_slot *slot)
{
	WRITE_ONCE(slot->live, 0);
	stats.slots++;
	stats.sites += slot->nr;
	slot_clear(slot);
}

/* Push the filled slot, if it holds anything, into the pipeline, and the others on. */
static void pipeline_step(void)
{
	struct text_poke_slot *plant = filling;
	struct text_poke_slot *tails = slot_ahead(1);
	struct text_poke_slot *firsts = slot_ahead(2);
	unsigned int planted = plant->nr + tails->nr + firsts->nr;
	struct text_poke_traps before, after;

	cond_resched();
	count_traps(&before);

	/*
	 * The three write to different sites, so their order does not matter to
	 * CPUs; this one keeps breakpoints planted for the shortest time.
	 */
	if (firsts->nr) {
		slot_write(firsts, PHASE_FIRST);
		slot_lifted(firsts);
	}

	if (tails->nr) {
		slot_write(tails, PHASE_TAIL);
		slot_emit_perf(tails);
	}

	if (plant->nr) {
		slot_find_runs(plant);
		slot_publish(plant);
		slot_write(plant, PHASE_INT3);
	}

	/* Even if nothing was written: the slot that rests counts on it. */
	text_poke_sync();

	if (firsts->nr)
		slot_retire(firsts);

	filling = slot_ahead(NR_SLOTS - 1);

	count_traps(&after);
	batch_adapt(planted, after.emulated - before.emulated);
	update_fill_limit();
}

/* The slot is full, or its sites are wanted now. Return: an error, if it is dropped. */
static noinline int slot_push(void)
{
	struct text_poke_slot *slot = filling;
	int ret = slot->error;

	gap.behind = 0;
	if (!ret && WARN_ONCE(irqs_disabled() && num_online_cpus() > 1,
			      "text cannot be patched with IRQs off\n"))
		ret = -EDEADLK;
	if (ret) {
		queue_error = queue_error ?: ret;
		slot_clear(slot);
		return ret;
	}

	if (system_state == SYSTEM_BOOTING) {
		slot_write_early(slot);
		stats.slots++;
		stats.sites += slot->nr;
		slot_clear(slot);
		return 0;
	}

	pipeline_step();
	return 0;
}

/* Empty the slot that is being filled, and the pipeline. */
static int pipeline_drain(void)
{
	int ret = 0;

	if (filling->nr)
		ret = slot_push();
	while (slot_ahead(1)->nr || slot_ahead(2)->nr)
		pipeline_step();

	gap = (struct text_poke_gap){ S32_MIN, S32_MAX };
	known_page = 0;
	return ret;
}

static void batch_begin(void)
{
	if (batch.begin)
		return;

	update_fill_limit();
	batch.begin = clock_ns();
	batch.stats = stats;
	count_traps(&batch.traps);
}

static void batch_end(int error)
{
	struct text_poke_traps traps;

	if (!batch.begin)
		return;

	stats.batches++;
	count_traps(&traps);
	trace_text_poke_batch(stats.sites - batch.stats.sites,
			      stats.slots - batch.stats.slots,
			      stats.windows - batch.stats.windows,
			      stats.syncs - batch.stats.syncs,
			      traps.emulated - batch.traps.emulated,
			      clock_ns() - batch.begin, error);
	batch.begin = 0;

	if (traps.stale)
		pr_warn_once("a CPU trapped where there is no breakpoint; does an emulator run code that is out of date?\n");
}

static bool slot_overlaps(struct text_poke_slot *slot, s32 rel_addr, unsigned int len)
{
	unsigned int pos = slot_lower_bound(slot, slot->nr, rel_addr);

	if (pos < slot->nr && slot_loc(slot, pos)->rel_addr < rel_addr + (int)len)
		return true;

	return pos && slot_loc(slot, pos - 1)->rel_addr + slot_loc(slot, pos - 1)->len > rel_addr;
}

/* Find out what the handler shall emulate, and whether it can. */
static __always_inline int loc_init(struct text_poke_loc *loc, unsigned long addr,
				    const union text_poke_code *new, unsigned int len,
				    const union text_poke_code *emulate)
{
	static const union text_poke_code nop5 = { .insn = { BYTES_NOP5 } };
	const unsigned long highest = -TEXT_POKE_MAX_INSN_SIZE;
	const unsigned long lowest = PAGE_STEXT + S32_MIN;
	unsigned int i;

	/* In reach, and not at the end of memory. */
	if (unlikely(addr - lowest > highest - lowest))
		return -EFAULT;
	if (unlikely(!len || len > TEXT_POKE_MAX_INSN_SIZE))
		return -EINVAL;

	/* By far most are these two. */
	if (len == CALL_INSN_SIZE && emulate->insn[0] == CALL_INSN_OPCODE)
		loc->emulate = (struct text_poke_insn_desc){
			.disp = emulate->word >> 8, .opcode = CALL_INSN_OPCODE, .len = len };
	else if (len == CALL_INSN_SIZE &&
		 !((emulate->word ^ nop5.word) & insn_mask(CALL_INSN_SIZE)))
		loc->emulate = (struct text_poke_insn_desc){
			.disp = 0, .opcode = JMP8_INSN_OPCODE, .len = len };
	else if (!decode_insn(emulate->insn[0], emulate->insn, &loc->emulate))
		return -EINVAL;

	if (unlikely(loc->emulate.len != len)) {
		switch (emulate->insn[0]) {
		case RET_INSN_OPCODE:
		case JMP8_INSN_OPCODE:
		case JMP32_INSN_OPCODE:
			/* What follows these is never executed; by convention that is INT3. */
			for (i = loc->emulate.len; i < len; i++) {
				if (emulate->insn[i] != INT3_INSN_OPCODE)
					return -EINVAL;
			}
			break;
		case INT3_INSN_OPCODE:
			break;
		default:
			return -EINVAL;
		}
		if (loc->emulate.len > len)
			return -EINVAL;
	}

	loc->rel_addr = addr - PAGE_STEXT;
	loc->len = len;
	loc->new = *new;

	return 0;
}

static __cold noinline int site_refused(const void *addr, unsigned int len,
					const union text_poke_code *emulate, int error)
{
	pr_err("%pS: %*ph cannot be patched in\n", addr,
	       (int)min_t(unsigned int, len, sizeof(emulate->insn)), emulate->insn);
	queue_error = queue_error ?: error;
	return error;
}

static __cold noinline int site_differs(const void *addr, unsigned int len,
					const union text_poke_code *expected)
{
	pr_err("%pS holds %*ph instead of %*ph, nothing of its slot is patched\n",
	       addr, len, addr, len, expected->insn);
	return -EINVAL;
}

/* Whether a word that begins here ends on the same page. */
static __always_inline bool fits_word(unsigned long addr)
{
	return offset_in_page(addr) <= PAGE_SIZE - sizeof(u64);
}

/* Make sure that a site is text, and read it. Return: 0 or an error. */
static noinline int read_site(unsigned long addr, unsigned int len, u64 *now)
{
	union text_poke_code code = {};
	unsigned long pfn, page;
	int ret;

	for (page = addr & PAGE_MASK; page < addr + len; page += PAGE_SIZE) {
		ret = text_pfn(page, true, &pfn);
		if (ret) {
			pr_err("%pS is %s, nothing of its slot is patched\n", (void *)addr,
			       ret == -EACCES ? "not executable" : "not mapped");
			return ret;
		}
	}

	known_page = addr & PAGE_MASK;
	__memcpy(code.insn, (void *)addr, len);
	*now = code.word;
	return 0;
}

/*
 * Compare a site with what the caller expects there, or note what is there.
 * Nobody else changes it from here on, under text_mutex; and if it is being
 * changed already, queue_out_of_order() has had that finished.
 */
static __always_inline int loc_verify(struct text_poke_loc *loc, unsigned long addr,
				      unsigned int len, const union text_poke_code *old,
				      bool verified)
{
	u64 now;
	int ret;

	if (likely(fits_word(addr) && (verified || (addr & PAGE_MASK) == known_page))) {
		now = get_unaligned((const u64 *)addr);
	} else {
		ret = read_site(addr, len, &now);
		if (ret)
			return ret;
	}

	if (unlikely(old && (now ^ old->word) & insn_mask(len)))
		return site_differs((void *)addr, len, old);

	loc->old.word = now;
	return 0;
}

/*
 * Slow path of queue_site(): @loc does not lie in the gap. Two changes of one
 * instruction must not be under way at once: then the first is finished, and the
 * site moves to the slot that is filled next. Find the gap that it lies in.
 */
static notrace void queue_out_of_order(struct text_poke_slot **slot, struct text_poke_loc **loc)
{
	struct text_poke_loc *moved;
	unsigned int i, pos;

	for (i = 0; i < NR_SLOTS; i++) {
		if (!slot_overlaps(&slots[i], (*loc)->rel_addr, (*loc)->len))
			continue;

		pipeline_drain();
		*slot = filling;
		moved = &(*slot)->loc[0];
		*moved = **loc;
		*loc = moved;
		break;
	}

	gap.end = S32_MAX;
	for (i = 0; i < NR_SLOTS; i++) {
		pos = slot_lower_bound(&slots[i], slots[i].nr, (*loc)->rel_addr);
		if (pos < slots[i].nr)
			gap.end = min(gap.end, slot_loc(&slots[i], pos)->rel_addr);
		if (&slots[i] == *slot)
			gap.behind = slots[i].nr - pos;
	}
}

static __always_inline int queue_site(unsigned long addr, const union text_poke_code *new,
				      unsigned int len, const union text_poke_code *old,
				      const union text_poke_code *emulate, bool verified)
{
	struct text_poke_slot *slot;
	struct text_poke_loc *loc;
	unsigned int pos;
	int pushed = 0, ret;

	if (unlikely(filling->nr >= fill_limit))
		pushed = slot_push();

	slot = filling;
	loc = &slot->loc[slot->nr];
	ret = loc_init(loc, addr, new, len, emulate);
	if (unlikely(ret))
		return site_refused((void *)addr, len, emulate, ret);

	if (unlikely(loc->rel_addr < gap.start || loc->rel_addr + (s32)len > gap.end))
		queue_out_of_order(&slot, &loc);
	gap.start = loc->rel_addr + (s32)len;

	ret = loc_verify(loc, addr, len, old, verified);
	if (unlikely(ret))
		slot->error = slot->error ?: ret;

	pos = slot->nr - gap.behind;
	if (unlikely(gap.behind))
		memmove(slot->order + pos + 1, slot->order + pos,
			gap.behind * sizeof(*slot->order));
	slot->order[pos] = slot->nr++;
	return pushed;
}

/* A word's worth of an instruction, of which no more than @len bytes are read. */
static union text_poke_code code_from(const u8 *insn, size_t len)
{
	union text_poke_code code = {};

	memcpy(code.insn, insn, min(len, sizeof(code)));
	return code;
}

/* What text_poke_queue() and text_poke_bp() have in common. */
static int queue_one(void *addr, const void *opcode, size_t len, const void *emulate)
{
	union text_poke_code new = code_from(opcode, len), what;

	batch_begin();
	what = emulate ? code_from(emulate, len) : new;
	return queue_site((unsigned long)addr, &new, len, NULL, &what, false);
}

/**
 * text_poke_queue - replace an instruction, together with others
 * @addr:	where the instruction is
 * @opcode:	the new instruction
 * @len:	length of both the old and the new one in bytes, at most
 *		TEXT_POKE_MAX_INSN_SIZE; no CPU may ever be between two
 *		instructions within that length, or come there
 * @emulate:	what CPUs shall do that run into @addr meanwhile, an instruction
 *		as long; NULL if that is @opcode
 *
 * @emulate must be CALL, JMP, Jcc, RET or one NOP; a JMP or RET that is shorter
 * than @len is padded with INT3. Or INT3, followed by anything: then the
 * breakpoint stays, and is left to whoever handles it.
 *
 * The sites may come in any order. When an address is queued twice, the later
 * one wins. Nothing of this need be written until text_poke_finish().
 *
 * Context: text_mutex held from the first site until text_poke_finish()
 *	    returned. IRQs on, unless this is the only CPU. Allocates nothing.
 * Return: 0; -EINVAL if @emulate cannot be emulated, -EFAULT if @addr is out of
 *	   reach: then this one is not queued; or an error of earlier sites, as
 *	   text_poke_finish() returns it.
 */
int text_poke_queue(void *addr, const void *opcode, size_t len, const void *emulate)
{
	lockdep_assert_held(&text_mutex);

	return queue_one(addr, opcode, len, emulate);
}

/**
 * text_poke_queue_sites - replace instructions, if they are as expected
 * @sites:	the instructions
 * @nr:		how many
 *
 * As text_poke_queue() for each of them, but one call for all: this function is
 * itself traced, so it may be planted. What is there now is compared with what
 * the caller says.
 *
 * Context: as text_poke_queue().
 * Return: 0, or the first error: as text_poke_queue().
 */
int text_poke_queue_sites(const struct text_poke_site *sites, unsigned int nr)
{
	unsigned int i;
	int ret = 0;

	lockdep_assert_held(&text_mutex);
	batch_begin();

	for (i = 0; i < nr; i++) {
		const struct text_poke_site *site = &sites[i];
		int err = queue_site((unsigned long)site->addr, &site->new, site->len,
				     site->verified ? NULL : &site->old, &site->new,
				     site->verified);

		ret = ret ?: err;
	}

	return ret;
}

/**
 * text_poke_finish - have all queued instructions replaced
 *
 * Context: text_mutex held, may sleep.
 * Return: 0, or the first error since the last text_poke_finish(): -EINVAL if
 *	   the old instruction is not what was expected or the new one cannot be
 *	   emulated, -EFAULT if no text is mapped at an address, -EACCES if what
 *	   is there is not executable, -EDEADLK if IRQs are off. Of a slot with a
 *	   bad site nothing has been written; the error is in the kernel's log
 *	   with the address.
 */
int text_poke_finish(void)
{
	int ret;

	lockdep_assert_held(&text_mutex);

	pipeline_drain();
	ret = queue_error;
	queue_error = 0;
	batch_end(ret);

	return ret;
}

/**
 * text_poke_bp - replace one instruction
 * @addr:	where the instruction is
 * @opcode:	the new instruction
 * @len:	length of both the old and the new one
 * @emulate:	what CPUs shall do that run into it meanwhile, or NULL
 *
 * As text_poke_queue(), but it is done when this returns, and so is what was
 * queued before.
 *
 * Context: text_mutex held, may sleep. Allocates nothing.
 * Return: 0, or an error as text_poke_finish().
 */
int text_poke_bp(void *addr, const void *opcode, size_t len, const void *emulate)
{
	int queued, ret;

	lockdep_assert_held(&text_mutex);

	/* The error of this site is for this caller, that of others for theirs. */
	pipeline_drain();
	queued = queue_error;

	ret = queue_one(addr, opcode, len, emulate);
	if (!ret)
		ret = pipeline_drain();

	queue_error = queued;
	batch_end(ret);
	return ret;
}

#if IS_ENABLED(CONFIG_TEXT_POKE_KUNIT_TEST)
/**
 * text_poke_test_step - push what is queued one step on, and leave it there
 *
 * Lets a test run into sites while they are planted.
 *
 * Context: as text_poke_queue().
 * Return: 0, or the error for which the queued slot was dropped.
 */
int text_poke_test_step(void)
{
	if (filling->nr)
		return slot_push();

	pipeline_step();
	return 0;
}

/**
 * text_poke_test_counters - read all counters at once
 * @counters:	since boot or the last reset, but traps since boot
 */
void text_poke_test_counters(struct text_poke_test_counters *counters)
{
	struct text_poke_traps traps;

	count_traps(&traps);
	counters->batches = stats.batches;
	counters->slots = stats.slots;
	counters->sites = stats.sites;
	counters->syncs = stats.syncs;
	counters->traps = traps.emulated;
	counters->stale_traps = traps.stale;
}
#endif

#ifdef CONFIG_SYSCTL
static const unsigned int batch_max_limit = SLOT_SITES_MAX;

static struct ctl_table text_poke_sysctls[] = {
	{
		.procname	= "text_poke_batch_max",
		.data		= &batch_max,
		.maxlen		= sizeof(batch_max),
		.mode		= 0644,
		.proc_handler	= proc_douintvec_minmax,
		.extra1		= SYSCTL_ZERO,
		.extra2		= (void *)&batch_max_limit,
	},
};
#endif

#ifdef CONFIG_DEBUG_FS
/* What the counters were when they were reset; the handler's are never written to. */
static struct text_poke_traps traps_at_reset;

static int traps_get(void *data, u64 *val)
{
	struct text_poke_traps traps;

	count_traps(&traps);
	*val = traps.emulated - traps_at_reset.emulated;
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(traps_fops, traps_get, NULL, "%llu\n");

static int stale_traps_get(void *data, u64 *val)
{
	struct text_poke_traps traps;

	count_traps(&traps);
	*val = traps.stale - traps_at_reset.stale;
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(stale_traps_fops, stale_traps_get, NULL, "%llu\n");

static int reset_set(void *data, u64 val)
{
	mutex_lock(&text_mutex);
	stats = (struct text_poke_stats){};
	count_traps(&traps_at_reset);
	mutex_unlock(&text_mutex);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(reset_fops, NULL, reset_set, "%llu\n");

static void __init text_poke_debugfs_init(void)
{
	struct dentry *dir = debugfs_create_dir("text_poke", arch_debugfs_dir);

	debugfs_create_u64("batches", 0444, dir, &stats.batches);
	debugfs_create_u64("slots", 0444, dir, &stats.slots);
	debugfs_create_u64("sites", 0444, dir, &stats.sites);
	debugfs_create_u64("pages", 0444, dir, &stats.pages);
	debugfs_create_u64("windows", 0444, dir, &stats.windows);
	debugfs_create_u64("syncs", 0444, dir, &stats.syncs);
	debugfs_create_u64("irqoff_max_ns", 0444, dir, &stats.irqoff_max_ns);
	debugfs_create_u64("planted_max_ns", 0444, dir, &stats.planted_max_ns);
	debugfs_create_u64("planted_ns", 0444, dir, &stats.planted_ns);
	debugfs_create_u32("batch_size", 0444, dir, &batch_size);
	debugfs_create_file_unsafe("traps", 0444, dir, NULL, &traps_fops);
	debugfs_create_file_unsafe("stale_traps", 0444, dir, NULL, &stale_traps_fops);
	debugfs_create_file_unsafe("reset", 0200, dir, NULL, &reset_fops);
}
#else
static void __init text_poke_debugfs_init(void) { }
#endif

static int __init text_poke_late_init(void)
{
#ifdef CONFIG_SYSCTL
	register_sysctl("kernel", text_poke_sysctls);
#endif
	text_poke_debugfs_init();
	return 0;
}
late_initcall(text_poke_late_init);
