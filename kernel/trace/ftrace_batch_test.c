// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit test of what ftrace's change set leaves behind.
 *
 * Many ops are registered, unregistered and given other filters in random order,
 * also some that need registers, that change the instruction pointer or that
 * are called directly, and modules come and go. After each step every record and
 * the bytes of every call site are compared with a model, which knows nothing but
 * which ops trace which functions now, and calls of some functions are counted
 * by the ops that trace them.
 *
 * The order is that of parameter seed; what failed is replayed with it. As a
 * module's code cannot be loaded from here, parameter helper names a program
 * that is called with "load" and "unload"; without it these steps are left out.
 */
#include <linux/bitmap.h>
#include <linux/bsearch.h>
#include <linux/ftrace.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/umh.h>
#include <kunit/test.h>

#include <asm/nops.h>
#include <asm/text-patching.h>

#include "ftrace_batch.h"
#include "ftrace_batch_test.h"
#include "ftrace_internal.h"

static unsigned int seed;
module_param(seed, uint, 0644);
MODULE_PARM_DESC(seed, "Order of steps to replay; 0, the default, takes a new one");

static unsigned int steps = 150;
module_param(steps, uint, 0644);
MODULE_PARM_DESC(steps, "Number of steps");

static char helper[128];
module_param_string(helper, helper, sizeof(helper), 0644);
MODULE_PARM_DESC(helper, "Program that loads and unloads a module");

/*
 * Functions that a filter may name. The first ones are called by the test. The
 * others are spread over the kernel.
 */
#define NR_TARGETS	8
#define NR_POOL		768
/* Only targets from here on are called directly. */
#define FIRST_DIRECT	4

/* An ops, and what the model knows of it */
struct test_ops {
	unsigned long	flags;
	bool		direct;
	bool		dynamic;	/* allocated while it is registered */
	struct ftrace_ops *ops;
	bool		registered;
	/* Which functions of the pool it names; if none, it traces all functions. */
	DECLARE_BITMAP(filter, NR_POOL);
	DECLARE_BITMAP(excluded, NR_POOL);
};

#define REGS		FTRACE_OPS_FL_SAVE_REGS
#define IPMODIFY	(FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_IPMODIFY)

static struct test_ops all_ops[] = {
	{ }, { }, { }, { },
	{ .flags = FTRACE_OPS_FL_RECURSION },
	{ .flags = FTRACE_OPS_FL_RECURSION },
	{ .dynamic = true },
	{ .dynamic = true, .flags = FTRACE_OPS_FL_RECURSION },
	{ .flags = REGS },
	{ .flags = REGS | FTRACE_OPS_FL_RECURSION },
	{ .flags = IPMODIFY },
	{ .flags = IPMODIFY, .dynamic = true },
	{ .flags = REGS, .direct = true },
	{ .flags = REGS, .direct = true },
};

#define NR_OPS	ARRAY_SIZE(all_ops)

/* These stay, and so do their trampolines: ftrace does not wait before they go. */
static struct ftrace_ops static_ops[NR_OPS];

static unsigned long pool[NR_POOL];
/* The same but sorted, and where each is in the pool */
static struct pool_entry {
	unsigned long	ip;
	int		nr;
} by_ip[NR_POOL];
/* How many calls of each target each ops has seen */
static unsigned int seen[NR_OPS][NR_TARGETS];
static struct task_struct *tester;
static struct rnd_state rnd;

static u32 below(u32 n)
{
	return prandom_u32_state(&rnd) % n;
}

