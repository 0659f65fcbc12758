// SPDX-License-Identifier: GPL-2.0
/*
 * ftrace's change set: which call sites a registration really changes, found by
 * look-up where the filter names the functions, and handed to the batch patcher.
 *
 * When ftrace is on and no update is under way, every call site is as its record
 * asks. So after reference counts were updated, only the records that were
 * touched can differ, and those that do are noted.
 *
 * Nothing here is traced, as nothing in this directory is, and while the sites
 * are being replaced nothing traced is called for each of them.
 */
#include <linux/bsearch.h>
#include <linux/ftrace.h>
#include <linux/kallsyms.h>
#include <linux/memory.h>
#include <linux/module.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include <asm/nops.h>
#include <asm/text-patching.h>

#include "ftrace_batch.h"
#include "ftrace_internal.h"
#include "trace.h"

/*
 * The noted records. Beyond this many, walking all of them costs little more
 * than what is done for each that changes.
 */
#define MAX_NOTED	2048

static struct dyn_ftrace *noted[MAX_NOTED];
static unsigned int nr_noted;
/* Which records differ is not known: look at all. */
bool ftrace_batch_walk_all;
/* The last update did. */
static bool walked_all;

/*
 * Nearly all records that change are of functions that nobody traced before, or
 * nobody does any more, and that call their ops' trampoline. Records like these
 * are dealt with as a whole, without a look at each flag.
 */
#define PLAIN_TO_CALL	(FTRACE_FL_TRAMP | 1)
#define PLAIN_TO_NOP	(FTRACE_FL_ENABLED | FTRACE_FL_TRAMP_EN)

static __always_inline unsigned long plain_flags(struct dyn_ftrace *rec)
{
	return rec->flags & ~FTRACE_FL_TOUCHED;
}

/* What ftrace_test_record() says. */
static __always_inline int rec_change(struct dyn_ftrace *rec, bool enable)
{
	if (plain_flags(rec) == PLAIN_TO_CALL && enable)
		return FTRACE_UPDATE_MAKE_CALL;
	if (plain_flags(rec) == PLAIN_TO_NOP)
		return FTRACE_UPDATE_MAKE_NOP;

	return ftrace_test_record(rec, enable);
}

/**
 * ftrace_batch_note - note a record if its call site must change
 * @rec:	the record, after its reference count was updated
 *
 * Context: ftrace_lock held.
 * Return: whether call sites have to be updated.
 */
bool ftrace_batch_note(struct dyn_ftrace *rec)
{
	if (ftrace_batch_walk_all)
		return true;

	if (rec_change(rec, true) == FTRACE_UPDATE_IGNORE)
		return false;

	/*
	 * While ftrace is off the sites stay as they are, and the modules whose
	 * records would be noted may go.
	 */
	if (!ftrace_enabled || nr_noted == MAX_NOTED)
		ftrace_batch_walk_all = true;
	else
		noted[nr_noted++] = rec;

	return true;
}

/**
 * ftrace_batch_pending - whether any call site has to change
 *
 * A filter that is changed takes functions out and puts them in again: what
 * comes out as it was is forgotten here.
 *
 * Context: ftrace_lock held.
 */
bool ftrace_batch_pending(void)
{
	unsigned int i, nr = 0;

	if (ftrace_batch_walk_all)
		return true;

	for (i = 0; i < nr_noted; i++) {
		if (rec_change(noted[i], true) != FTRACE_UPDATE_IGNORE)
			noted[nr++] = noted[i];
	}
	nr_noted = nr;

	return nr;
}

/**
 * ftrace_batch_walks - whether the last update had to look at all records
 *
 * Context: ftrace_lock held.
 */
bool ftrace_batch_walks(void)
{
	return walked_all;
}

static __always_inline int cmp_ip(const void *ip, const void *rec)
{
	unsigned long a = *(const unsigned long *)ip, b = ((const struct dyn_ftrace *)rec)->ip;

	return a < b ? -1 : a > b;
}

