/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM text_poke

#if !defined(_TRACE_TEXT_POKE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_TEXT_POKE_H

#include <linux/tracepoint.h>

/* A batch is what is queued between two calls of text_poke_finish(). */
TRACE_EVENT(text_poke_batch,

	TP_PROTO(u64 sites, u64 slots, u64 windows, u64 syncs, u64 traps, u64 ns, int error),

	TP_ARGS(sites, slots, windows, syncs, traps, ns, error),

	TP_STRUCT__entry(
		__field(u64,	sites)
		__field(u64,	slots)
		__field(u64,	windows)
		__field(u64,	syncs)
		__field(u64,	traps)
		__field(u64,	ns)
		__field(int,	error)
	),

	TP_fast_assign(
		__entry->sites		= sites;
		__entry->slots		= slots;
		__entry->windows	= windows;
		__entry->syncs		= syncs;
		__entry->traps		= traps;
		__entry->ns		= ns;
		__entry->error		= error;
	),

	TP_printk("sites=%llu slots=%llu windows=%llu syncs=%llu traps=%llu ns=%llu error=%d",
		  __entry->sites, __entry->slots, __entry->windows, __entry->syncs,
		  __entry->traps, __entry->ns, __entry->error)
);

#endif /* _TRACE_TEXT_POKE_H */

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH asm/trace
#define TRACE_INCLUDE_FILE text_poke
#include <trace/define_trace.h>
