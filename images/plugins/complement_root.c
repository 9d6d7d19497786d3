/*
 * complement-root ARGUMENT ...: shows this node's /proc, /sys, /dev, /tmp and /run in the shared root, where the
 * container has it mounted, for sessions that sshd starts there with ChrootDirectory.
 *
 * The arguments are those of the plugin. The mounts last as long as the container; the volume itself is not changed.
 */
#include <stdio.h>

#include "root.h"

int main(int count, char **arguments)
{
	char problem[1024] = "";
	struct plan plan;
	int result = read_plan(&plan, count - 1, arguments + 1, problem, sizeof(problem));

	if (result == 0)
		result = complement_root(&plan, problem, sizeof(problem));
	free_plan(&plan);
	if (result < 0)
		fprintf(stderr, "%s\n", problem);
	return result < 0;
}
