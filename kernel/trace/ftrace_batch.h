/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which records ftrace has to look at, and which of their call sites change.
 * Without CONFIG_X86_TEXT_PATCH that is all of them, every time.
 *
 * All of this is under ftrace_lock.
 */
#ifndef _KERNEL_TRACE_FTRACE_BATCH_H
#define _KERNEL_TRACE_FTRACE_BATCH_H

#include "trace.h"

/* Records, sorted by address; the core kernel's come first. */
struct ftrace_page {
	struct ftrace_page	*next;
	struct dyn_ftrace	*records;
	int			index;
	int			order;
};

extern struct ftrace_page *ftrace_pages_start;

/* Type for quick search ftrace basic regexes (globs) from filter_parse_regex */
struct ftrace_glob {
	char *search;
	unsigned int len;
	int type;
};

/* Defined by the linker, see arch_ftrace_ops_list_func(). */
void ftrace_ops_list_func(unsigned long ip, unsigned long parent_ip,
			  struct ftrace_ops *op, struct ftrace_regs *fregs);

#ifdef CONFIG_X86_TEXT_PATCH

#include <asm/text-patching.h>

extern bool ftrace_batch_walk_all;

bool ftrace_batch_note(struct dyn_ftrace *rec);
bool ftrace_batch_pending(void);
bool ftrace_batch_walks(void);

/* Whether ftrace_batch_count() may count @ops' functions. */
static inline bool ftrace_batch_counts(struct ftrace_ops *ops, bool inc)
{
	return ftrace_hash_empty(ops->func_hash->notrace_hash) &&
	       (!inc || (ops->trampoline && ops->group_size == 1 &&
			 !(ops->flags & (FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_DIRECT))));
}

/*
 * Count a function of an ops, or count it out, if nobody else traces it and
 * nothing about it is special: this is how it is with most, and it takes a tenth
 * of the time.
 */
static __always_inline bool ftrace_batch_count(struct dyn_ftrace *rec, bool inc)
{
	const unsigned long calling = FTRACE_FL_ENABLED | FTRACE_FL_TRAMP_EN;
	const unsigned long used = FTRACE_FL_TRAMP | 1;

	if ((rec->flags & ~FTRACE_FL_TOUCHED) != (inc ? 0 : calling | used))
		return false;

	rec->flags ^= used;
	if (!ftrace_batch_walk_all)
		ftrace_batch_note(rec);
	return true;
}

void ftrace_group_join(struct ftrace_ops *ops);
void ftrace_group_leave(struct ftrace_ops *ops);

/* Whether it is @ops' own trampoline that the group's call sites call. */
static inline bool ftrace_ops_leads(struct ftrace_ops *ops)
{
	return ops->group == ops;
}

/* Of a function that has been found in @cnt ops: whether these are a whole group. */
static inline bool ftrace_only_group(struct ftrace_ops *ops, struct ftrace_ops *first, int cnt)
{
	return ops->group == first->group && ops->group->group_size == cnt;
}

/* Whether no ops but those of @ops' group trace @rec, which is traced by @ops. */
static inline bool ftrace_rec_only_group(struct dyn_ftrace *rec, struct ftrace_ops *ops)
{
	return ops->group && ops->group->group_size == ftrace_rec_count(rec);
}

/* What the sites call that are traced by @ops' group only. */
static inline unsigned long ftrace_group_trampoline(struct ftrace_ops *ops)
{
	return ops->group->trampoline;
}

/* The same, before an update of call sites that is under way. */
static inline unsigned long ftrace_old_trampoline(struct ftrace_ops *ops)
{
	if (ops->flags & (FTRACE_OPS_FL_REMOVING | FTRACE_OPS_FL_MODIFYING))
		return ops->old_trampoline;

	return ftrace_group_trampoline(ops);
}

struct ftrace_hash *alloc_ftrace_hash(int size_bits);
void free_ftrace_hash(struct ftrace_hash *hash);
struct ftrace_func_entry *add_hash_entry(struct ftrace_hash *hash, unsigned long ip);
bool ftrace_hash_equal(struct ftrace_hash *a, struct ftrace_hash *b);