/* Inlined, for a filter of a thousand functions spends most of its time here. */
static __always_inline struct dyn_ftrace *find_rec(unsigned long ip)
{
	struct ftrace_page *pg;

	for (pg = ftrace_pages_start; pg; pg = pg->next) {
		if (pg->index && ip >= pg->records[0].ip && ip <= pg->records[pg->index - 1].ip)
			return __inline_bsearch(&ip, pg->records, pg->index,
						sizeof(*pg->records), cmp_ip);
	}

	return NULL;
}

/* Add the records at @start or behind it, before @end, to @hash: all are of one page. */
static int add_recs(struct ftrace_hash *hash, unsigned long start, unsigned long end)
{
	struct ftrace_page *pg;
	int low, high, mid;

	for (pg = ftrace_pages_start; pg; pg = pg->next) {
		if (pg->index && start <= pg->records[pg->index - 1].ip && end > pg->records[0].ip)
			break;
	}
	if (!pg)
		return 0;

	for (low = 0, high = pg->index; low < high; ) {
		mid = (low + high) / 2;
		if (pg->records[mid].ip < start)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < pg->index && pg->records[low].ip < end; low++) {
		if (!ftrace_lookup_ip(hash, pg->records[low].ip) &&
		    !add_hash_entry(hash, pg->records[low].ip))
			return -ENOMEM;
	}

	return 0;
}

/* Functions that have one name: in the core kernel, and in modules. */
struct named_recs {
	struct ftrace_hash	*hash;
	const char		*name;
};

static int add_symbol(void *data, unsigned long addr)
{
	struct named_recs *named = data;
	unsigned long size;

	if (!kallsyms_lookup_size_offset(addr, &size, NULL))
		return 0;

	return add_recs(named->hash, addr, addr + size);
}

static int add_module_symbol(void *data, const char *name, unsigned long addr)
{
	struct named_recs *named = data;

	return strcmp(name, named->name) ? 0 : add_symbol(data, addr);
}

/* A module's records are on pages of their own. */
static int add_module(struct ftrace_hash *hash, const char *name)
{
	struct ftrace_page *pg;
	struct module *mod;
	bool found;
	int i;

	for (pg = ftrace_pages_start; pg; pg = pg->next) {
		if (!pg->index)
			continue;

		preempt_disable();
		mod = __module_address(pg->records[0].ip);
		found = mod && !strcmp(mod->name, name);
		preempt_enable();

		for (i = 0; found && i < pg->index; i++) {
			if (!add_hash_entry(hash, pg->records[i].ip))
				return -ENOMEM;
		}
	}

	return 0;
}

/**
 * ftrace_batch_named - find the records that may have a name, by the symbol table
 * @func:	what the function's name has to match, nothing if it is empty
 * @mod:	what the module's name has to match, or NULL
 * @exclude_mod: functions of other modules are asked for
 *
 * Asking the symbol table for the name of each record takes two thousand
 * instructions each; a name is found in it, and in those of the modules, with much
 * less. Whether a record that is found is one that was asked for remains to be
 * seen: two symbols may have one address.
 *
 * Context: ftrace_lock held. May sleep, takes module_mutex.
 * Return: records to look at, to be freed by free_ftrace_hash(); NULL if that is all,
 * as the names are not given in full, or memory is short.
 */
