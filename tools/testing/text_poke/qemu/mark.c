// SPDX-License-Identifier: GPL-2.0
/*
 * mark - tell the emulator's plugin where a piece of work begins and ends
 *
 *	mark N				set mark N (0..255)
 *	mark nothing NAME		measure what measuring costs
 *	mark write NAME FILE [TEXT]	measure opening FILE, writing TEXT (or
 *					what comes on stdin) and closing it
 *	mark settle NAME		measure until CPUs stop interrupting each
 *					other
 *
 * A measured piece runs between marks 1 and 2; if it has to look now and then
 * whether it is done, every look is left out by a pair of marks of its own.
 * One line is printed:
 *
 *	step NAME pairs=N ns=N cal=N KEY=N...
 *
 * cal is the number of function-call interrupts, the keys are the counters in
 * debugfs x86/text_poke, if the kernel has them: what the piece added, or, for
 * names ending in _max_ns, the largest since the last reset, which is done
 * before the piece starts; batch_size is what it is at the end.
 *
 * Starting a program costs far more than most pieces do, the more so with all
 * functions traced. So this program does the work itself, and the marks
 * enclose nothing but the system calls.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BEGIN		1
#define END		2

#define ENGINE		"/sys/kernel/debug/x86/text_poke"

#define MAX_COUNTERS	32
#define POLL_NS		100000000ull
#define SETTLED_NS	4000000000ull

/* A NOP's address is encoded in it, so each mark is an instruction of its own. */
asm(".pushsection .text\n\t"
	".balign 8\n"
	"mark_table:\n\t"
	".set n, 0\n\t"
	".rept 256\n\t"
	"nopl 0x54504d00 + n(%rax)\n\t"
	"ret\n\t"
	".set n, n + 1\n\t"
	".endr\n\t"
	".popsection");

#define MARK_SIZE	8

static void mark(unsigned int n)
{
	const char *table;

	asm("lea mark_table(%%rip), %0" : "=r" (table));
	((void (*)(void))(table + n * MARK_SIZE))();
}

struct counter {
	char name[NAME_MAX + 1];
	long long value;
};

struct snapshot {
	long long cal;
	int n;
	struct counter counter[MAX_COUNTERS];
};

static char buf[1 << 20];

static void die(const char *what, const char *name)
{
	fprintf(stderr, "mark: cannot %s %s: %s\n", what, name, strerror(errno));
	exit(1);
}

/* Returns the length, -1 if the file is not there or cannot be read. */
static ssize_t read_all(int fd)
{
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return -1;
	while ((n = read(fd, buf + len, sizeof(buf) - 1 - len)) > 0)
		len += n;
	buf[len] = '\0';
	return n < 0 ? -1 : (ssize_t)len;
}

static ssize_t read_file(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY);
	ssize_t len = read_all(fd);

	if (fd >= 0)
		close(fd);
	return len;
}

static long long call_interrupts(void)
{
	long long sum = 0;
	char *p, *end;

	if (read_file(AT_FDCWD, "/proc/interrupts") < 0)
		die("read", "/proc/interrupts");
	p = strstr(buf, "CAL:");
	if (!p)
		return 0;
	for (p += 4;; p = end) {
		long long n = strtoll(p, &end, 10);

		if (end == p)
			return sum;
		sum += n;
	}
}

static bool is_sum(const char *name)
{
	size_t len = strlen(name);

	return strcmp(name, "batch_size") &&
	       (len < 7 || strcmp(name + len - 7, "_max_ns"));
}

static void take_snapshot(struct snapshot *s)
{
	DIR *dir = opendir(ENGINE);
	struct dirent *entry;

	s->n = 0;
	while (dir && (entry = readdir(dir)) && s->n < MAX_COUNTERS) {
		struct counter *c = &s->counter[s->n];
		char *end;

		if (read_file(dirfd(dir), entry->d_name) <= 0)
			continue;
		c->value = strtoll(buf, &end, 10);
		if (end == buf || *end != '\n')
			continue;
		snprintf(c->name, sizeof(c->name), "%s", entry->d_name);
		s->n++;
	}
	if (dir)
		closedir(dir);
	s->cal = call_interrupts();
}