/*
 * Whether ftrace_caller may be switched without passing by the list function,
 * and together with the call sites: either the first ops comes, and no call site
 * calls anything yet, or the last one goes, and who still comes here is in time
 * for the ops that is leaving.
 */
static inline bool ftrace_caller_idle(ftrace_func_t now)
{
	return !now || now == ftrace_stub || ftrace_trace_function == ftrace_stub;
}

/* ftrace_update_ftrace_func() only queues; whoever relies on it calls this. */
static inline void ftrace_batch_flush(void)
{
	text_poke_finish();
}

/* Where a walk is in the entries of one or two hashes. */
struct ftrace_hash_walk {
	struct ftrace_hash	*hash;
	struct ftrace_hash	*next_hash;
	struct ftrace_hash	*done;
	struct ftrace_func_entry *entry;
	int			bucket;
};

struct dyn_ftrace *ftrace_hash_walk_start(struct ftrace_hash_walk *walk,
					  struct ftrace_hash *hash, struct ftrace_hash *other);
struct dyn_ftrace *ftrace_hash_walk_next(struct ftrace_hash_walk *walk);

struct ftrace_hash *ftrace_batch_named(const struct ftrace_glob *func,
				       const struct ftrace_glob *mod, bool exclude_mod);

/*
 * The records of the functions in @hash, and of those in @other that are not
 * in @hash; all records if @hash is NULL. Ends with while_for_each_ftrace_rec(),
 * so it is two loops: over pages of records, and over the records of each; what
 * is found by look-up is as if it were all on one page.
 */
#define do_for_each_hash_rec(pg, rec, hash, other)				\
	for (pg = ftrace_pages_start; pg; pg = (hash) ? NULL : pg->next) {	\
		struct ftrace_hash_walk _____walk;				\
		int _____i = 0;							\
										\
		for (rec = (hash) ? ftrace_hash_walk_start(&_____walk, hash, other) : \
				    ftrace_page_rec(pg, 0);			\
		     rec;							\
		     rec = (hash) ? ftrace_hash_walk_next(&_____walk) :		\
				    ftrace_page_rec(pg, ++_____i)) {
/* Two braces are left open. */

static inline struct dyn_ftrace *ftrace_page_rec(const struct ftrace_page *pg, int i)
{
	return i < pg->index ? &pg->records[i] : NULL;
}

#else

#define do_for_each_hash_rec(pg, rec, hash, other) do_for_each_ftrace_rec(pg, rec)

static inline bool ftrace_batch_counts(struct ftrace_ops *ops, bool inc) { return false; }
static inline bool ftrace_batch_count(struct dyn_ftrace *rec, bool inc)	{ return false; }

static inline struct ftrace_hash *ftrace_batch_named(const struct ftrace_glob *func,
						     const struct ftrace_glob *mod,
						     bool exclude_mod)
{
	return NULL;
}

static inline bool ftrace_batch_note(struct dyn_ftrace *rec)
{
	return ftrace_test_record(rec, true) != FTRACE_UPDATE_IGNORE;
}

static inline void ftrace_group_join(struct ftrace_ops *ops)	{ }
static inline void ftrace_group_leave(struct ftrace_ops *ops)	{ }
static inline bool ftrace_ops_leads(struct ftrace_ops *ops)	{ return true; }

static inline bool ftrace_only_group(struct ftrace_ops *ops, struct ftrace_ops *first, int cnt)
{
	return cnt == 1;
}

static inline bool ftrace_rec_only_group(struct dyn_ftrace *rec, struct ftrace_ops *ops)
{
	return ftrace_rec_count(rec) == 1;
}

static inline unsigned long ftrace_group_trampoline(struct ftrace_ops *ops)
{
	return ops->trampoline;
}

static inline unsigned long ftrace_old_trampoline(struct ftrace_ops *ops)
{
	return ops->trampoline;
}

static inline bool ftrace_batch_pending(void)	{ return true; }
static inline bool ftrace_batch_walks(void)	{ return true; }
static inline bool ftrace_caller_idle(ftrace_func_t now)	{ return false; }
static inline void ftrace_batch_flush(void)	{ }

#endif /* CONFIG_X86_TEXT_PATCH */

#endif /* _KERNEL_TRACE_FTRACE_BATCH_H */
