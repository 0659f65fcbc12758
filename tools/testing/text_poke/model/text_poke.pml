// SPDX-License-Identifier: GPL-2.0
/*
 * Spin model of arch/x86/kernel/text_patch.c, explained in
 * Documentation/trace/text-poke.rst. check.sh runs it.
 *
 * Sections, in the order of this file:
 *
 *	PARAMETERS	sizes, kinds of CPU, and the ways to break the protocol
 *	TEXT		instructions in memory, and what a CPU may still fetch
 *	SLOTS		what the writer and the int3 handler share
 *	SYNC		text_poke_sync()
 *	WRITER		text_poke_queue(), pipeline_step(), text_poke_finish()
 *	CPU		poke_int3_handler(), in kernel code and in NMIs
 *
 * Properties. Each is an assertion that Spin prints with this name:
 *
 *	TORN		no CPU executes or emulates a first byte together with
 *			the tail of another instruction
 *	FOREIGN		the handler disowns neither an int3 that is ours, nor a
 *			trap where memory holds no int3 at all
 *	RECYCLED	the handler never emulates from an entry that is not the
 *			published one of its address
 *	LOST		when finish returns, memory holds what was queued last
 *	LATE		when finish returns, no CPU can execute anything else
 *	SYNCS		K slots take K + 2 syncs
 *	FALSE_STALE	on a CPU as the architecture has it, no trap is taken
 *			for a stale one
 *
 * Also that there is no deadlock, and with PROMPT that the writer ends.
 *
 * What is left out, and why that is sound:
 *
 * - A slot holds one site. Sites don't share bytes, and the steps of a slot
 *   are over for all of them when a sync is. They meet only in the look-up,
 *   through slots of several sites; so a slot's entry is written in two
 *   steps, and a handler may find either half.
 * - Processes interleave at single accesses to what they share. A d_step has
 *   one such access, and besides only private state, and what exists for the
 *   checks. The one exception, in step(), says why.
 * - CPUs share nothing that they write but their answers to IPIs. So one CPU
 *   shows all that can happen to a CPU, and a second one that answers earlier
 *   or later shows all that others can do to it.
 */

/* ---- PARAMETERS ------------------------------------------------------ */

#ifndef NCPU
#define NCPU	1	/* CPUs that run patched code, 1 or 2; the writer is another */
#endif
#ifndef NEST
#define NEST	1	/* handlers on one CPU: 2 if NMIs trap in the first one */
#endif
#ifndef NSITE
#define NSITE	3	/* call sites, 3 or 4 */
#endif
#ifndef MAXK
#define MAXK	5	/* slots filled, with a finish after any of them */
#endif
#ifndef NSLOT
#define NSLOT	4	/* three in the pipeline, and one that rests for a sync */
#endif

/*
 * Kinds of CPU:
 *	STALE		may trap at any site at any time, like an emulator that
 *			executes an old translation
 *	PROMPT		takes a pending IPI before it executes anything else;
 *			only needed to prove that the writer ends
 *
 * Ways to break the protocol:
 *	SKIP_SYNC=n	no sync in step n of a batch
 *	PUBLISH_LATE	int3 before publishing
 *	NO_WMB_INT3	publishing and int3 may be seen in either order
 *	NO_WMB_FILL	filling may be seen after publishing, and after int3
 *	UNPUBLISH_FIRST	unpublish before the final first byte is written
 *	UNPUBLISH_EARLY	unpublish between that and the sync
 *	NSLOT=3		a slot is filled as soon as it is unpublished
 *	INT3_SYNC	with NSLOT=3: but after a sync, if its site stays an int3
 *	IRQS_ON		the handler runs with interrupts on
 *	NO_RELOOKUP	the handler looks up only once
 *	NO_RECOVERY	the handler disowns stale traps
 *	DUP_LIVE	an address may be in several slots of the pipeline
 *	SHORT_FINISH	finish makes one step instead of two
 */
#ifndef SKIP_SYNC
#define SKIP_SYNC	0
#endif

#define NONE	7
#define BIT(v)	(1 << (v))

/* The properties' names: always 0, only there to be printed. */
hidden byte TORN, FOREIGN, RECYCLED, LOST, LATE, SYNCS, FALSE_STALE;
#define require(name, x)	assert((x) || name)

hidden byte i;	/* used within a d_step only */

/* ---- TEXT ------------------------------------------------------------ */