static void reset_counters(void)
{
	int fd = open(ENGINE "/reset", O_WRONLY);

	if (fd < 0)
		return;
	if (write(fd, "1\n", 2) < 0)
		die("write", ENGINE "/reset");
	close(fd);
}

static long long value_of(const struct snapshot *s, const char *name)
{
	for (int i = 0; i < s->n; i++)
		if (!strcmp(s->counter[i].name, name))
			return s->counter[i].value;
	return 0;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static void write_text(const char *name, const char *text, size_t len)
{
	int fd = open(name, O_WRONLY | O_TRUNC);
	ssize_t n;

	if (fd < 0)
		die("open", name);
	/* tracefs takes a word at a time */
	for (; len; text += n, len -= n) {
		n = write(fd, text, len);
		if (n <= 0)
			die("write", name);
	}
	if (close(fd))
		die("close", name);
}

/*
 * Work in the background that patches text interrupts the other CPUs, three
 * times at least: it is over when that has not been seen for a while. (That a
 * probe counts as optimised says nothing, the kernel sets the flag when it puts
 * it on the list of those to optimise.)
 *
 * Returns the number of pairs of marks; *ns is when it was seen last.
 */
static int settle(uint64_t *ns)
{
	const struct timespec poll = { .tv_nsec = POLL_NS };
	uint64_t start = now_ns(), changed = start;
	long long was = call_interrupts();
	int pairs = 0;

	do {
		long long is;

		mark(BEGIN);
		nanosleep(&poll, NULL);
		mark(END);
		pairs++;
		is = call_interrupts();
		if (is - was >= 3)
			changed = now_ns();
		was = is;
	} while (now_ns() - changed < SETTLED_NS);

	*ns = changed - start;
	return pairs;
}

static void usage(void)
{
	fprintf(stderr,
		"mark: use mark N | nothing NAME | write NAME FILE [TEXT] | settle NAME\n");
	exit(2);
}

int main(int argc, char **argv)
{
	static struct snapshot before, after;
	const char *text = NULL;
	size_t len = 0;
	uint64_t ns;
	int pairs = 1;

	if (argc == 2) {
		char *end;
		unsigned long n = strtoul(argv[1], &end, 10);

		if (end == argv[1] || *end || n > 255)
			usage();
		mark(n);
		return 0;
	}
	if (argc < 3)
		usage();

	if (!strcmp(argv[1], "write")) {
		if (argc < 4 || argc > 5)
			usage();
		text = argc == 5 ? argv[4] : NULL;
		if (!text) {
			if (read_all(STDIN_FILENO) < 0)
				die("read", "standard input");
			text = strdup(buf);
			if (!text)
				die("keep", "standard input");
		}
		len = strlen(text);
	} else if ((strcmp(argv[1], "settle") && strcmp(argv[1], "nothing")) ||
		   argc != 3) {
		usage();
	}

	reset_counters();
	take_snapshot(&before);
	if (!strcmp(argv[1], "settle")) {
		pairs = settle(&ns);
	} else {
		uint64_t start = now_ns();

		mark(BEGIN);
		if (text)
			write_text(argv[3], text, len);
		mark(END);
		ns = now_ns() - start;
	}
	take_snapshot(&after);

	printf("step %s pairs=%d ns=%llu cal=%lld", argv[2], pairs,
	       (unsigned long long)ns, after.cal - before.cal);
	for (int i = 0; i < after.n; i++) {
		const struct counter *c = &after.counter[i];

		printf(" %s=%lld", c->name, is_sum(c->name) ?
		       c->value - value_of(&before, c->name) : c->value);
	}
	putchar('\n');
	return 0;
}
