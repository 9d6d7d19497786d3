/*
 * enter-root ARGUMENT ... -- PROGRAM ...: runs a program where job steps run, as nobody.
 *
 * The arguments are those of the plugin. slurmd's entry point tries the root with this before slurmd starts. The
 * program is one of the root, which users may have replaced, so it gets no right that a job would not have.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "root.h"

#define NOBODY 65534

static int enter(int count, char **arguments)
{
	char problem[1024] = "";
	struct plan plan;
	int result = read_plan(&plan, count, arguments, problem, sizeof(problem));

	if (result == 0)
		result = enter_root(&plan, problem, sizeof(problem));
	if (result == 0 && !plan.keep_capabilities)
		result = drop_capabilities(problem, sizeof(problem));
	free_plan(&plan);
	if (result < 0)
		fprintf(stderr, "%s\n", problem);
	return result;
}

static int become_nobody(void)
{
	if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
		fprintf(stderr, "Cannot become nobody: %s.\n", strerror(errno));
		return -1;
	}
	return 0;
}

int main(int count, char **arguments)
{
	int end = 1;

	while (end < count && strcmp(arguments[end], "--") != 0)
		end++;
	if (end + 1 >= count) {
		fprintf(stderr, "usage: enter-root ARGUMENT ... -- PROGRAM ...\n");
		return 2;
	}
	if (enter(end - 1, arguments + 1) < 0)
		return 125;
	if (become_nobody() < 0)
		return 125;
	execv(arguments[end + 1], arguments + end + 1);
	fprintf(stderr, "Cannot start %s in the shared root: %s.\n", arguments[end + 1], strerror(errno));
	return 126;
}
