/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What arch/x86/kernel/text_patch.c needs of the kernel, in user space, so that
 * the file is compiled as it is. All other headers it includes are empty here.
 *
 * CPUs are threads. What differs from the kernel, and why that is as good:
 *
 * Addresses. The engine patches nothing in the lower half of the address space.
 * So it is told that text lies in the upper one, SHIM_KERNEL higher, and what reads
 * text goes back to where it lies really. The handler gets the real address: only
 * the lower 32 bits of its distance to _stext count.
 *
 * The window. Text is a file in memory, mapped twice: to be executed and to be
 * written. Unmapping pages would interrupt other CPUs, which hides that a sync is
 * missing; so nothing is mapped, but poking_addr moves to where the pages that are
 * shown next are writable all the time.
 *
 * Sync. membarrier() makes every thread of the process serialise, running or not.
 * An interrupt in the kernel also proves that a CPU has left the handler, as that
 * runs with interrupts off. A signal handler has no such thing, so it counts: @seq
 * of a CPU is odd in the handler. A sync waits for those that are in it, and then
 * calls membarrier(). Between counting and reading text or slots there is a full
 * barrier, and one between writing them and reading the counts: so either the sync
 * waits, or the handler sees everything that was written before the sync. This is
 * what an interrupt gives, too.
 *
 * The trap. In the kernel interrupts are off from the breakpoint on. Here time, and
 * any number of syncs, can pass between the breakpoint and the first line of the
 * signal handler. So there are traps whose breakpoint is gone, as emulators have
 * them, and the engine must recover from them.
 */
#ifndef TEXT_POKE_SHIM_H
#define TEXT_POKE_SHIM_H

#include <errno.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <asm/barrier.h>
#include <asm/nops.h>
#include <linux/bits.h>
#include <linux/compiler.h>
#include <linux/kconfig.h>
#include <linux/kernel.h>
#include <linux/types.h>
#include <linux/unaligned.h>

#define CONFIG_X86_TEXT_PATCH		1
/* For the counters */
#define CONFIG_TEXT_POKE_KUNIT_TEST	1

#define PAGE_SHIFT	12
#define PAGE_SIZE	BIT(PAGE_SHIFT)
#define PAGE_MASK	(~(PAGE_SIZE - 1))
#define SHIM_PAGES	64
#define SHIM_CPUS	64

#define __init
#define __init_or_module
#define __ro_after_init
#define noinstr
#define notrace

#define S32_MIN		INT32_MIN
#define S32_MAX		INT32_MAX
#undef min
#undef max
#undef min_t
#define min(x, y) ({ typeof(x) _x = (x); typeof(y) _y = (y); _x < _y ? _x : _y; })
#define max(x, y) ({ typeof(x) _x = (x); typeof(y) _y = (y); _x > _y ? _x : _y; })
#define min_t(type, x, y)	min((type)(x), (type)(y))
#define offset_in_page(p)	((unsigned long)(p) & ~PAGE_MASK)

/* CPUs */

struct shim_cpu {
	unsigned long	seq;		/* odd: in the handler */
	unsigned int	id;
	u64		random;
	u8		percpu[64] __aligned(64);
} __aligned(128);

static struct shim_cpu shim_cpus[SHIM_CPUS];
static unsigned int shim_nr_cpus;
static __thread struct shim_cpu *this_cpu;

static struct shim_switches {
	unsigned int	no_sync;	/* bit N: the Nth sync of a batch is none */
	bool		no_handler;	/* a sync does not wait for handlers */
	bool		late_publish;	/* the handler sees a slot when its step is over */
	unsigned int	slow;		/* one pause of so many is made, a power of two */
} shim = { .slow = 256 };

static unsigned int shim_syncs;		/* of this batch */

