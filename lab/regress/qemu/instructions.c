// A plugin of QEMU (its user emulation, version 5 or later) that counts the instructions of a
// program. At its end it writes a line for each block of code to the file named by the argument
// out=: the block's address, and how many instructions of it were executed.

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// of qemu-plugin.h, which Debian does not install
typedef uint64_t plugin_id;
struct qemu_plugin_tb;
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, void (*)(unsigned, void *), int, void *);
void qemu_plugin_register_atexit_cb(plugin_id, void (*)(plugin_id, void *), void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
int qemu_plugin_version = 1;

struct block {
	uint64_t addr, size, runs;
	struct block *next;
};

static struct block *table[1 << 16];
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static const char *out = "/dev/stderr";

static void executed(unsigned cpu, void *block)
{
	__atomic_fetch_add(&((struct block *)block)->runs, 1, __ATOMIC_RELAXED);
}

// QEMU translates a block again when its cache of translations was full.
static void translated(plugin_id id, struct qemu_plugin_tb *tb)
{
	uint64_t addr = qemu_plugin_tb_vaddr(tb), size = qemu_plugin_tb_n_insns(tb);
	struct block **head = &table[(addr ^ addr >> 16) & 0xffff], *b;
	pthread_mutex_lock(&mu);
	for (b = *head; b && (b->addr != addr || b->size != size); b = b->next)
		;
	if (!b) {
		b = calloc(1, sizeof *b);
		*b = (struct block){addr, size, 0, *head};
		*head = b;
	}
	pthread_mutex_unlock(&mu);
	qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, 0, b);
}

static void ended(plugin_id id, void *unused)
{
	FILE *f = fopen(out, "w");
	for (size_t i = 0; f && i < sizeof table / sizeof *table; i++)
		for (struct block *b = table[i]; b; b = b->next)
			fprintf(f, "%" PRIu64 " %" PRIu64 "\n", b->addr, b->size * b->runs);
	if (!f || fclose(f))
		perror(out);
}

int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], "out=", 4))
			out = strdup(argv[i] + 4);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, ended, NULL);
	return 0;
}
