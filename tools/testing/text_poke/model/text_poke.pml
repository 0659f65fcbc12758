// SPDX-License-Identifier: GPL-2.0
/*
 * Spin model of the text poking pipeline, see
 * Documentation/trace/text-poke.rst and arch/x86/kernel/text_patch.c.
 *
 * check.sh runs it. Sections, in the order of this file:
 *
 *	PARAMETERS	what a run may choose, and the ways to break the model
 *	TEXT		instructions in memory, and what a CPU may still fetch
 *	SLOTS		the memory shared by the writer and the int3 handler
 *	SYNC		text_poke_sync()
 *	WRITER		queue, pipeline step, finish
 *	CPU		execution, int3 handler, NMI
 *
 * Properties. Each is an assert() whose text is what Spin prints:
 *
 *	TORN		no CPU executes or emulates a first byte together with
 *			the tail of another instruction
 *	FOREIGN		the handler never disowns an int3 that is ours, nor a
 *			trap that can't be anybody's
 *	RECYCLED	the handler never emulates from an entry that is not
 *			(or no longer) the published one of its address
 *	LOST		when finish returns, memory holds what was queued last
 *	LATE		when finish returns, no CPU can run anything else
 *	SYNCS		K slots cost K + 2 syncs
 *	FALSE_STALE	on a CPU that keeps to the architecture no trap is
 *			ever taken for a stale one
 *	termination	no deadlock; with LIVE also the claim "terminates"
 *
 * What is left out, and why nothing is lost:
 *
 * - A slot holds one site. The sites of a slot don't share bytes, and one
 *   sync covers them all, so they interact only by being looked up in the
 *   same memory. That is kept: an entry is written in two steps.
 * - CPUs never read each other's state, so two show all they can do to the
 *   writer, and one shows all that can happen to a CPU.
 * - Interleaving is by single loads and stores of shared data. A d_step
 *   holds one such access plus checks and private state, except where a
 *   comment says otherwise.
 */

/* ---- PARAMETERS ------------------------------------------------------ */

#ifndef NCPU
#define NCPU	2	/* CPUs that run the patched code, besides the writer's */
#endif
#ifndef NSITE
#define NSITE	3	/* call sites, 3 or 4 */
#endif
#ifndef NEST
#define NEST	1	/* handlers on one CPU: 1, or 2 with an NMI that traps */
#endif
#ifndef MAXK
#define MAXK	5	/* slots filled in one run, finish at any time */
#endif
#ifndef NMEM
#define NMEM	4	/* slots in memory: three live ones, one that rests */
#endif

/*
 * How a slot comes to be filled again. Default: four slots in turn. The one
 * being filled was unpublished at least one sync ago. With NMEM=3 it was
 * live a moment ago, and a handler may still be reading it. Remedies:
 *	VALIDATE	the handler reads the slot's number again after the
 *			entry, and starts over if it changed
 *	INT3_SYNC	one more sync, if the slot wrote a final int3
 *
 * Kinds of CPU:
 *	STALE		traps may be raised for any site at any time, as an
 *			emulator does that runs from an old translation
 *	LIVE		a pending IPI is taken before the next instruction;
 *			needed to prove termination
 *
 * Ways to break it:
 *	SKIP_SYNC=n	no sync in step n of a batch
 *	PUBLISH_LATE	int3 before publishing
 *	NO_WMB_INT3	no write barrier between publishing and int3
 *	NO_WMB_FILL	no write barrier between filling and publishing
 *	UNPUBLISH_FIRST	unpublish before the final first byte is written
 *	UNPUBLISH_EARLY	unpublish between that and the sync
 *	IRQS_ON		the handler runs with interrupts on
 *	NO_RELOOKUP	the handler looks up only once
 *	NO_RECOVERY	the handler does not recover from stale traps
 *	DUP_LIVE	no flush when a queued address is live already
 *	NO_EMPTY_STEP	finish runs one empty step, not two
 */
#ifndef SKIP_SYNC
#define SKIP_SYNC	0
#endif

#define NONE	7
#define BIT(v)	(1 << (v))

/* ---- TEXT ------------------------------------------------------------ */

/*
 * A site goes through versions 0, 1, 2 of its instruction, each with a first
 * byte and a tail of that number. BRK is the int3 planted by the writer.
 *
 * Some versions begin with an int3 that belongs to somebody else, a kprobe:
 * site 1 gets one and loses it (unoptimise, optimise), site 2 the other way
 * round. To the handler such a byte looks like BRK, and to disown it is right.
 */