static inline u64 shim_random(u64 *state)
{
	u64 x = *state += 0x9e3779b97f4a7c15;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

/* Between 64 cycles and 2^16, small ones as probable as large ones. */
static inline void shim_delay(void)
{
	u64 random = shim_random(&this_cpu->random);
	u64 begin = __builtin_ia32_rdtsc(), cycles = 64 << (random % 10);

	cycles += (random >> 8) % cycles;
	while (__builtin_ia32_rdtsc() - begin < cycles)
		__builtin_ia32_pause();
}

/* In the handler, now and then, let the others get ahead. */
static inline void shim_pause(void)
{
	if (!this_cpu || !(__atomic_load_n(&this_cpu->seq, __ATOMIC_RELAXED) & 1))
		return;
	if (!(shim_random(&this_cpu->random) & (shim.slow - 1)))
		shim_delay();
}

/* Return: whether they were on. The increments are atomic to a signal. */
static inline bool shim_irqs_off(void)
{
	bool were_on = !(__atomic_load_n(&this_cpu->seq, __ATOMIC_RELAXED) & 1);

	if (were_on)
		asm volatile("incq %0" : "+m" (this_cpu->seq) : : "memory");
	/* Pairs with that in shim_sync(): it waits, or its text and slots are seen here. */
	smp_mb();
	return were_on;
}

static bool shim_waiting;		/* a sync, for handlers of threads that do not run */

static inline void shim_irqs_restore(bool were_on)
{
	if (!were_on)
		return;

	asm volatile("incq %0" : "+m" (this_cpu->seq) : : "memory");
	/* There are more threads than cores, and it may be waiting for one of them. */
	if (__atomic_load_n(&shim_waiting, __ATOMIC_RELAXED))
		sched_yield();
}

static unsigned int *shim_late_live, shim_late_nr;

static void shim_sync(void)
{
	unsigned int i;

	if (shim_late_live)
		__atomic_store_n(shim_late_live, shim_late_nr, __ATOMIC_RELEASE);
	shim_late_live = NULL;

	if (++shim_syncs < 32 && shim.no_sync & BIT(shim_syncs))
		return;

	/* Pairs with that in shim_irqs_off(). */
	smp_mb();
	for (i = 0; !shim.no_handler && i < shim_nr_cpus; i++) {
		const unsigned long *seq = &shim_cpus[i].seq;
		unsigned long was = __atomic_load_n(seq, __ATOMIC_ACQUIRE);
		unsigned int spins = 0;

		while (was & 1 && __atomic_load_n(seq, __ATOMIC_ACQUIRE) == was) {
			if (++spins % 1024) {
				__builtin_ia32_pause();
			} else {
				__atomic_store_n(&shim_waiting, true, __ATOMIC_RELAXED);
				sched_yield();
			}
		}
	}
	__atomic_store_n(&shim_waiting, false, __ATOMIC_RELAXED);

	if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0)) {
		perror("membarrier");
		abort();
	}
}

/* The caller's own CPU executes nothing of what is patched. */
static inline void sync_core(void)
{
}

static inline void on_each_cpu(void (*func)(void *info), void *info, int wait)
{
	shim_sync();
	func(info);
}

#define num_online_cpus()	(shim_nr_cpus + 1)
#define for_each_possible_cpu(cpu) \
	for ((cpu) = 0; (cpu) < (int)shim_nr_cpus; (cpu)++)

/* As in the kernel, a variable's offset in its section is that in each CPU's copy. */
extern char __start_percpu[], __stop_percpu[];
#define DEFINE_PER_CPU(type, name) \
	typeof(type) name __attribute__((section("percpu")))
#define per_cpu_ptr(ptr, cpu) \
	((typeof(ptr))(shim_cpus[cpu].percpu + ((char *)(ptr) - __start_percpu)))
#define per_cpu(var, cpu)	(*per_cpu_ptr(&(var), cpu))
#define raw_cpu_inc(var) \
	asm volatile("incq %0" : "+m" (*per_cpu_ptr(&(var), this_cpu->id)))
/* Only of the writer's own state */
#define this_cpu_read(var)	(var)