struct ftrace_hash *ftrace_batch_named(const struct ftrace_glob *func,
				       const struct ftrace_glob *mod, bool exclude_mod)
{
	bool in_module = mod && mod->len && mod->type == MATCH_FULL && !exclude_mod;
	struct named_recs named = { .name = func->search };
	int ret;

	if (!in_module && (mod || !func->len || func->type != MATCH_FULL))
		return NULL;

	named.hash = alloc_ftrace_hash(in_module ? 10 : 4);
	if (!named.hash)
		return NULL;

	if (in_module) {
		ret = add_module(named.hash, mod->search);
	} else {
		ret = kallsyms_on_each_match_symbol(add_symbol, func->search, &named);
		if (!ret && IS_ENABLED(CONFIG_MODULES))
			ret = module_kallsyms_on_each_symbol(NULL, add_module_symbol, &named);
	}
	if (ret) {
		free_ftrace_hash(named.hash);
		return NULL;
	}

	return named.hash;
}

/* The record of the entry that the walk is at, or of the first one after it that has one. */
static struct dyn_ftrace *hash_walk_rec(struct ftrace_hash_walk *walk)
{
	struct dyn_ftrace *rec;

	for (;;) {
		while (!walk->entry) {
			if (walk->bucket == 1 << walk->hash->size_bits) {
				if (!walk->next_hash)
					return NULL;
				walk->done = walk->hash;
				walk->hash = walk->next_hash;
				walk->next_hash = NULL;
				walk->bucket = 0;
				continue;
			}
			walk->entry = hlist_entry_safe(walk->hash->buckets[walk->bucket++].first,
						       struct ftrace_func_entry, hlist);
		}

		/* A filter may name functions of a module that is gone. */
		rec = find_rec(walk->entry->ip);
		if (rec && !(walk->done && ftrace_lookup_ip(walk->done, rec->ip)))
			return rec;

		walk->entry = hlist_entry_safe(walk->entry->hlist.next,
					       struct ftrace_func_entry, hlist);
	}
}

/**
 * ftrace_hash_walk_start - begin to walk the records of a filter
 * @walk:	where the walk is
 * @hash:	the functions
 * @other:	more functions, or NULL; each record comes once
 *
 * Context: ftrace_lock held.
 * Return: the first record, or NULL if there is none.
 */
struct dyn_ftrace *ftrace_hash_walk_start(struct ftrace_hash_walk *walk,
					  struct ftrace_hash *hash, struct ftrace_hash *other)
{
	*walk = (struct ftrace_hash_walk){ .hash = hash, .next_hash = other };
	return hash_walk_rec(walk);
}

/**
 * ftrace_hash_walk_next - the next record of a filter
 * @walk:	where the walk is
 *
 * Context: ftrace_lock held.
 * Return: the record, or NULL after the last.
 */
struct dyn_ftrace *ftrace_hash_walk_next(struct ftrace_hash_walk *walk)
{
	walk->entry = hlist_entry_safe(walk->entry->hlist.next, struct ftrace_func_entry, hlist);
	return hash_walk_rec(walk);
}

/*
 * The ops whose functions were counted, or counted out, since call sites were as
 * their records ask. It is nearly always one; if it is, records that nobody or
 * only one ops has use for can only be its.
 */
static unsigned int nr_joined, nr_left;
static unsigned long trampoline_joined, trampoline_left;
/* No site calls anything, whoever asks for it. */
static bool all_off;

static void forget_changes(void)
{
	nr_joined = 0;
	nr_left = 0;
}

/*
 * Ops with the same filter are a group, whose call sites call the trampoline of
 * one of them, the leader. What the trampoline calls depends on how many ops are
 * in the group: the function of the only one, or the list function. So an ops
 * that joins a group, or leaves it, changes no call site.
 *
 * While records change, whatever calls the leader's trampoline belongs to the
 * leader's group and to no ops besides.
 */

/*
 * Of each ops that may be called through another trampoline than it was: when,
 * as a number, and up to which number all tasks have left the trampolines since.
 */
static unsigned int last_unsettled, settled;

static bool ops_unsettled(struct ftrace_ops *ops)
{
	return (int)(ops->unsettled - settled) > 0;
}

/**
 * ftrace_trampoline_func - what an ops' trampoline calls
 * @ops:	the ops
 *
 * A task in a trampoline may have loaded another ops than the one whose function
 * is called by the time it gets there; only the list function does not care.
 *
 * Context: ftrace_lock held.
 */
