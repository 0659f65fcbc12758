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
#include <linux/ftrace.h>
#include <linux/memory.h>
#include <linux/uaccess.h>

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
static bool walk_all;
/* The last update did. */
static bool walked_all;

/**
 * ftrace_batch_note - note a record if its call site must change
 * @rec:	the record, after its reference count was updated
 *
 * Context: ftrace_lock held.
 * Return: whether call sites have to be updated.
 */
bool ftrace_batch_note(struct dyn_ftrace *rec)
{
	if (walk_all)
		return true;

	if (ftrace_test_record(rec, true) == FTRACE_UPDATE_IGNORE)
		return false;

	/*
	 * While ftrace is off the sites stay as they are, and the modules whose
	 * records would be noted may go.
	 */
	if (!ftrace_enabled || nr_noted == MAX_NOTED)
		walk_all = true;
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

	if (walk_all)
		return true;

	for (i = 0; i < nr_noted; i++) {
		if (ftrace_test_record(noted[i], true) != FTRACE_UPDATE_IGNORE)
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
		rec = lookup_rec(walk->entry->ip, walk->entry->ip);
		if (rec && rec->ip == walk->entry->ip &&
		    !(walk->done && ftrace_lookup_ip(walk->done, rec->ip)))
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

/* How many sites are handed over in one call, which is traced. */
#define CHUNK_SITES	64

/* What a site holds: a call of @addr, or a NOP if there is none. */
static __always_inline u64 site_code(unsigned long ip, unsigned long addr)
{
	static const union text_poke_code nop = { .insn = { BYTES_NOP5 } };

	if (!addr)
		return nop.word;

	return CALL_INSN_OPCODE | (u64)(u32)(addr - ip - MCOUNT_INSN_SIZE) << 8;
}

/*
 * What ftrace_test_record() would say. It need only be asked about a site that
 * calls and goes on to call: whether it does so in another way.
 */
static __always_inline int rec_change(struct dyn_ftrace *rec, bool enable)
{
	bool use = enable && ftrace_rec_count(rec);

	if (rec->flags & FTRACE_FL_DISABLED)
		return FTRACE_UPDATE_IGNORE;

	if (!(rec->flags & FTRACE_FL_ENABLED))
		return use ? FTRACE_UPDATE_MAKE_CALL : FTRACE_UPDATE_IGNORE;

	return use ? ftrace_test_record(rec, enable) : FTRACE_UPDATE_MAKE_NOP;
}

/* What is at a record's site now, if the record is right. */
static __always_inline u64 site_now(struct dyn_ftrace *rec)
{
	return site_code(rec->ip, rec->flags & FTRACE_FL_ENABLED ? ftrace_get_addr_curr(rec) : 0);
}

/*
 * Compare a site that has to change with what its record says. If ftrace's
 * records are wrong, what they point to may not even be mapped.
 *
 * Return: 0, or an error, that has been reported.
 */
static __always_inline int verify_rec(struct dyn_ftrace *rec, bool enable)
{
	union text_poke_code now = {}, expected;
	int ret = -EINVAL;

	if (rec_change(rec, enable) == FTRACE_UPDATE_IGNORE)
		return 0;

	expected.word = site_now(rec);

	pagefault_disable();
	__get_kernel_nofault(now.insn, (void *)rec->ip, u32, fault);
	__get_kernel_nofault(now.insn + sizeof(u32), (void *)rec->ip + sizeof(u32), u8, fault);
	pagefault_enable();

	if (likely(now.word == expected.word))
		return 0;
	goto bug;

fault:
	pagefault_enable();
	ret = -EFAULT;
bug:
	ftrace_expected = expected.insn;
	ftrace_bug(ret, rec);
	ftrace_expected = NULL;
	return ret;
}

/* What is being changed, in chunks; too large for the stack, under text_mutex. */
static struct text_poke_site chunk[CHUNK_SITES];
static unsigned int nr_chunk;

/* The trampoline of the only ops that is registered, if it is the only one and has one. */
static unsigned long only_trampoline;

static unsigned long find_only_trampoline(void)
{
	struct ftrace_ops *ops = rcu_dereference_protected(ftrace_ops_list,
							   lockdep_is_held(&ftrace_lock));

	if (ops == &ftrace_list_end ||
	    rcu_dereference_protected(ops->next, lockdep_is_held(&ftrace_lock)) != &ftrace_list_end)
		return 0;

	return ops->trampoline;
}

/* What @rec's site shall call. A trampoline is searched among all ops, if there are several. */
static __always_inline unsigned long rec_new_addr(struct dyn_ftrace *rec)
{
	unsigned long how = rec->flags & (FTRACE_FL_TRAMP | FTRACE_FL_DIRECT);

	if (only_trampoline && how == FTRACE_FL_TRAMP)
		return only_trampoline;

	return ftrace_get_addr_new(rec);
}

/*
 * Make the record say that its site calls. What is left out for most of them is
 * what ftrace_update_record() does with flags that they do not have.
 */
static __always_inline void rec_mark_calling(struct dyn_ftrace *rec)
{
	const unsigned long plain = FTRACE_FL_TRAMP | FTRACE_FL_TOUCHED | FTRACE_REF_MAX;

	if (rec->flags & ~plain) {
		ftrace_update_record(rec, true);
		return;
	}

	if (rec->flags & FTRACE_FL_TRAMP)
		rec->flags |= FTRACE_FL_TRAMP_EN;
	rec->flags |= FTRACE_FL_ENABLED | FTRACE_FL_TOUCHED;
}

static __always_inline int queue_rec(struct dyn_ftrace *rec, bool enable)
{
	struct text_poke_site *site = &chunk[nr_chunk];
	int change = rec_change(rec, enable), ret = 0;

	if (change == FTRACE_UPDATE_IGNORE)
		return 0;

	site->addr = (void *)rec->ip;
	site->len = MCOUNT_INSN_SIZE;
	site->verified = true;		/* by verify_rec() */

	if (change == FTRACE_UPDATE_MAKE_NOP) {
		site->new.word = site_code(rec->ip, 0);
		ftrace_update_record(rec, enable);
	} else {
		site->new.word = site_code(rec->ip, rec_new_addr(rec));
		if (change == FTRACE_UPDATE_MAKE_CALL)
			rec_mark_calling(rec);
		else
			ftrace_update_record(rec, enable);
	}

	if (++nr_chunk == CHUNK_SITES) {
		ret = text_poke_queue_sites(chunk, nr_chunk);
		nr_chunk = 0;
	}

	return ret;
}

typedef int change_func(struct dyn_ftrace *rec, bool enable);

/* Call @func for all records that may differ; inlined, so that @func is. */
static __always_inline int visit_changes(change_func *func, bool enable)
{
	struct ftrace_page *pg;
	unsigned int i;
	int n, ret = 0;

	if (!walk_all && enable) {
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
	int ret = visit_changes(verify_rec, enable);

	if (!ret) {
		only_trampoline = find_only_trampoline();
		ret = visit_changes(queue_rec, enable);
		ret = text_poke_queue_sites(chunk, nr_chunk) ?: ret;
		nr_chunk = 0;
		ret = text_poke_finish() ?: ret;
		/* The patcher has said what and where; sites and records do not agree now. */
		if (WARN_ON_ONCE(ret))
			ftrace_kill();
	}

	/* With all sites off, records in use differ from their sites. */
	walked_all = walk_all || !enable;
	walk_all = !enable;
	nr_noted = 0;
}