/*
 * A site's instruction has versions 0, 1 and 2, and each of them a first byte
 * and a tail of that number. BRK is the int3 that the writer plants.
 *
 * Some versions begin with an int3 that is someone else's, a kprobe's: site 1
 * gets one and loses it, site 2 loses one and gets it back. To the handler it
 * looks like BRK, and it is right to disown it.
 */
#define NVER		3
#define BRK		3
#define KPROBES(s)	((s) == 1 -> BIT(1) : ((s) == 2 -> BIT(0) | BIT(2) : 0))
#define INT3S(s)	(BIT(BRK) | KPROBES(s))
#define IS_INT3(s, v)	(INT3S(s) & BIT(v))

byte first[NSITE];
byte tail[NSITE];

/* For the checks: the version queued last, published, and written last. */
byte queued[NSITE];
byte published[NSITE] = NONE;
byte written[NSITE];

/*
 * What CPU c may execute at site s: all that was there since it serialised
 * last, first byte and tail independently, as sets of versions. So it may
 * have old copies in whatever cache or buffer, and may fetch a first byte long
 * before its tail. Traps and IRET don't serialise here, though on x86 they do:
 * nothing depends on it.
 */
#define AT(c, s)	((c) * NSITE + (s))
byte may_first[NCPU * NSITE] = BIT(0);
byte may_tail[NCPU * NSITE] = BIT(0);

#define WHOLE(c, s, v)	(!(may_first[AT(c, s)] & BIT(v)) ||		\
			 IS_INT3(s, v) || may_tail[AT(c, s)] == BIT(v))

/*
 * Any CPU may execute any site at any time, and that changes nothing. So
 * instead of doing it, look at what it would do whenever that may have become
 * worse: when the sets grow.
 */
#define check_torn(c, s)						\
	require(TORN, WHOLE(c, s, 0) && WHOLE(c, s, 1) && WHOLE(c, s, 2))

/* ---- SLOTS ----------------------------------------------------------- */

bit live[NSLOT];		/* the handler looks only at these */
byte slot_site[NSLOT] = NONE;	/* address */
byte slot_insn[NSLOT] = NONE;	/* version to be emulated and written */

inline fill_site(k, s)
{
	d_step {
		slot_site[k] = s;
		slot_insn[k] = NONE	/* neither the old entry nor the new */
	}
}

inline fill_insn(k)
{
	if
	:: k != NONE -> slot_insn[k] = queued[slot_site[k]]
	:: else
	fi
}

inline publish(k)
{
	d_step {
		if
		:: k != NONE ->
			live[k] = 1;
			published[slot_site[k]] = queued[slot_site[k]]
		:: else
		fi;
		skip
	}
}

inline unpublish(k)
{
	d_step {
		if
		:: k != NONE ->
			live[k] = 0;
			published[slot_site[k]] = NONE
		:: else
		fi;
		skip
	}
}

/* What is written to text, for the site of slot k, if there is one. */

inline write_byte0(s, v)
{
	first[s] = v;
	for (i : 0 .. NCPU - 1) {
		may_first[AT(i, s)] = may_first[AT(i, s)] | BIT(v);
		check_torn(i, s)
	}
}

inline write_int3(k)
{
	d_step {
		if
		:: k != NONE -> write_byte0(slot_site[k], BRK)
		:: else
		fi;
		skip
	}
}

inline write_tail(k)
{
	if
	:: k != NONE ->
		tail[slot_site[k]] = slot_insn[k];
		for (i : 0 .. NCPU - 1) {
			may_tail[AT(i, slot_site[k])] =
				may_tail[AT(i, slot_site[k])] | BIT(slot_insn[k]);
			check_torn(i, slot_site[k])
		}
	:: else
	fi
}

inline write_first(k)
{
	if
	:: k != NONE ->
		write_byte0(slot_site[k], slot_insn[k]);
		written[slot_site[k]] = slot_insn[k]
	:: else
	fi
}

/* ---- SYNC ------------------------------------------------------------ */

bit ipi[NCPU];

/*
 * Send an IPI to every CPU and wait for the answers, unless it is left out. To
 * send is a full barrier. It is one step: to get it late is to answer it late.
 */
inline sync(wanted)
{
	d_step {
		for (i : 0 .. NCPU - 1) {
			ipi[i] = wanted
		}
	}
	ipi[0] == 0;
#if NCPU > 1
	ipi[1] == 0
#endif
}