ftrace_func_t ftrace_trampoline_func(struct ftrace_ops *ops)
{
	if (ops->group_size > 1 || ops_unsettled(ops))
		return ftrace_ops_list_func;

	return ftrace_ops_get_func(ops);
}

static void settle_trampolines(struct work_struct *work)
{
	unsigned int now;
	struct ftrace_ops *op;

	mutex_lock(&ftrace_lock);
	now = last_unsettled;
	mutex_unlock(&ftrace_lock);

	/* As in ftrace_shutdown(), for tasks that RCU does not see and for preempted ones */
	synchronize_rcu_tasks_rude();
	synchronize_rcu_tasks();

	mutex_lock(&ftrace_lock);
	settled = now;
	do_for_each_ftrace_op(op, ftrace_ops_list) {
		if (op->group == op)
			arch_ftrace_update_trampoline(op);
	} while_for_each_ftrace_op(op);
	mutex_unlock(&ftrace_lock);
}

static DECLARE_WORK(settle_work, settle_trampolines);

static void ops_unsettle(struct ftrace_ops *ops)
{
	ops->unsettled = ++last_unsettled;
	queue_work(system_long_wq, &settle_work);
}

/*
 * Those that have their own way of being called do not share. Nor do ops that use
 * another one's filter: several of them change at once.
 */
static bool may_share(struct ftrace_ops *ops)
{
	const unsigned long own_way = FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_IPMODIFY |
				      FTRACE_OPS_FL_DIRECT;

	return ops->flags & FTRACE_OPS_FL_ALLOC_TRAMP && !(ops->flags & own_way) &&
	       ops->func_hash == &ops->local_hash;
}

static bool same_filter(struct ftrace_ops *a, struct ftrace_ops *b)
{
	return ftrace_hash_equal(a->func_hash->filter_hash, b->func_hash->filter_hash) &&
	       ftrace_hash_equal(a->func_hash->notrace_hash, b->func_hash->notrace_hash);
}

/**
 * ftrace_group_join - put an ops into the group of those with its filter
 * @ops:	an ops whose functions are about to be counted
 *
 * Context: ftrace_lock held.
 */
void ftrace_group_join(struct ftrace_ops *ops)
{
	struct ftrace_ops *op;

	if (!ftrace_batch_walk_all && !nr_noted)
		forget_changes();
	nr_joined++;
	trampoline_joined = ops->trampoline;

	ops->group = ops;
	ops->group_size = 1;
	/* With another filter, its sites still call what they did when it left its group. */
	if (ops->flags & FTRACE_OPS_FL_ADDING)
		ops->old_trampoline = ops->trampoline;
	if (!may_share(ops))
		return;

	do_for_each_ftrace_op(op, ftrace_ops_list) {
		if (op == ops || op->group != op || !may_share(op) || !same_filter(op, ops))
			continue;

		ops->group = op;
		ops->group_size = 0;
		op->group_size++;
		arch_ftrace_update_trampoline(op);
		return;
	} while_for_each_ftrace_op(op);
}

/* @ops leads its group no more: another one does, and takes the trampoline over. */
static void group_hand_over(struct ftrace_ops *ops)
{
	struct ftrace_ops *op, *heir = NULL;

	do_for_each_ftrace_op(op, ftrace_ops_list) {
		if (op == ops || op->group != ops)
			continue;

		heir = heir ?: op;
		op->group = heir;
	} while_for_each_ftrace_op(op);

	heir->group_size = ops->group_size - 1;

	/* Both trampolines call the list function from here on. */
	ops_unsettle(ops);
	ops_unsettle(heir);
	arch_ftrace_update_trampoline(heir);
	arch_ftrace_swap_trampolines(ops, heir);
}

