/*
 * SPANK plugin: job steps run in a root that all nodes share. In plugstack.conf:
 *
 *	required /usr/lib/slurm-operator/plugins/shared_root.so root=/mnt/jail ro=/usr/lib/slurm-operator/plugins
 *
 * slurmstepd enters after its plugins are loaded and before it opens any file of the job, so scripts, working
 * directories and output files are those of the root. Also the extern step enters: its process belongs to the
 * user, who could otherwise see the container's root through /proc. Prolog and Epilog stay in the container.
 */
#include <slurm/spank.h>
#include <stdbool.h>
#include <unistd.h>

#include "root.h"

SPANK_PLUGIN(shared_root, 1);

static bool is_inside = false;
static bool keeps_capabilities = false;

static int enter(int count, char **arguments)
{
	char problem[1024] = "";
	struct plan plan;
	int result = read_plan(&plan, count, arguments, problem, sizeof(problem));

	if (result == 0)
		result = enter_root(&plan, problem, sizeof(problem));
	keeps_capabilities = plan.keep_capabilities;
	free_plan(&plan);
	if (result < 0) {
		slurm_error("shared_root: the step does not start: %s", problem);
		return ESPANK_ERROR;
	}
	is_inside = true;
	return ESPANK_SUCCESS;
}

/* Clients load this plugin too; there it does nothing. */
int slurm_spank_init_post_opt(spank_t spank, int count, char **arguments)
{
	(void)spank;
	if (spank_context() != S_CTX_REMOTE)
		return ESPANK_SUCCESS;
	return enter(count, arguments);
}

/*
 * In the process that becomes the task, as root. A line in plugstack.conf that says "optional" makes Slurm pass
 * over errors of a plugin, so this process ends here rather than run the task outside the root.
 */
int slurm_spank_task_init_privileged(spank_t spank, int count, char **arguments)
{
	char problem[1024] = "";

	(void)spank;
	(void)count;
	(void)arguments;
	if (!is_inside) {
		slurm_error("shared_root: the task does not start: the step is not in the shared root");
		_exit(1);
	}
	if (!keeps_capabilities && drop_capabilities(problem, sizeof(problem)) < 0) {
		slurm_error("shared_root: the task does not start: %s", problem);
		_exit(1);
	}
	return ESPANK_SUCCESS;
}