/* Serialise: what has been fetched is gone. */
inline answer(c)
{
	ipi[c] = 0;
	for (i : 0 .. NSITE - 1) {
		may_first[AT(c, i)] = BIT(first[i]);
		may_tail[AT(c, i)] = BIT(tail[i])
	}
}

/* ---- WRITER ---------------------------------------------------------- */

/* One step of the pipeline; k is the slot that enters it, or NONE. */
inline step(k)
{
	d_step {
		p3 = p2;
		p2 = p1;
		p1 = k;
		filling = (filling + 1) % NSLOT;
		steps++
	}

#ifdef UNPUBLISH_FIRST
	unpublish(p3);
#endif
	/* Together: two sites, and no reader or check looks at more than one. */
	d_step {
		write_first(p3);
		write_tail(p2)
	}
#ifdef UNPUBLISH_EARLY
	unpublish(p3);
#endif
#if defined(PUBLISH_LATE)
	write_int3(p1);
	publish(p1);
#elif defined(NO_WMB_INT3)
	if
	:: publish(p1); write_int3(p1)
	:: write_int3(p1); publish(p1)
	fi;
#elif defined(NO_WMB_FILL)
	if
	:: fill_insn(p1); publish(p1); write_int3(p1)
	:: publish(p1); fill_insn(p1); write_int3(p1)
	:: publish(p1); write_int3(p1); fill_insn(p1)
	fi;
#else
	/* smp_store_release(): what was filled is seen before it is live. */
	publish(p1);
	/* smp_wmb(): that it is live is seen before the breakpoint. */
	write_int3(p1);
#endif
	sync(steps != SKIP_SYNC);
	unpublish(p3)
#ifdef INT3_SYNC
	;
	if
	:: p3 != NONE && IS_INT3(slot_site[p3], slot_insn[p3]) -> sync(true)
	:: else
	fi
#endif
}

/* Empty the pipeline. */
inline drain()
{
	step(NONE);
#ifndef SHORT_FINISH
	step(NONE);
#endif
	d_step {
		require(SYNCS, steps == slots + 2);
		steps = 0;
		slots = 0
	}
}

inline finish()
{
	drain();
	d_step {
		for (s : 0 .. NSITE - 1) {
			require(LOST, first[s] == queued[s] && tail[s] == queued[s]);
			for (i : 0 .. NCPU - 1) {
				require(LATE, may_first[AT(i, s)] == BIT(queued[s]));
				require(LATE, may_tail[AT(i, s)] == BIT(queued[s]))
			}
		}
		s = 0
	}
}

#define HOLDS(p, s)	(p != NONE && slot_site[p] == s)

bit finished;

proctype writer()
{
	byte p1 = NONE, p2 = NONE, p3 = NONE;	/* slots in the pipeline */
	byte filling;				/* slot to be filled next */
	byte s, total, slots, steps;

	do
	:: atomic {	/* only to choose a site: nobody else can tell */
		total < MAXK ->
			total++;
			if
			:: queued[0] < NVER - 1 -> s = 0
			:: queued[1] < NVER - 1 -> s = 1
			:: queued[2] < NVER - 1 -> s = 2
#if NSITE > 3
			:: queued[3] < NVER - 1 -> s = 3
#endif
			fi
		};

		/* Only then it is looked for: it may be live in another slot. */
		fill_site(filling, s);
#ifndef DUP_LIVE
		if
		:: HOLDS(p1, s) || HOLDS(p2, s) ->
			drain();
			fill_site(filling, s)
		:: else
		fi;
#endif
		d_step {
			queued[s]++;
			slots++;
			s = 0;
#ifndef NO_WMB_FILL
			fill_insn(filling);
#endif
			skip
		};
		step(filling)

	:: slots > 0 -> finish()
	:: slots == 0 -> break
	od;
	finished = 1
}

/* ---- CPU ------------------------------------------------------------- */

#ifdef STALE
#define STALE_TRAPS	true
#define MAY_TRAP(s)	true
#else
#define STALE_TRAPS	false
#define MAY_TRAP(s)	(may_first[AT(me, s)] & INT3S(s))
#endif

/* Does it execute anything, in kernel code or in an NMI within the handler? */
#ifdef PROMPT
#define RUNS		(depth < NEST && !(depth == 0 && ipi[me]))
#else
#define RUNS		(depth < NEST)
#endif

