// SPDX-License-Identifier: GPL-2.0
/*
 * textcmp - is kernel text byte for byte what it was?
 *
 *   textcmp save FILE    save the running kernel's text
 *   textcmp check FILE   compare it with what was saved, name what differs
 *
 * Exit status: 0 saved, or identical; 1 text differs; 2 it cannot be told.
 *
 * Text is read through /proc/kcore, so it is what the CPUs execute, not what
 * the image on disk holds.
 */

#define _FILE_OFFSET_BITS 64
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC		0x31504d4354584554UL	/* "TEXTCMP1" */
#define __noreturn	__attribute__((__noreturn__))

#define MAX_RANGES	40
#define MAX_BYTES	16
/* Bytes that agree by chance within a patched instruction. */
#define MAX_GAP		4

struct header {
	unsigned long magic;
	unsigned long start;
	unsigned long size;
};

struct symbol {
	unsigned long addr;
	char name[128];
};

static struct symbol *symbols;
static size_t nr_symbols;

static void __noreturn fail(const char *fmt, ...)
{
	va_list ap;

	fputs("textcmp: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(2);
}

static int compare_symbols(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* All symbols of text, and where text begins and ends. */
static void read_symbols(unsigned long *start, unsigned long *end)
{
	size_t room = 0;
	struct symbol s;
	FILE *f = fopen("/proc/kallsyms", "r");
	char type, line[512];

	if (!f)
		fail("cannot read /proc/kallsyms: %s; the kernel needs CONFIG_KALLSYMS",
		     strerror(errno));
	*start = 0;
	*end = 0;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx %c %127s", &s.addr, &type, s.name) != 3)
			continue;
		if (!strcmp(s.name, "_stext"))
			*start = s.addr;
		else if (!strcmp(s.name, "_etext"))
			*end = s.addr;
		else if (type != 't' && type != 'T')
			continue;
		if (nr_symbols == room) {
			room = room ? 2 * room : 1 << 16;
			symbols = realloc(symbols, room * sizeof(*symbols));
			if (!symbols)
				fail("out of memory");
		}
		symbols[nr_symbols++] = s;
	}
	fclose(f);
	if (!*start || *end <= *start)
		fail("/proc/kallsyms shows no addresses: be root, with kernel.kptr_restrict < 2");
	qsort(symbols, nr_symbols, sizeof(*symbols), compare_symbols);
}

static const struct symbol *find_symbol(unsigned long addr)
{
	size_t lo = 0, hi = nr_symbols;

	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (symbols[mid].addr <= addr)
			lo = mid;
		else
			hi = mid;
	}
	return &symbols[lo];
}

static void read_all(int fd, void *buf, size_t len, off_t pos, const char *what)
{
	char *p = buf;

	while (len) {
		ssize_t n = pread(fd, p, len, pos);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			fail("cannot read %s: %s", what, strerror(errno));
		if (!n)
			fail("%s ends too early", what);
		p += n;
		pos += n;
		len -= n;
	}
}

static void read_text(unsigned long start, unsigned long size, unsigned char *text)
{
	int i, fd = open("/proc/kcore", O_RDONLY);
	Elf64_Ehdr eh;
	Elf64_Phdr ph;

	if (fd < 0)
		fail("cannot open /proc/kcore: %s; be root, with CONFIG_PROC_KCORE and no lockdown",
		     strerror(errno));
	read_all(fd, &eh, sizeof(eh), 0, "/proc/kcore");
	if (memcmp(eh.e_ident, ELFMAG, SELFMAG) || eh.e_ident[EI_CLASS] != ELFCLASS64)
		fail("/proc/kcore is no 64-bit ELF file");
	for (i = 0; i < eh.e_phnum; i++) {
		read_all(fd, &ph, sizeof(ph), eh.e_phoff + i * sizeof(ph), "/proc/kcore");
		if (ph.p_type != PT_LOAD || start < ph.p_vaddr ||
		    start + size > ph.p_vaddr + ph.p_memsz)
			continue;
		read_all(fd, text, size, ph.p_offset + (start - ph.p_vaddr), "/proc/kcore");
		close(fd);
		return;
	}
	fail("/proc/kcore does not map kernel text");
}

static void print_bytes(const char *when, const unsigned char *p, unsigned long len)
{
	unsigned long i;

	printf("  %s:", when);
	for (i = 0; i < len && i < MAX_BYTES; i++)
		printf(" %02x", p[i]);
	printf("%s\n", len > MAX_BYTES ? " ..." : "");
}

static unsigned int compare(unsigned long start, unsigned long size,
			    const unsigned char *old, const unsigned char *new)
{
	unsigned long first, last, i = 0;
	unsigned int ranges = 0;

	while (i < size) {
		const struct symbol *s;

		if (old[i] == new[i]) {
			i++;
			continue;
		}
		first = i;
		for (last = i; i < size && i - last <= MAX_GAP; i++) {
			if (old[i] != new[i])
				last = i;
		}
		if (ranges++ >= MAX_RANGES)
			continue;
		s = find_symbol(start + first);
		printf("%s+0x%lx (%lx), %lu bytes:\n", s->name,
		       start + first - s->addr, start + first, last - first + 1);
		print_bytes("was", old + first, last - first + 1);
		print_bytes("is ", new + first, last - first + 1);
	}
	if (ranges > MAX_RANGES)
		printf("... and %u more\n", ranges - MAX_RANGES);
	return ranges;
}

static void save(const char *path, const struct header *h, const unsigned char *text)
{
	FILE *f = fopen(path, "wb");

	if (!f || fwrite(h, sizeof(*h), 1, f) != 1 ||
	    fwrite(text, 1, h->size, f) != h->size || fclose(f))
		fail("cannot write %s: %s", path, strerror(errno));
	printf("saved %lu bytes of kernel text\n", h->size);
}

static int check(const char *path, const struct header *now, const unsigned char *text)
{
	int fd = open(path, O_RDONLY);
	unsigned char *old;
	struct header h;
	unsigned int ranges;

	if (fd < 0)
		fail("cannot open %s: %s", path, strerror(errno));
	read_all(fd, &h, sizeof(h), 0, path);
	if (h.magic != MAGIC)
		fail("%s was not written by 'textcmp save'", path);
	if (h.start != now->start || h.size != now->size)
		fail("%s is from another boot: text was at %lx, is at %lx",
		     path, h.start, now->start);
	old = malloc(h.size);
	if (!old)
		fail("out of memory");
	read_all(fd, old, h.size, sizeof(h), path);
	close(fd);

	ranges = compare(h.start, h.size, old, text);
	free(old);
	if (ranges) {
		printf("kernel text differs in %u places\n", ranges);
		return 1;
	}
	printf("kernel text is identical (%lu bytes)\n", h.size);
	return 0;
}

int main(int argc, char **argv)
{
	struct header h = { .magic = MAGIC };
	unsigned char *text;
	unsigned long end;

	if (argc != 3 || (strcmp(argv[1], "save") && strcmp(argv[1], "check")))
		fail("usage: textcmp save|check FILE");
	read_symbols(&h.start, &end);
	h.size = end - h.start;
	text = malloc(h.size);
	if (!text)
		fail("out of memory");
	read_text(h.start, h.size, text);
	if (!strcmp(argv[1], "check"))
		return check(argv[2], &h, text);
	save(argv[2], &h, text);
	return 0;
}