/* Different from each other, so that the compiler does not make one of them all */
#define TARGET(n)	\
static noinline void ftrace_batch_target_##n(void)	\
{							\
	asm volatile("# " #n);				\
}

TARGET(0)
TARGET(1)
TARGET(2)
TARGET(3)
TARGET(4)
TARGET(5)
TARGET(6)
TARGET(7)

#define ENTRY(n)	{ ftrace_batch_target_##n, "ftrace_batch_target_" #n }
static const struct {
	void		(*call)(void);
	const char	*name;
} targets[NR_TARGETS] = {
	ENTRY(0), ENTRY(1), ENTRY(2), ENTRY(3), ENTRY(4), ENTRY(5), ENTRY(6), ENTRY(7),
};

unsigned long ftrace_batch_test_direct_calls;

asm("	.pushsection	.text, \"ax\", @progbits\n"
"	.type		ftrace_batch_test_direct_1, @function\n"
"	.globl		ftrace_batch_test_direct_1\n"
"ftrace_batch_test_direct_1:\n"
	ASM_ENDBR
"	lock incq	ftrace_batch_test_direct_calls(%rip)\n"
	ASM_RET
"	.size		ftrace_batch_test_direct_1, .-ftrace_batch_test_direct_1\n"
"	.type		ftrace_batch_test_direct_2, @function\n"
"	.globl		ftrace_batch_test_direct_2\n"
"ftrace_batch_test_direct_2:\n"
	ASM_ENDBR
"	lock incq	ftrace_batch_test_direct_calls(%rip)\n"
	ASM_RET
"	.size		ftrace_batch_test_direct_2, .-ftrace_batch_test_direct_2\n"
"	.popsection\n"
);

static unsigned long direct_tramps[] = {
	(unsigned long)ftrace_batch_test_direct_1,
	(unsigned long)ftrace_batch_test_direct_2,
};

static notrace void count_call(unsigned long ip, unsigned long parent_ip,
			       struct ftrace_ops *op, struct ftrace_regs *fregs)
{
	long nr = (long)op->private;
	unsigned int i;

	if (current != tester || !in_task())
		return;

	for (i = 0; i < NR_TARGETS; i++) {
		if (pool[i] == ip)
			seen[nr][i]++;
	}
}

static int cmp_entry(const void *a, const void *b)
{
	unsigned long x = ((const struct pool_entry *)a)->ip;
	unsigned long y = ((const struct pool_entry *)b)->ip;

	return x < y ? -1 : x > y;
}

/* Where a function is in the pool, or -1 */
static int pool_nr(unsigned long ip)
{
	struct pool_entry key = { .ip = ip }, *entry;

	entry = bsearch(&key, by_ip, NR_POOL, sizeof(key), cmp_entry);
	return entry ? entry->nr : -1;
}

/* The model: what an ops traces, and what follows for a record */

static bool traces(const struct test_ops *t, int nr)
{
	if (!t->registered)
		return false;
	if (nr < 0)
		return bitmap_empty(t->filter, NR_POOL);

	return (bitmap_empty(t->filter, NR_POOL) || test_bit(nr, t->filter)) &&
	       !test_bit(nr, t->excluded);
}

static bool share_trampoline(const struct test_ops *a, const struct test_ops *b)
{
	return a == b || (!((a->flags | b->flags) & IPMODIFY) &&
			  bitmap_equal(a->filter, b->filter, NR_POOL) &&
			  bitmap_equal(a->excluded, b->excluded, NR_POOL));
}

struct expected {
	unsigned long	flags;		/* and reference count */
	unsigned long	calls;
};

#define DO_NOT_CARE	(FTRACE_FL_TOUCHED | FTRACE_FL_MODIFIED)

static struct expected expect(int nr)
{
	const struct test_ops *t, *first = NULL;
	struct ftrace_ops *leader = NULL;
	struct expected want = {};
	bool shared = true, direct = false;
	unsigned int count = 0;

	for (t = all_ops; t < all_ops + NR_OPS; t++) {
		if (!traces(t, nr))
			continue;

		count++;
		first = first ?: t;
		shared &= share_trampoline(first, t);
		direct |= t->direct;
		if (t->flags & FTRACE_OPS_FL_SAVE_REGS)
			want.flags |= FTRACE_FL_REGS | FTRACE_FL_REGS_EN;
		if (t->flags & FTRACE_OPS_FL_IPMODIFY)
			want.flags |= FTRACE_FL_IPMODIFY;
		if (t->ops->group == t->ops)
			leader = t->ops;
	}
	if (!count)
		return want;

	want.flags |= FTRACE_FL_ENABLED | count;
	want.calls = want.flags & FTRACE_FL_REGS ? FTRACE_REGS_ADDR : FTRACE_ADDR;
	if (shared) {
		want.flags |= FTRACE_FL_TRAMP | FTRACE_FL_TRAMP_EN;
		want.calls = leader ? leader->trampoline : 0;
	}
	if (direct) {
		want.flags |= FTRACE_FL_DIRECT;
		if (count == 1) {
			want.flags |= FTRACE_FL_DIRECT_EN;
			want.calls = first->ops->direct_call;
		}
	}

	return want;
}

static void encode_site(u8 *insn, unsigned long ip, unsigned long calls)
{
	static const u8 nop[MCOUNT_INSN_SIZE] = { BYTES_NOP5 };
	s32 offset = calls - (ip + MCOUNT_INSN_SIZE);

	memcpy(insn, nop, MCOUNT_INSN_SIZE);
	if (calls) {
		insn[0] = CALL_INSN_OPCODE;
		memcpy(insn + 1, &offset, sizeof(offset));
	}
}

/* Compare all records and their sites with the model. */
static bool records_right(struct kunit *test)
{
	const struct expected others = expect(-1);
	struct ftrace_rec_iter *iter;
	struct dyn_ftrace *rec;
	struct expected want;
	u8 site[MCOUNT_INSN_SIZE];
	bool right = true;
	int nr;

	mutex_lock(&ftrace_lock);
	for_ftrace_rec_iter(iter) {
		rec = ftrace_rec_iter_record(iter);
		if (rec->flags & FTRACE_FL_DISABLED)
			continue;

		nr = pool_nr(rec->ip);
		want = nr < 0 ? others : expect(nr);
		encode_site(site, rec->ip, want.calls);
		right = (rec->flags & ~DO_NOT_CARE) == want.flags &&
			!memcmp(site, (void *)rec->ip, sizeof(site));
		if (!right)
			break;
	}
	mutex_unlock(&ftrace_lock);

	if (!right)
		KUNIT_FAIL(test, "%pS: flags %lx, should be %lx; site holds %*ph, should be %*ph",
			   (void *)rec->ip, rec->flags & ~DO_NOT_CARE, want.flags,
			   MCOUNT_INSN_SIZE, (void *)rec->ip, MCOUNT_INSN_SIZE, site);
	return right;
}

/* Call the targets and compare who has been called. */
static bool calls_right(struct kunit *test)
{
	unsigned int i, k, want, want_direct = 0;

	memset(seen, 0, sizeof(seen));
	ftrace_batch_test_direct_calls = 0;
	barrier();
	for (i = 0; i < NR_TARGETS; i++)
		targets[i].call();
	barrier();

	for (k = 0; k < NR_OPS; k++) {
		for (i = 0; i < NR_TARGETS; i++) {
			want = traces(&all_ops[k], i);
			if (all_ops[k].direct) {
				want_direct += want;
			} else if (seen[k][i] != want) {
				KUNIT_FAIL(test, "ops %u has seen %u calls of %s, should be %u",
					   k, seen[k][i], targets[i].name, want);
				return false;
			}
		}
	}
	if (ftrace_batch_test_direct_calls != want_direct) {
		KUNIT_FAIL(test, "%lu direct calls, should be %u",
			   ftrace_batch_test_direct_calls, want_direct);
		return false;
	}

	return true;
}

/* Whether one that is registered, of some kind, names a function that is in @filter. */
static bool named_by(const struct test_ops *but, const unsigned long *filter, bool direct)
{
	const struct test_ops *t;

	for (t = all_ops; t < all_ops + NR_OPS; t++) {
		if (t == but || !t->registered)
			continue;
		if (direct ? !t->direct : !(t->flags & FTRACE_OPS_FL_IPMODIFY))
			continue;
		if (bitmap_intersects(t->filter, filter, NR_POOL))
			return true;
	}

	return false;
}

/* What ftrace should say to an ops with a filter, when it is registered or while it is */
static int expected_error(const struct test_ops *t, const unsigned long *filter)
{
	bool ipmodify = t->flags & FTRACE_OPS_FL_IPMODIFY;

	if (!ipmodify && !t->direct)
		return 0;
	if (bitmap_empty(filter, NR_POOL))
		return -EINVAL;
	if (named_by(t, filter, false))
		return -EBUSY;

	return named_by(t, filter, true) ? -EBUSY : 0;
}

/* The steps. Each returns what ftrace said, and *@want is what it should have said. */

static void choose_filter(const struct test_ops *t, unsigned long *filter)
{
	unsigned int i;

	bitmap_zero(filter, NR_POOL);
	switch (t->direct ? 0 : below(8)) {
	case 0:
		for (i = t->direct ? FIRST_DIRECT : 0; i < NR_TARGETS; i++) {
			if (!below(3))
				__set_bit(i, filter);
		}
		break;
	case 1:
		__set_bit(below(NR_TARGETS), filter);
		break;
	case 2:
		for (i = below(200); i; i--)
			__set_bit(below(NR_POOL), filter);
		break;
	case 3:
		break;
	default:
		bitmap_copy(filter, all_ops[below(NR_OPS)].filter, NR_POOL);
		break;
	}

	/* ftrace looks at direct calls only when an ops that changes the IP is registered. */
	if (t->registered && t->flags & FTRACE_OPS_FL_IPMODIFY)
		bitmap_clear(filter, FIRST_DIRECT, NR_TARGETS - FIRST_DIRECT);
}

static int set_filter(struct test_ops *t, const unsigned long *filter)
{
	static unsigned long ips[NR_POOL];
	unsigned int i, nr = 0;

	for_each_set_bit(i, filter, NR_POOL)
		ips[nr++] = pool[i];
	if (!nr)
		return ftrace_set_filter(t->ops, NULL, 0, 1);

	return ftrace_set_filter_ips(t->ops, ips, nr, 0, 1);
}

static int step_filter(struct test_ops *t, int *want)
{
	DECLARE_BITMAP(filter, NR_POOL);
	int ret;

	choose_filter(t, filter);
	*want = t->registered ? expected_error(t, filter) : 0;
	ret = set_filter(t, filter);
	if (!ret)
		bitmap_copy(t->filter, filter, NR_POOL);
	return ret;
}

/* One function more, or less */
static int step_filter_one(struct test_ops *t, int *want)
{
	unsigned int nr = below(4) ? below(FIRST_DIRECT) : NR_TARGETS + below(NR_POOL - NR_TARGETS);
	bool remove = below(2);
	DECLARE_BITMAP(filter, NR_POOL);
	int ret;

	bitmap_copy(filter, t->filter, NR_POOL);
	__assign_bit(nr, filter, !remove);
	if (remove && !test_bit(nr, t->filter))
		*want = -ENOENT;
	else
		*want = t->registered ? expected_error(t, filter) : 0;
	ret = ftrace_set_filter_ip(t->ops, pool[nr], remove, 0);
	if (!ret)
		bitmap_copy(t->filter, filter, NR_POOL);
	return ret;
}

static int step_notrace(struct test_ops *t, int *want)
{
	unsigned int nr = below(NR_TARGETS);
	const char *name = targets[nr].name;
	int ret;

	*want = 0;
	if (!below(3)) {
		ret = ftrace_set_notrace(t->ops, NULL, 0, 1);
		if (!ret)
			bitmap_zero(t->excluded, NR_POOL);
	} else {
		ret = ftrace_set_notrace(t->ops, (unsigned char *)name, strlen(name), 0);
		if (!ret)
			__set_bit(nr, t->excluded);
	}

	return ret;
}

static int step_register(struct test_ops *t, int *want)
{
	unsigned long addr = direct_tramps[below(ARRAY_SIZE(direct_tramps))];
	int ret;

	*want = expected_error(t, t->filter);
	ret = t->direct ? register_ftrace_direct(t->ops, addr) : register_ftrace_function(t->ops);
	t->registered = !ret;
	return ret;
}

static int step_unregister(struct test_ops *t, int *want)
{
	int ret;

	*want = 0;
	if (t->direct)
		ret = unregister_ftrace_direct(t->ops, t->ops->direct_call, false);
	else
		ret = unregister_ftrace_function(t->ops);
	t->registered = false;
	return ret;
}

static int step_redirect(struct test_ops *t, int *want)
{
	*want = 0;
	return modify_ftrace_direct(t->ops, direct_tramps[below(ARRAY_SIZE(direct_tramps))]);
}

static bool have_ops(struct test_ops *t)
{
	if (t->ops)
		return true;

	t->ops = t->dynamic ? kzalloc(sizeof(*t->ops), GFP_KERNEL) : &static_ops[t - all_ops];
	if (!t->ops)
		return false;

	if (!t->direct) {
		t->ops->func = count_call;
		t->ops->flags = t->flags;
		t->ops->private = (void *)(t - all_ops);
	}
	/* One that changes the IP must have had a filter before it is registered. */
	return !ftrace_set_filter(t->ops, NULL, 0, 1);
}

/* ftrace_free_filter() leaves pointers to what it frees, thus only before the ops goes. */
static void forget_ops(struct test_ops *t)
{
	bitmap_zero(t->filter, NR_POOL);
	bitmap_zero(t->excluded, NR_POOL);
	if (!t->dynamic) {
		ftrace_set_filter(t->ops, NULL, 0, 1);
		ftrace_set_notrace(t->ops, NULL, 0, 1);
		return;
	}
	ftrace_free_filter(t->ops);
	kfree(t->ops);
	t->ops = NULL;
}

static int step_module(int *want)
{
	static bool loaded;
	char *argv[3] = { helper, loaded ? "unload" : "load", NULL };
	char *envp[2] = { "PATH=/sbin:/usr/sbin:/bin:/usr/bin", NULL };

	loaded = !loaded;
	*want = 0;
	return call_usermodehelper(helper, argv, envp, UMH_WAIT_PROC);
}

static int take_step(struct kunit *test, int *want, const char **what)
{
	struct test_ops *t = &all_ops[below(NR_OPS)];
	unsigned int dice = below(100);
	int ret;

	if (dice < 4 && *helper) {
		*what = "module";
		return step_module(want);
	}

	if (!have_ops(t)) {
		*want = -ENOMEM;
		return -ENOMEM;
	}

	if (t->registered) {
		if (t->direct && dice < 50) {
			*what = "redirect";
			return step_redirect(t, want);
		}
		if (dice < 40) {
			*what = "unregister";
			ret = step_unregister(t, want);
			if (t->dynamic || dice < 10)
				forget_ops(t);
			return ret;
		}
	} else if (dice < 60) {
		*what = "register";
		return step_register(t, want);
	}

	/* A direct ops keeps its filter while it is registered. */
	if (t->direct && t->registered) {
		*want = 0;
		return 0;
	}
	if (dice < 70) {
		*what = "filter one";
		return t->direct ? step_filter(t, want) : step_filter_one(t, want);
	}
	if (dice < 76 && !(t->flags & FTRACE_OPS_FL_IPMODIFY) && !t->direct) {
		*what = "notrace";
		return step_notrace(t, want);
	}
	*what = "filter";
	return step_filter(t, want);
}

static void drop_all(void *unused)
{
	struct test_ops *t;
	int want;

	for (t = all_ops; t < all_ops + NR_OPS; t++) {
		if (t->registered)
			step_unregister(t, &want);
		if (t->ops)
			forget_ops(t);
	}
}

/* Take functions from all over the kernel; not from modules, which may go. */
static void fill_pool(struct kunit *test)
{
	unsigned int i, nr = NR_TARGETS, every, at = 0;
	struct ftrace_rec_iter *iter;
	bool in_use = false;

	for (i = 0; i < NR_TARGETS; i++) {
		pool[i] = ftrace_location((unsigned long)targets[i].call);
		KUNIT_ASSERT_NE(test, pool[i], 0);
	}

	mutex_lock(&ftrace_lock);
	every = ftrace_pages_start->index / NR_POOL;
	for_ftrace_rec_iter(iter) {
		struct dyn_ftrace *rec = ftrace_rec_iter_record(iter);

		in_use |= rec->flags & FTRACE_FL_ENABLED;
		for (i = 0; i < NR_TARGETS && pool[i] != rec->ip; i++)
			;
		if (i == NR_TARGETS && nr < NR_POOL && !(rec->flags & FTRACE_FL_DISABLED) &&
		    core_kernel_text(rec->ip) && ++at % every == 0)
			pool[nr++] = rec->ip;
	}
	mutex_unlock(&ftrace_lock);

	if (in_use)
		kunit_skip(test, "something traces functions already");
	KUNIT_ASSERT_EQ(test, nr, NR_POOL);

	for (i = 0; i < NR_POOL; i++)
		by_ip[i] = (struct pool_entry){ .ip = pool[i], .nr = i };
	sort(by_ip, NR_POOL, sizeof(by_ip[0]), cmp_entry, NULL);
}

/* Who waits for a test is called hung after 120 seconds, and KUnit gives up after 300. */
#define MAX_SECONDS	100

static void test_model(struct kunit *test)
{
	unsigned int used = seed ?: get_random_u32(), step;
	unsigned long end = jiffies + MAX_SECONDS * HZ;
	const char *what = "start";
	int ret = 0, want = 0;

	fill_pool(test);
	tester = current;
	prandom_seed_state(&rnd, used);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, drop_all, NULL), 0);

	for (step = 0; step < steps && time_before(jiffies, end); step++) {
		ret = take_step(test, &want, &what);
		if (ret != want) {
			KUNIT_FAIL(test, "returned %d, should be %d", ret, want);
			break;
		}
		if (!records_right(test) || !calls_right(test))
			break;
		cond_resched_tasks_rcu_qs();
	}
	if (step < steps && time_before(jiffies, end))
		kunit_err(test, "that was after %s, step %u of seed %u", what, step, used);
	else
		kunit_info(test, "%u steps of seed %u", step, used);

	drop_all(NULL);
	records_right(test);
}

static struct kunit_case ftrace_batch_cases[] = {
	KUNIT_CASE_SLOW(test_model),
	{}
};

static struct kunit_suite ftrace_batch_suite = {
	.name = "ftrace_batch",
	.test_cases = ftrace_batch_cases,
};

kunit_test_suite(ftrace_batch_suite);

MODULE_DESCRIPTION("KUnit test of ftrace's change set");
MODULE_LICENSE("GPL");