#define NVER		3
#define BRK		3
#define KPROBES(s)	((s) == 1 -> BIT(1) : ((s) == 2 -> BIT(0) | BIT(2) : 0))
#define INT3S(s)	(BIT(BRK) | KPROBES(s))
#define IS_INT3(s, v)	(INT3S(s) & BIT(v))

byte first[NSITE];
byte tail[NSITE];

/* For the checks only: queued last, live in a slot, written to memory. */
byte queued[NSITE];
byte pending[NSITE] = NONE;
byte current[NSITE];

/*
 * What CPU c may execute at site s: every value since its last serialisation,
 * first byte and tail chosen independently, as sets of versions. This takes
 * in old copies in any cache or buffer, and a first byte fetched earlier than
 * its tail. Neither a trap nor IRET serialises here, though on x86 they do:
 * the protocol must not need it.
 */
#define AT(c, s)	((c) * NSITE + (s))
byte may_first[NCPU * NSITE] = 1;
byte may_tail[NCPU * NSITE] = 1;

#define WHOLE(c, s, v)	(!(may_first[AT(c, s)] & BIT(v)) ||		\
			 IS_INT3(s, v) || may_tail[AT(c, s)] == BIT(v))
#define NOT_TORN(c, s)	(WHOLE(c, s, 0) && WHOLE(c, s, 1) && WHOLE(c, s, 2))

/* The properties' names: always 0, there to be printed. */
hidden byte TORN, FOREIGN, RECYCLED, LOST, LATE, SYNCS, FALSE_STALE;
#define require(name, x)	assert((x) || name)

hidden byte i;

/*
 * An instruction is executed in one piece, at any moment, so it is enough to
 * check TORN whenever the sets grow.
 */
inline store_first(s, v)
{
	d_step {
		first[s] = v;
		for (i : 0 .. NCPU - 1) {
			may_first[AT(i, s)] = may_first[AT(i, s)] | BIT(v);
			require(TORN, NOT_TORN(i, s));
		}
		if
		:: v != BRK -> current[s] = v
		:: else
		fi
	}
}

inline store_tail(s, v)
{
	d_step {
		tail[s] = v;
		for (i : 0 .. NCPU - 1) {
			may_tail[AT(i, s)] = may_tail[AT(i, s)] | BIT(v);
			require(TORN, NOT_TORN(i, s));
		}
	}
}

/* ---- SLOTS ----------------------------------------------------------- */

/* The number a slot was published under, changed each time; 0: not live. */
byte live[NMEM];
byte number = 1;

/* The one entry of each slot: address, and the instruction to emulate. */
byte ent_site[NMEM] = NONE;
byte ent_insn[NMEM] = NONE;

/* Overwriting an entry: between the two stores it is neither old nor new. */
inline fill_site(m, s)
{
	d_step {
		ent_site[m] = s;
		ent_insn[m] = NONE;
	}
}

inline fill_insn(m)
{
	ent_insn[m] = queued[ent_site[m]]
}

inline publish(m)
{
	d_step {
		live[m] = number;
		number++;
		pending[ent_site[m]] = queued[ent_site[m]];
	}
}

inline unpublish(m)
{
	d_step {
		live[m] = 0;
		pending[ent_site[m]] = NONE;
	}
}

/* ---- SYNC ------------------------------------------------------------ */

bit ipi[NCPU];

/*
 * An IPI to every CPU, and wait for all the answers. Sending is a full
 * barrier, and can be one step: to get an IPI later is to answer it later.
 */
inline sync()
{
	d_step {
		for (i : 0 .. NCPU - 1) {
			ipi[i] = 1;
		}
	}
	ipi[0] == 0;
#if NCPU > 1
	ipi[1] == 0;
#endif
}

inline answer(c)
{
	d_step {
		ipi[c] = 0;
		for (i : 0 .. NSITE - 1) {
			may_first[AT(c, i)] = BIT(first[i]);
			may_tail[AT(c, i)] = BIT(tail[i]);
		}
	}
}

/* ---- WRITER ---------------------------------------------------------- */

bit finished;

