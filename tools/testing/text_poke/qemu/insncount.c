// SPDX-License-Identifier: GPL-2.0
/*
 * insncount - count what a guest kernel executes, between marks
 *
 * A QEMU TCG plugin. A halted CPU executes nothing, so time spent idle is left
 * out by itself as long as the guest idles with HLT (boot it with idle=halt).
 *
 * The guest sets a mark by executing one of 256 magic NOPs, see mark.c. Each
 * mark appends a line to the output file:
 *
 *	N instructions int3 window
 *
 * N		number of the mark
 * instructions	executed so far by all CPUs
 * int3		breakpoint instructions executed so far, by all CPUs
 * window	longest section, in instructions and since the mark before, that
 *		ran with interrupts off and loaded CR3 at least twice: which is
 *		what entering and leaving a temporary mm to write text looks
 *		like, and nothing else in the kernel does
 *
 * Use: -plugin insncount.so,out=FILE
 *
 * Counters are kept per CPU; a mark sums them, which is exact if all CPUs are
 * emulated by one thread (-accel tcg,thread=single).
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "plugin.h"

#define MAX_CPUS	256
#define MAX_INSN	15

struct cpu_count {
	uint64_t insns;
	uint64_t int3;
	uint64_t off_since;		/* IRQs off from here on; 0: they are on */
	unsigned int cr3_loads;		/* since then */
	unsigned int in_int3;		/* handlers of int3 not yet left */
};

static struct cpu_count counts[MAX_CPUS];
static uint64_t longest_window;
static FILE *out;

QEMU_EXPORT int qemu_plugin_version = QEMU_PLUGIN_API;

enum insn_kind {
	INSN_PLAIN,
	INSN_MARK,
	INSN_INT3,
	INSN_CLI,
	INSN_STI,
	INSN_IRET,
	INSN_CR3,
};

/* What the callback of one instruction has to know, as its data pointer. */
union insn_note {
	void *data;
	struct {
		uint8_t kind;
		uint8_t mark;
		uint16_t left;		/* in its block, itself included */
	};
};

static enum insn_kind classify(const uint8_t *insn, size_t len, uint8_t *mark)
{
	static const uint8_t magic[] = { 0x4d, 0x50, 0x54 };

	switch (len) {
	case 1:
		if (insn[0] == 0xcc)
			return INSN_INT3;
		if (insn[0] == 0xfa)
			return INSN_CLI;
		if (insn[0] == 0xfb)
			return INSN_STI;
		break;
	case 2:
		if (insn[0] == 0x48 && insn[1] == 0xcf)
			return INSN_IRET;
		break;
	case 3:
		/* SYSRET leaves the kernel too, with interrupts on */
		if (insn[0] == 0x48 && insn[1] == 0x0f && insn[2] == 0x07)
			return INSN_STI;
		if (insn[0] == 0x0f && insn[1] == 0x22 && (insn[2] & 0xf8) == 0xd8)
			return INSN_CR3;
		break;
	case 4:
		if (insn[0] == 0x41 && insn[1] == 0x0f && insn[2] == 0x22 &&
		    (insn[3] & 0xf8) == 0xd8)
			return INSN_CR3;
		break;
	case 7:
		if (insn[0] == 0x0f && insn[1] == 0x1f && insn[2] == 0x80 &&
		    !memcmp(insn + 4, magic, sizeof(magic))) {
			*mark = insn[3];
			return INSN_MARK;
		}
		break;
	}
	return INSN_PLAIN;
}

static void write_mark(unsigned int mark, unsigned int left)
{
	unsigned long long insns = 0, int3 = 0;

	for (int i = 0; i < MAX_CPUS; i++) {
		insns += counts[i].insns;
		int3 += counts[i].int3;
	}
	fprintf(out, "%u %llu %llu %llu\n", mark, insns - left, int3,
		(unsigned long long)longest_window);
	fflush(out);
	longest_window = 0;
}

static void irqs_on(struct cpu_count *c, uint64_t now)
{
	if (c->off_since && c->cr3_loads >= 2 &&
	    now - c->off_since > longest_window)
		longest_window = now - c->off_since;
	c->off_since = 0;
}

static void insn_exec(unsigned int cpu, void *data)
{
	union insn_note note = { .data = data };
	struct cpu_count *c = &counts[cpu % MAX_CPUS];
	uint64_t now = c->insns - note.left;

	switch (note.kind) {
	case INSN_MARK:
		write_mark(note.mark, note.left);
		break;
	case INSN_INT3:
		c->int3++;
		c->in_int3++;
		break;
	case INSN_CLI:
		if (!c->off_since) {
			c->off_since = now;
			c->cr3_loads = 0;
		}
		break;
	case INSN_STI:
		irqs_on(c, now);
		break;
	case INSN_IRET:
		/*
		 * Returning from a planted int3 leaves interrupts as they
		 * were; all else returns to where they are on.
		 */
		if (c->in_int3)
			c->in_int3--;
		else
			irqs_on(c, now);
		break;
	case INSN_CR3:
		c->cr3_loads++;
		break;
	}
}

static void block_exec(unsigned int cpu, void *data)
{
	counts[cpu % MAX_CPUS].insns += (uintptr_t)data;
}

static void block_translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);

	(void)id;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, block_exec,
					     QEMU_PLUGIN_CB_NO_REGS,
					     (void *)(uintptr_t)n);
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		size_t len = qemu_plugin_insn_size(insn);
		union insn_note note = { .data = NULL };
		uint8_t bytes[MAX_INSN];

		if (len > sizeof(bytes))
			continue;
#if QEMU_PLUGIN_API < 3
		memcpy(bytes, qemu_plugin_insn_data(insn), len);
#else
		if (qemu_plugin_insn_data(insn, bytes, len) != len)
			continue;
#endif
		note.kind = classify(bytes, len, &note.mark);
		note.left = n - i;
		if (note.kind != INSN_PLAIN)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, insn_exec,
							       QEMU_PLUGIN_CB_NO_REGS,
							       note.data);
	}
}

int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc,
			char **argv)
{
	(void)info;
	for (int i = 0; i < argc; i++) {
		if (strncmp(argv[i], "out=", 4)) {
			fprintf(stderr, "insncount: unknown option %s: use out=FILE\n",
				argv[i]);
			return -1;
		}
		out = fopen(argv[i] + 4, "w");
		if (!out) {
			fprintf(stderr, "insncount: cannot write %s: give another out=FILE\n",
				argv[i] + 4);
			return -1;
		}
	}
	if (!out) {
		fprintf(stderr, "insncount: no output file: add out=FILE\n");
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, block_translated);
	return 0;
}