/* What orders the handler's reads is where it can be slow. */
#undef READ_ONCE
#define READ_ONCE(x) ({							\
	typeof(x) _once = *(const volatile typeof(x) *)&(x);		\
									\
	shim_pause();							\
	_once;								\
})
#undef smp_load_acquire
#define smp_load_acquire(p)	READ_ONCE(*(p))
#undef smp_rmb
#define smp_rmb()		do { shim_pause(); barrier(); } while (0)
#undef smp_store_release
#define smp_store_release(p, v)	do {					\
	barrier();							\
	if (shim.late_publish) {					\
		shim_late_live = (p);					\
		shim_late_nr = (v);					\
	} else {							\
		WRITE_ONCE(*(p), v);					\
	}								\
} while (0)

/* Text, and where the engine believes it to be */

#define SHIM_KERNEL	0xffff800000000000UL
static u8 *shim_text, *shim_writable;

static inline const void *shim_real(const void *p)
{
	return (const void *)((unsigned long)p & ~SHIM_KERNEL);
}

static inline void *shim_kernel(const void *p)
{
	return (void *)((unsigned long)p | SHIM_KERNEL);
}

#define _stext			((char *)shim_kernel(shim_text))
#define __pa_symbol(addr)	((unsigned long)shim_real((void *)(addr)) - \
				 (unsigned long)shim_text)
#undef get_unaligned
#define get_unaligned(p)	__get_unaligned_t(typeof(*(p)), shim_real(p))
#define __memcpy(dst, src, len)	memcpy(dst, shim_real(src), len)
#define __memset(dst, c, len)	memset(dst, c, len)

/* Half of it is the kernel's own text, the other half a module's. */
#define SHIM_CORE_SIZE		(SHIM_PAGES / 2 * PAGE_SIZE)
#define __is_kernel_text(addr)	(__pa_symbol(addr) < SHIM_CORE_SIZE)
#define core_kernel_text(addr)	__is_kernel_text(addr)
#define is_kernel_inittext(addr)	false
#define is_module_text_address(addr)	(!__is_kernel_text(addr))

#define X86_FEATURE_NX		0
#define boot_cpu_has(feature)	true
#define __is_canonical_address(addr, bits)	true

/* The mm that text is written through, and its page tables */

typedef struct { unsigned long pte; } pte_t;
typedef struct { unsigned long pmd; } pmd_t;
typedef struct { int unused; } pud_t, p4d_t, pgd_t;
typedef struct { unsigned long pgprot; } pgprot_t;
struct mm_struct { int unused; };
struct task_struct;

#define current			((struct task_struct *)NULL)
#define TASK_SIZE_MAX		BIT(47)
#define TASK_SIZE		TASK_SIZE_MAX
#define TASK_UNMAPPED_BASE	(TASK_SIZE / 3)
#define PTRS_PER_PTE		512
#define PMD_SIZE		(PTRS_PER_PTE * PAGE_SIZE)
#define PMD_MASK		(~(PMD_SIZE - 1))
#define PHYS_PFN(addr)		((addr) >> PAGE_SHIFT)
#define PFN_DOWN(addr)		((addr) >> PAGE_SHIFT)
#define PFN_PHYS(pfn)		((pfn) << PAGE_SHIFT)
#define _PAGE_GLOBAL		0x100
#define __pgprot(x)		((pgprot_t){ x })
#define pgprot_val(x)		((x).pgprot)
#define PAGE_KERNEL		__pgprot(0x163)

enum { PG_LEVEL_NONE, PG_LEVEL_4K, PG_LEVEL_2M };

static struct mm_struct shim_mm;
static pte_t shim_window[PTRS_PER_PTE], shim_module[SHIM_PAGES];

/* The engine's */
extern unsigned long poking_addr;
static pte_t *poking_ptes;

#define pte_index(addr)			((addr) >> PAGE_SHIFT & (PTRS_PER_PTE - 1))
#define __pte(x)			((pte_t){ x })
#define pte_val(entry)			((entry).pte)
#define pte_pfn(entry)			((entry).pte >> PAGE_SHIFT)
#define pmd_pfn(entry)			((entry).pmd >> PAGE_SHIFT)
#define pte_present(entry)		((entry).pte & 1)
#define pte_exec(entry)			pte_present(entry)
#define pfn_pte(pfn, prot)		((pte_t){ (pfn) << PAGE_SHIFT | pgprot_val(prot) })
#define pte_offset_kernel(pmd, addr)	(shim_window + pte_index(addr))
#define mm_alloc()			(&shim_mm)
#define paravirt_enter_mmap(mm)		((void)(mm))
#define pgd_offset(mm, addr)		((pgd_t *)(mm))
#define p4d_alloc(mm, pgd, addr)	((p4d_t *)(pgd))
#define pud_alloc(mm, p4d, addr)	((pud_t *)(p4d))
#define pmd_alloc(mm, pud, addr)	((pmd_t *)(pud))
#define pte_alloc(mm, pmd)		false
#define kaslr_get_random_long(purpose)	0UL

