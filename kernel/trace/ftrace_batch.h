/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which records ftrace has to look at, and which of their call sites change.
 * Without CONFIG_X86_TEXT_PATCH that is all of them, every time.
 *
 * All of this is under ftrace_lock.
 */
#ifndef _KERNEL_TRACE_FTRACE_BATCH_H
#define _KERNEL_TRACE_FTRACE_BATCH_H

/* Records, sorted by address; the core kernel's come first. */
struct ftrace_page {
	struct ftrace_page	*next;
	struct dyn_ftrace	*records;
	int			index;
	int			order;
};

extern struct ftrace_page *ftrace_pages_start;

struct dyn_ftrace *lookup_rec(unsigned long start, unsigned long end);

#ifdef CONFIG_X86_TEXT_PATCH

bool ftrace_batch_note(struct dyn_ftrace *rec);
bool ftrace_batch_pending(void);
bool ftrace_batch_walks(void);

/*
 * Whether ftrace_caller may be switched without passing by the list function:
 * either the first ops comes, and no call site calls anything yet, or the last
 * one goes, and who still comes here is in time for the ops that is leaving.
 */
static inline bool ftrace_caller_idle(ftrace_func_t now)
{
	return !now || now == ftrace_stub || ftrace_trace_function == ftrace_stub;
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

static inline bool ftrace_batch_note(struct dyn_ftrace *rec)
{
	return ftrace_test_record(rec, true) != FTRACE_UPDATE_IGNORE;
}

static inline bool ftrace_batch_pending(void)	{ return true; }
static inline bool ftrace_batch_walks(void)	{ return true; }
static inline bool ftrace_caller_idle(ftrace_func_t now)	{ return false; }

#endif /* CONFIG_X86_TEXT_PATCH */

#endif /* _KERNEL_TRACE_FTRACE_BATCH_H */