/* int3 on slot p1, tails of slot p2, first bytes of slot p3, sync */
inline step(m)
{
	d_step {
		p3 = p2;
		p2 = p1;
		p1 = m;
		steps++
	}

	if
	:: p1 != NONE ->
#if defined(PUBLISH_LATE)
		store_first(ent_site[p1], BRK);
		publish(p1)
#elif defined(NO_WMB_INT3)
		if
		:: publish(p1); store_first(ent_site[p1], BRK)
		:: store_first(ent_site[p1], BRK); publish(p1)
		fi
#elif defined(NO_WMB_FILL)
		if
		:: fill_insn(p1); publish(p1); store_first(ent_site[p1], BRK)
		:: publish(p1); fill_insn(p1); store_first(ent_site[p1], BRK)
		:: publish(p1); store_first(ent_site[p1], BRK); fill_insn(p1)
		fi
#else
		/* smp_wmb() */
		publish(p1);
		/* smp_wmb() */
		store_first(ent_site[p1], BRK)
#endif
	:: else
	fi;

	if
	:: p2 != NONE -> store_tail(ent_site[p2], ent_insn[p2])
	:: else
	fi;

	if
	:: p3 != NONE ->
#ifdef UNPUBLISH_FIRST
		unpublish(p3);
#endif
		store_first(ent_site[p3], ent_insn[p3]);
#ifdef UNPUBLISH_EARLY
		unpublish(p3)
#endif
	:: else
	fi;

	if
	:: steps != SKIP_SYNC -> sync()
	:: else
	fi;

	if
	:: p3 != NONE ->
#if !defined(UNPUBLISH_FIRST) && !defined(UNPUBLISH_EARLY)
		unpublish(p3);
#endif
#ifdef INT3_SYNC
		if
		:: KPROBES(ent_site[p3]) & BIT(ent_insn[p3]) -> sync()
		:: else
		fi;
#endif
		p3 = NONE
	:: else
	fi
}

inline flush()
{
	step(NONE);
#ifndef NO_EMPTY_STEP
	step(NONE);
#endif
	require(SYNCS, steps == slots + 2);
	d_step {
		steps = 0;
		slots = 0
	}
}

inline finish()
{
	flush();
	d_step {
		for (s : 0 .. NSITE - 1) {
			require(LOST, first[s] == queued[s] && tail[s] == queued[s]);
			for (i : 0 .. NCPU - 1) {
				require(LATE, may_first[AT(i, s)] == BIT(queued[s]));
				require(LATE, may_tail[AT(i, s)] == BIT(queued[s]));
			}
		}
		s = 0
	}
}

#define HOLDS(p, s)	(p != NONE && ent_site[p] == s)

proctype writer()
{
	byte p1 = NONE, p2 = NONE, p3 = NONE;	/* slots in the pipeline */
	byte m;					/* slot to fill next */
	byte s, k, slots, steps;

	do
	:: atomic {	/* private, and no other process sees it halfway */
		k < MAXK ->
			k++;
			if
			:: queued[0] < NVER - 1 -> s = 0
			:: queued[1] < NVER - 1 -> s = 1
			:: queued[2] < NVER - 1 -> s = 2
#if NSITE > 3
			:: queued[3] < NVER - 1 -> s = 3
#endif
			fi;
			skip
		}
		fill_site(m, s);

		/* An address is planted for one slot at a time. */
		if
#ifndef DUP_LIVE
		:: HOLDS(p1, s) || HOLDS(p2, s) -> flush()
#endif
		:: else
		fi;

		d_step {
			queued[s]++;
			slots++
#ifndef NO_WMB_FILL
			;
			fill_insn(m)
#endif
		}
		step(m);
		d_step {
			m = (m + 1) % NMEM;
			s = 0
		}
	:: slots > 0 -> finish()
	:: slots == 0 -> break
	od;
	finished = 1
}

/* ---- CPU ------------------------------------------------------------- */

#ifdef STALE
#define STALE_TRAPS	true
#define MAY_TRAP(c, s)	true
#else
#define STALE_TRAPS	false
#define MAY_TRAP(c, s)	(may_first[AT(c, s)] & INT3S(s))
#endif

/* In kernel code, or in an NMI that interrupts the handler. */
#ifdef LIVE
#define CAN_TRAP(c)	(depth < NEST && !(depth == 0 && ipi[c]))
#else
#define CAN_TRAP(c)	(depth < NEST)
#endif

#ifdef IRQS_ON
#define MAY_ANSWER	(depth < 2)
#else
#define MAY_ANSWER	(depth == 0)
#endif

#ifdef VALIDATE
#define VALIDATES	true
#else
#define VALIDATES	false
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

/* The handler's steps, by the one shared thing each of them reads. */
mtype = { LIVE_NUMBER, ENTRY_SITE, ENTRY_INSN, SAME_NUMBER, FIRST_BYTE, TAIL };