/**
 * ftrace_group_leave - take an ops out of its group
 * @ops:	an ops whose functions are about to be counted out
 *
 * Context: ftrace_lock held.
 */
void ftrace_group_leave(struct ftrace_ops *ops)
{
	struct ftrace_ops *leader = ops->group;

	/* It is not registered. */
	if (!leader)
		return;

	if (!ftrace_batch_walk_all && !nr_noted)
		forget_changes();
	nr_left++;
	trampoline_left = leader->trampoline;
	ops->old_trampoline = leader->trampoline;

	if (leader != ops) {
		/*
		 * The ops may stay, with other functions: until the sites of those
		 * have been changed they need the list function.
		 */
		if (--leader->group_size == 1)
			ops_unsettle(leader);
	} else if (ops->group_size > 1) {
		group_hand_over(ops);
	}

	ops->group = NULL;
	ops->group_size = 0;
}

/* How many sites are handed over in one call, which is traced. */
#define CHUNK_SITES	256

/* What a site holds: a call of @addr, or a NOP if there is none. */
static __always_inline u64 site_code(unsigned long ip, unsigned long addr)
{
	static const union text_poke_code nop = { .insn = { BYTES_NOP5 } };

	if (!addr)
		return nop.word;

	return CALL_INSN_OPCODE | (u64)(u32)(addr - ip - MCOUNT_INSN_SIZE) << 8;
}

/* What is at a record's site now, if the record is right. */
static __always_inline u64 site_now(struct dyn_ftrace *rec)
{
	if (!(rec->flags & FTRACE_FL_ENABLED))
		return site_code(rec->ip, 0);

	if (plain_flags(rec) == PLAIN_TO_NOP && trampoline_left)
		return site_code(rec->ip, trampoline_left);

	return site_code(rec->ip, ftrace_get_addr_curr(rec));
}

/* What is to be there. The record is changed with it. */
static __always_inline u64 site_then(struct dyn_ftrace *rec, bool enable, int change)
{
	unsigned long addr = 0;

	if (plain_flags(rec) == PLAIN_TO_NOP) {
		rec->flags &= FTRACE_FL_TOUCHED;
		return site_code(rec->ip, 0);
	}

	if (plain_flags(rec) == PLAIN_TO_CALL && trampoline_joined && enable) {
		rec->flags |= FTRACE_FL_ENABLED | FTRACE_FL_TRAMP_EN | FTRACE_FL_TOUCHED;
		return site_code(rec->ip, trampoline_joined);
	}

	if (change != FTRACE_UPDATE_MAKE_NOP)
		addr = ftrace_get_addr_new(rec);
	ftrace_update_record(rec, enable);
	return site_code(rec->ip, addr);
}

/*
 * Compare a site that has to change with what its record says. If ftrace's
 * records are wrong, what they point to may not even be mapped.
 *
 * Context: page faults disabled.
 * Return: 0, or an error, that has been reported.
 */
static __always_inline int verify_rec(struct dyn_ftrace *rec, bool enable)
{
	const u64 mask = GENMASK_ULL(8 * MCOUNT_INSN_SIZE - 1, 0);
	union text_poke_code now = {}, expected;
	int ret = -EINVAL;

	if (rec_change(rec, enable) == FTRACE_UPDATE_IGNORE)
		return 0;

	expected.word = site_now(rec);

	if (likely(offset_in_page(rec->ip) <= PAGE_SIZE - sizeof(now))) {
		__get_kernel_nofault(&now.word, (void *)rec->ip, u64, fault);
	} else {
		__get_kernel_nofault(now.insn, (void *)rec->ip, u32, fault);
		__get_kernel_nofault(now.insn + sizeof(u32), (void *)rec->ip + sizeof(u32),
				     u8, fault);
	}
	if (likely(!((now.word ^ expected.word) & mask)))
		return 0;
	goto bug;

fault:
	ret = -EFAULT;
bug:
	pagefault_enable();
	ftrace_test_record(rec, enable);	/* notes what was to be done */
	ftrace_expected = expected.insn;
	ftrace_bug(ret, rec);
	ftrace_expected = NULL;
	pagefault_disable();
	return ret;
}