#ifdef IRQS_ON
#define IRQS_ENABLED	(depth < 2)
#else
#define IRQS_ENABLED	(depth == 0)
#endif

#ifdef NO_RELOOKUP
#define LOOKS_TWICE	false
#else
#define LOOKS_TWICE	true
#endif

#ifdef NO_RECOVERY
#define RECOVERS	false
#else
#define RECOVERS	true
#endif

/* What the handler reads next. */
mtype = { LIVE, SITE, INSN, FIRST, TAIL };

/* The handler that runs, it may have interrupted another one. */
#define H	(depth - 1)

/*
 * An entry is good if it is the published one of this address, or if it was
 * until a moment ago, and memory now holds its instruction.
 */
#define ENTRY_GOOD							\
	(slot_site[slot[H]] == at[H] &&					\
	 (slot_insn[slot[H]] == published[at[H]] ||			\
	  slot_insn[slot[H]] == written[at[H]]))

inline trap(s)
{
	depth++;
	at[H] = s;
	next[H] = LIVE
}

inline leave()
{
	next[H] = 0;
	at[H] = 0;
	slot[H] = 0;
	byte0[H] = 0;
	again[H] = 0;
	depth--
}

/* Return 0: the int3 that was seen in memory must be someone else's. */
inline disown()
{
	require(FOREIGN, KPROBES(at[H]) & BIT(byte0[H]));
	leave()
}

/* It is not in this slot. After the last slot look at memory, but only once. */
inline next_slot()
{
	slot[H]++;
	next[H] = LIVE;
	if
	:: slot[H] < NSLOT
	:: slot[H] == NSLOT && !again[H] -> slot[H] = 0; next[H] = FIRST
	:: slot[H] == NSLOT && again[H] -> disown()
	fi
}

/*
 * Handlers are a stack of state machines, so that an NMI may come in between
 * any two reads of the first one, and trap as well. NMIs at other times do
 * nothing that kernel code doesn't. Spin wants each d_step to end in a simple
 * statement, hence the skips.
 */
proctype cpu(byte me)
{
	byte depth;		/* handlers running; if none, IRQs are on */
	mtype next[NEST];
	byte at[NEST];		/* the site trapped at */
	byte slot[NEST];	/* the slot it looks at */
	byte byte0[NEST];	/* what it saw in memory */
	bit again[NEST];	/* this is the second look-up */

end:	do
	:: d_step { ipi[me] && IRQS_ENABLED -> answer(me); skip }

	:: d_step { RUNS && MAY_TRAP(0) -> trap(0) }
	:: d_step { RUNS && MAY_TRAP(1) -> trap(1) }
	:: d_step { RUNS && MAY_TRAP(2) -> trap(2) }
#if NSITE > 3
	:: d_step { RUNS && MAY_TRAP(3) -> trap(3) }
#endif

	:: d_step {
		depth && next[H] == LIVE ->
			if
			:: live[slot[H]] -> next[H] = SITE
			:: else -> next_slot()
			fi;
			skip
		}

	:: d_step {
		depth && next[H] == SITE ->
			if
			:: slot_site[slot[H]] == at[H] -> next[H] = INSN
			:: else -> next_slot()
			fi;
			skip
		}

	/* Found: emulate. */
	:: d_step {
		depth && next[H] == INSN ->
			require(RECYCLED, ENTRY_GOOD);
			leave()
		}

	/* Not found: what does memory hold? */
	:: d_step {
		depth && next[H] == FIRST ->
			byte0[H] = first[at[H]];
			if
			:: IS_INT3(at[H], byte0[H]) && LOOKS_TWICE ->
				again[H] = 1;
				next[H] = LIVE
			:: !IS_INT3(at[H], byte0[H]) && RECOVERS ->
				require(FALSE_STALE, STALE_TRAPS);
				next[H] = TAIL
			:: else -> disown()
			fi;
			skip
		}

	/* A stale trap: emulate what memory holds. */
	:: d_step {
		depth && next[H] == TAIL ->
			require(TORN, tail[at[H]] == byte0[H]);
			leave()
		}
	od
}

init {
	atomic {
		run writer();
		run cpu(0);
#if NCPU > 1
		run cpu(1)
#endif
	}
}

#ifdef PROMPT
ltl terminates { <> finished }
#endif