static inline pte_t *lookup_address(unsigned long addr, unsigned int *level)
{
	unsigned long pfn = PHYS_PFN(__pa_symbol(addr));

	*level = PG_LEVEL_4K;
	if (pfn >= SHIM_PAGES)
		return NULL;

	shim_module[pfn] = pfn_pte(pfn, PAGE_KERNEL);
	return &shim_module[pfn];
}

/* Where a run of pages is shown is asked right after: there it is writable already. */
static inline void set_pte(pte_t *pte, pte_t val)
{
	*pte = val;
	poking_addr = (unsigned long)shim_writable +
		(pte_pfn(val) - (pte - poking_ptes)) * PAGE_SIZE;
}

#define pte_clear(mm, addr, entry)	(*(entry) = (pte_t){})
#define inc_mm_tlb_gen(mm)		((void)(mm))

static struct { bool is_lazy; } cpu_tlbstate_shared;
static struct { struct mm_struct *loaded_mm; } cpu_tlbstate;

#define leave_mm()			do { } while (0)
#define switch_mm_irqs_off_notrace(next, task)	(cpu_tlbstate.loaded_mm = (next))
#define hw_breakpoint_active()		false
#define hw_breakpoint_disable()		do { } while (0)
#define hw_breakpoint_restore()		do { } while (0)

/* Everything else */

struct mutex { int unused; };
static struct mutex text_mutex;
#define mutex_lock(lock)		((void)(lock))
#define mutex_unlock(lock)		((void)(lock))
#define lockdep_assert_held(lock)	((void)(lock))
#define local_irq_save(flags)		((flags) = 0)
#define local_irq_restore(flags)	((void)(flags))
#define irqs_disabled()			false
#define preempt_disable_notrace()	do { } while (0)
#define preempt_enable_notrace()	do { } while (0)
#define cond_resched()			do { } while (0)
#define local_clock()			__builtin_ia32_rdtsc()
#define local_clock_noinstr()		__builtin_ia32_rdtsc()

enum { SYSTEM_BOOTING, SYSTEM_RUNNING };
#define system_state			SYSTEM_RUNNING

/* The C library knows nothing of the kernel's formats, so only the format is printed. */
#define shim_print(fmt)			fputs("# engine: " fmt, stderr)
#define pr_err(fmt, ...)		shim_print(fmt)
/* Such traps are expected here. */
#define pr_warn_once(fmt)		do { } while (0)
#define panic(fmt)			do { shim_print(fmt); abort(); } while (0)
#define WARN_ONCE(cond, fmt, ...) ({					\
	bool _warn = cond;						\
									\
	if (_warn)							\
		shim_print(fmt "\n");					\
	_warn;								\
})
#define WARN_ON_ONCE(cond)		WARN_ONCE(cond, #cond)

#define perf_text_poke_enabled()	false
static inline void perf_event_text_poke(const void *addr, const void *old, size_t old_len,
					const void *new, size_t new_len)
{
}

#define trace_text_poke_batch(...)	do { } while (0)
#define late_initcall(func) \
	static int (*shim_late_initcall)(void) __maybe_unused = func

struct pt_regs {
	unsigned long ip, sp, flags;
};

#define user_mode(regs)		((void)(regs), false)
#define X86_EFLAGS_CF		0x001
#define X86_EFLAGS_PF		0x004
#define X86_EFLAGS_ZF		0x040
#define X86_EFLAGS_SF		0x080
#define X86_EFLAGS_OF		0x800

#endif /* TEXT_POKE_SHIM_H */