/* What is being changed, in chunks; too large for the stack, under text_mutex. */
static struct text_poke_site chunk[CHUNK_SITES];
static unsigned int nr_chunk;

static __always_inline int queue_rec(struct dyn_ftrace *rec, bool enable)
{
	struct text_poke_site *site = &chunk[nr_chunk];
	int change = rec_change(rec, enable), ret = 0;

	if (change == FTRACE_UPDATE_IGNORE)
		return 0;

	site->addr = (void *)rec->ip;
	site->len = MCOUNT_INSN_SIZE;
	site->verified = true;		/* by verify_rec() */
	site->new.word = site_then(rec, enable, change);

	if (++nr_chunk == CHUNK_SITES) {
		ret = text_poke_queue_sites(chunk, nr_chunk);
		nr_chunk = 0;
	}

	return ret;
}

/*
 * A filter names its functions in no order, and the patcher likes them in theirs.
 * A Shell sort with Ciura's gaps: sort() takes five times as long for a thousand,
 * which is more than all else that is done for them.
 */
static void sort_noted(void)
{
	static const u16 gaps[] = { 701, 301, 132, 57, 23, 10, 4, 1 };
	unsigned int g, i, j;

	for (g = 0; g < ARRAY_SIZE(gaps); g++) {
		for (i = gaps[g]; i < nr_noted; i++) {
			struct dyn_ftrace *rec = noted[i];
			unsigned long ip = rec->ip;

			for (j = i; j >= gaps[g] && noted[j - gaps[g]]->ip > ip; j -= gaps[g])
				noted[j] = noted[j - gaps[g]];
			noted[j] = rec;
		}
	}
}

typedef int change_func(struct dyn_ftrace *rec, bool enable);

/* Call @func for all records that may differ; inlined, so that @func is. */
static __always_inline int visit_changes(change_func *func, bool enable)
{
	struct ftrace_page *pg;
	unsigned int i;
	int n, ret = 0;

	if (!ftrace_batch_walk_all && enable) {
		for (i = 0; i < nr_noted && !ret; i++)
			ret = func(noted[i], enable);
		return ret;
	}

	for (pg = ftrace_pages_start; pg && !ret; pg = pg->next) {
		for (n = 0; n < pg->index && !ret; n++)
			ret = func(&pg->records[n], enable);
	}

	return ret;
}

/**
 * ftrace_replace_code - change the call sites whose records have changed
 * @enable:	the sites in use shall call; 0: none shall
 *
 * All sites are verified before the first is written: if one is not what its
 * record says, that is reported by ftrace_bug() and none is changed.
 *
 * Context: ftrace_lock and text_mutex held.
 */
void ftrace_replace_code(int enable)
{
	int ret;

	if (nr_joined != 1 || all_off)
		trampoline_joined = 0;
	if (nr_left != 1)
		trampoline_left = 0;

	if (!ftrace_batch_walk_all)
		sort_noted();

	pagefault_disable();
	ret = visit_changes(verify_rec, enable);
	pagefault_enable();

	if (!ret) {
		ret = visit_changes(queue_rec, enable);
		ret = text_poke_queue_sites(chunk, nr_chunk) ?: ret;
		nr_chunk = 0;
		ret = text_poke_finish() ?: ret;
		/* The patcher has said what and where; sites and records do not agree now. */
		if (WARN_ON_ONCE(ret))
			ftrace_kill();
	}

	/* With all sites off, records in use differ from their sites. */
	walked_all = ftrace_batch_walk_all || !enable;
	ftrace_batch_walk_all = !enable;
	all_off = !enable;
	nr_noted = 0;
	forget_changes();
}
