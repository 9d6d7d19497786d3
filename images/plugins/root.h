/*
 * Enters a root directory that all nodes share, for good: the caller and whatever it starts see that directory
 * as "/", with this node's own /proc, /sys, /dev, /tmp and /run, and nothing else of the root they come from.
 * Complementing it mounts the same, but where the caller sees the shared root, and the caller stays where it is.
 */
#ifndef SHARED_ROOT_H
#define SHARED_ROOT_H

#include <stdbool.h>
#include <stddef.h>

#define MAX_BINDS 256

struct bind {
	char *source;
	char *target;
	bool read_only;
	bool is_file;	/* Where the root has a file already, and nobody is to write to it. */
};

/* What the arguments ask for; made by read_plan, given back with free_plan. */
struct plan {
	char *root;
	char *marker;	/* A file that only a complete root has; NULL: not looked at. */
	char *tmp;
	char *spool;	/* slurmd's spool directory; NULL: not shown. */
	char *run;	/* Comma-separated names below /run. */
	bool keep_capabilities;
	struct bind binds[MAX_BINDS];
	size_t bind_count;
};

/* Each gives back 0, or -1 with the cause in `problem`, which is always a whole sentence. */
int read_plan(struct plan *plan, int count, char *const *arguments, char *problem, size_t size);
int enter_root(const struct plan *plan, char *problem, size_t size);
int complement_root(const struct plan *plan, char *problem, size_t size);
int drop_capabilities(char *problem, size_t size);

void free_plan(struct plan *plan);

#endif