/* The topmost handler. */
#define H	(depth - 1)

/*
 * An entry may be used if it is the published one of this address, or was
 * until its instruction got into memory.
 */
#define ENTRY_GOOD	(ent_site[mem[H]] == at[H] &&			\
			 (ent_insn[mem[H]] == pending[at[H]] ||		\
			  ent_insn[mem[H]] == current[at[H]]))

inline trap(s)
{
	depth++;
	at[H] = s;
	next[H] = LIVE_NUMBER
}

inline leave()
{
	next[H] = 0;
	at[H] = 0;
	mem[H] = 0;
	num[H] = 0;
	val[H] = 0;
	good[H] = 0;
	again[H] = 0;
	depth--
}

/* poke_int3_handler() returns 0: some other handler must know this int3. */
inline disown()
{
	require(FOREIGN, KPROBES(at[H]) & BIT(val[H]));
	leave()
}

/* Not in this slot. After the last one look at memory, but once only. */
inline next_slot()
{
	mem[H]++;
	next[H] = LIVE_NUMBER;
	if
	:: mem[H] < NMEM
	:: mem[H] == NMEM && !again[H] -> mem[H] = 0; next[H] = FIRST_BYTE
	:: mem[H] == NMEM && again[H] -> disown()
	fi
}

/*
 * Handlers are a stack of small state machines, so that an NMI can come in
 * between any two steps of the first and trap itself. An NMI at other times,
 * or one that doesn't trap, does nothing new.
 */
proctype cpu(byte me)
{
	byte depth;		/* 0: no handler, interrupts on */
	mtype next[NEST];	/* step to do */
	byte at[NEST];		/* site trapped at */
	byte mem[NEST];		/* slot looked at */
	byte num[NEST];		/* number it had */
	bit good[NEST];		/* for the check: the entry was good when read */
	byte val[NEST];		/* version read from memory */
	bit again[NEST];	/* this is the second look-up */

end:	do
	:: d_step { ipi[me] && MAY_ANSWER -> answer(me); skip }

	:: d_step { MAY_TRAP(me, 0) && CAN_TRAP(me) -> trap(0) }
	:: d_step { MAY_TRAP(me, 1) && CAN_TRAP(me) -> trap(1) }
	:: d_step { MAY_TRAP(me, 2) && CAN_TRAP(me) -> trap(2) }
#if NSITE > 3
	:: d_step { MAY_TRAP(me, 3) && CAN_TRAP(me) -> trap(3) }
#endif

	:: d_step {
		depth && next[H] == LIVE_NUMBER ->
			if
			:: live[mem[H]] ->
				num[H] = live[mem[H]];
				next[H] = ENTRY_SITE
			:: else -> next_slot()
			fi;
			skip
		}

	:: d_step {
		depth && next[H] == ENTRY_SITE ->
			if
			:: ent_site[mem[H]] == at[H] -> next[H] = ENTRY_INSN
			:: else -> next_slot()
			fi;
			skip
		}

	/* Found, emulate it. */
	:: d_step {
		depth && next[H] == ENTRY_INSN ->
			good[H] = ENTRY_GOOD;
			if
			:: VALIDATES -> next[H] = SAME_NUMBER
			:: else -> require(RECYCLED, good[H]); leave()
			fi;
			skip
		}

	:: d_step {
		depth && next[H] == SAME_NUMBER ->
			if
			:: live[mem[H]] == num[H] ->
				require(RECYCLED, good[H]);
				leave()
			:: else ->
				mem[H] = 0;
				next[H] = LIVE_NUMBER
			fi;
			skip
		}

	/* Found nothing: what does memory hold now? */
	:: d_step {
		depth && next[H] == FIRST_BYTE ->
			val[H] = first[at[H]];
			if
			:: IS_INT3(at[H], val[H]) && LOOKS_TWICE ->
				again[H] = 1;
				next[H] = LIVE_NUMBER
			:: !IS_INT3(at[H], val[H]) && RECOVERS ->
				require(FALSE_STALE, STALE_TRAPS);
				next[H] = TAIL
			:: else -> disown()
			fi;
			skip
		}

	/* A stale trap: emulate what memory holds. */
	:: d_step {
		depth && next[H] == TAIL ->
			require(TORN, tail[at[H]] == val[H]);
			leave()
		}
	od
}

init {
	byte c;

	atomic {
		run writer();
		for (c : 0 .. NCPU - 1) {
			run cpu(c)
		}
	}
}

#ifdef LIVE
ltl terminates { <> finished }
#endif
