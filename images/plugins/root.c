/*
 * See root.h. Users who are root inside the shared root own everything in it: they can swap any directory for a
 * link at any moment, on any node. So no path below the root is ever used twice or given to mount(2). Each mount
 * point is opened once, by a lookup that cannot leave the root and takes no link (openat2), and what is mounted
 * there is attached to that very descriptor (move_mount). Needs Linux 5.12.
 */
#define _GNU_SOURCE
#include "root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define DEFAULT_MARKER "/etc/soperator-jail-populated"
#define DEFAULT_SPOOL "/var/spool/slurmd"
#define DEFAULT_RUN "slurm,munge"

/* Below /run of every step: copies of what the kubelet writes for this pod. The root's /etc has links to them. */
#define NODE_FILES "slurm-operator"
#define MAX_NODE_FILE (1 << 20)

/* Room for what programs of a step keep in /run; more would be memory of the node that no job has asked for. */
#define RUN_SIZE "64m"

#define CLOSED -1
#define AUTO_CLOSE __attribute__((cleanup(close_descriptor)))
#define AUTO_FREE __attribute__((cleanup(free_text)))

struct problem {
	char *text;
	size_t size;
};

static void close_descriptor(const int *descriptor)
{
	if (*descriptor >= 0)
		close(*descriptor);
}

static void free_text(char **text)
{
	free(*text);
}

__attribute__((format(printf, 2, 3))) static int fail(struct problem problem, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	vsnprintf(problem.text, problem.size, format, values);
	va_end(values);
	return -1;
}

/* What an error most likely means in a pod. */
static const char *hint(int error)
{
	switch (error) {
	case EPERM:
	case EACCES:
		return " (the container needs the capabilities SYS_ADMIN and SYS_CHROOT, an AppArmor profile that "
		       "allows mounts, and a seccomp profile that allows pivot_root: RuntimeDefault does not)";
	case ENOSYS:
		return " (Linux 5.12 or newer is needed)";
	default:
		return "";
	}
}

/* --- arguments ------------------------------------------------------------------------------------------- */

/* Paths are used as they are written, so only plain ones are taken. */
static bool is_plain(const char *path)
{
	if (path[0] != '/')
		return false;
	for (const char *part = path; part; part = strchr(part, '/')) {
		size_t length = strcspn(++part, "/");

		if (length == 0 && !(part == path + 1 && *part == '\0'))
			return false;
		if ((length == 1 && part[0] == '.') || (length == 2 && part[0] == '.' && part[1] == '.'))
			return false;
	}
	return true;
}

static int set_path(char **field, const char *name, const char *value, struct problem problem)
{
	if (!is_plain(value) || strcmp(value, "/") == 0)
		return fail(problem, "%s=%s: must be an absolute path below \"/\", without \".\", \"..\" or \"//\".", name, value);
	free(*field);
	*field = strdup(value);
	return *field ? 0 : fail(problem, "Out of memory.");
}

/* A path, or "none". */
static int set_optional_path(char **field, const char *name, const char *value, struct problem problem)
{
	if (strcmp(value, "none") != 0)
		return set_path(field, name, value, problem);
	free(*field);
	*field = NULL;
	return 0;
}

static int set_run(char **field, const char *value, struct problem problem)
{
	if (strchr(value, '/') || value[0] == '.' || strstr(value, ",."))
		return fail(problem, "run=%s: names of directories in /run are expected, with commas between them.", value);
	AUTO_FREE char *framed = NULL;

	if (asprintf(&framed, ",%s,", value) < 0) {
		framed = NULL;
		return fail(problem, "Out of memory.");
	}
	if (strstr(framed, ",secrets,"))
		return fail(problem, "run=%s: /run/secrets holds the pod's credentials and is never shown to jobs.", value);
	free(*field);
	*field = strdup(value);
	return *field ? 0 : fail(problem, "Out of memory.");
}

/* A pod's service account token lies in /run/secrets, whatever that is called. */
static bool shows_secrets(const char *source)
{
	const char *run = strncmp(source, "/var/run", 8) == 0 ? source + 4 : source;

	return strcmp(run, "/run") == 0 || strcmp(run, "/run/secrets") == 0 || strncmp(run, "/run/secrets/", 13) == 0;
}

static int add_bind(struct plan *plan, const char *name, const char *value, struct problem problem)
{
	AUTO_FREE char *source = strdup(value);
	char *target;

	if (!source)
		return fail(problem, "Out of memory.");
	if (plan->bind_count == MAX_BINDS)
		return fail(problem, "%s=%s: at most %d directories and files can be bound.", name, value, MAX_BINDS);
	target = strchr(source, ':');
	if (target)
		*target++ = '\0';
	if (shows_secrets(source))
		return fail(problem, "%s=%s: /run/secrets holds the pod's credentials and is never shown to jobs.", name, value);

	struct bind *bind = &plan->binds[plan->bind_count++];

	bind->is_file = strcmp(name, "file") == 0;
	bind->read_only = strcmp(name, "bind") != 0;
	if (set_path(&bind->source, name, source, problem) < 0)
		return -1;
	return set_path(&bind->target, name, target ? target : source, problem);
}

static int set_capabilities(struct plan *plan, const char *value, struct problem problem)
{
	plan->keep_capabilities = strcmp(value, "keep") == 0;
	if (!plan->keep_capabilities && strcmp(value, "drop") != 0)
		return fail(problem, "capabilities=%s: \"drop\" or \"keep\" is expected.", value);
	return 0;
}

static int read_argument(struct plan *plan, const char *argument, struct problem problem)
{
	const char *value = strchr(argument, '=');
	size_t length = value ? (size_t)(value++ - argument) : 0;
	const struct {
		const char *name;
		char **field;
		int (*set)(char **, const char *, const char *, struct problem);
	} paths[] = {
		{"root", &plan->root, set_path},
		{"tmp", &plan->tmp, set_path},
		{"spool", &plan->spool, set_optional_path},
		{"marker", &plan->marker, set_optional_path},
	};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (length == strlen(paths[i].name) && strncmp(argument, paths[i].name, length) == 0)
			return paths[i].set(paths[i].field, paths[i].name, value, problem);
	if (strncmp(argument, "run=", 4) == 0)
		return set_run(&plan->run, value, problem);
	if (strncmp(argument, "bind=", 5) == 0)
		return add_bind(plan, "bind", value, problem);
	if (strncmp(argument, "ro=", 3) == 0)
		return add_bind(plan, "ro", value, problem);
	if (strncmp(argument, "file=", 5) == 0)
		return add_bind(plan, "file", value, problem);
	if (strncmp(argument, "capabilities=", 13) == 0)
		return set_capabilities(plan, value, problem);
	return fail(problem, "Unknown argument \"%s\": root=, tmp=, spool=, run=, bind=, ro=, file=, marker= and capabilities= are known.", argument);
}

int read_plan(struct plan *plan, int count, char *const *arguments, char *text, size_t size)
{
	struct problem problem = {text, size};

	*plan = (struct plan){
		.marker = strdup(DEFAULT_MARKER),
		.tmp = strdup("/tmp"),
		.spool = strdup(DEFAULT_SPOOL),
		.run = strdup(DEFAULT_RUN),
	};
	if (!plan->marker || !plan->tmp || !plan->spool || !plan->run)
		return fail(problem, "Out of memory.");
	for (int i = 0; i < count; i++)
		if (read_argument(plan, arguments[i], problem) < 0)
			return -1;
	if (!plan->root)
		return fail(problem, "The argument root= is missing: the directory that job steps run in.");
	return 0;
}

void free_plan(struct plan *plan)
{
	free(plan->root);
	free(plan->marker);
	free(plan->tmp);
	free(plan->spool);
	free(plan->run);
	for (size_t i = 0; i < plan->bind_count; i++) {
		free(plan->binds[i].source);
		free(plan->binds[i].target);
	}
	*plan = (struct plan){0};
}

/* --- mounts ---------------------------------------------------------------------------------------------- */

/* Opens a path of the shared root. No lookup leaves the root, and none passes a link of any kind. */
static int open_inside(int root, const char *path, uint64_t flags)
{
	struct open_how how = {
		.flags = flags | O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS,
	};

	for (int attempt = 0;; attempt++) {
		int opened = syscall(SYS_openat2, root, path, &how, sizeof(how));

		/* The kernel could not tell whether a rename elsewhere led out of the root; it asks to be asked again. */
		if (opened >= 0 || errno != EAGAIN || attempt == 100)
			return opened;
	}
}

/* Says why a path of the root cannot be used; errno is the cause. */
static int unusable(const struct plan *plan, const char *path, struct problem problem)
{
	switch (errno) {
	case ENOENT:
		return fail(problem, "The shared root %s has no %s; it is made when the root is populated.", plan->root, path);
	case ELOOP:
		return fail(problem, "%s in the shared root %s is a symbolic link or lies behind one; it must be a directory.", path, plan->root);
	case ENOTDIR:
		return fail(problem, "%s in the shared root %s is not a directory.", path, plan->root);
	default:
		return fail(problem, "Cannot open %s in the shared root %s: %s.", path, plan->root, strerror(errno));
	}
}

/* A copy of the mounts at and below a directory of the container, or of one file, attached nowhere yet. */
static int copy_of(const char *source, bool read_only, bool is_file, struct problem problem)
{
	AUTO_CLOSE int tree = CLOSED;
	struct stat status;
	struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY};
	int result;

	tree = open_tree(AT_FDCWD, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	if (tree < 0)
		return fail(problem, "Cannot show %s to the step: %s%s.", source, strerror(errno), hint(errno));
	if (fstat(tree, &status) < 0)
		return fail(problem, "Cannot look at %s: %s.", source, strerror(errno));
	/* A mount on a single file is lost without a word when somebody on another node replaces the file. */
	if (is_file && !S_ISREG(status.st_mode))
		return fail(problem, "%s is not a regular file.", source);
	if (!is_file && !S_ISDIR(status.st_mode))
		return fail(problem, "%s is not a directory; only directories are shown to steps.", source);
	if (read_only && mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof(attributes)) < 0)
		return fail(problem, "Cannot make %s read-only for the step: %s%s.", source, strerror(errno), hint(errno));
	result = tree;
	tree = CLOSED;
	return result;
}

static int attach(int tree, int target, const char *path, struct problem problem)
{
	if (move_mount(tree, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return fail(problem, "Cannot mount %s in the shared root: %s%s.", path, strerror(errno), hint(errno));
	return 0;
}

static int show(const struct plan *plan, int root, const struct bind *bind, struct problem problem)
{
	AUTO_CLOSE int tree = copy_of(bind->source, bind->read_only, bind->is_file, problem);
	AUTO_CLOSE int target = CLOSED;
	struct stat status;

	if (tree < 0)
		return -1;
	target = open_inside(root, bind->target, bind->is_file ? 0 : O_DIRECTORY);
	if (target < 0)
		return unusable(plan, bind->target, problem);
	if (bind->is_file && (fstat(target, &status) < 0 || !S_ISREG(status.st_mode)))
		return fail(problem, "%s in the shared root %s is not a regular file.", bind->target, plan->root);
	return attach(tree, target, bind->target, problem);
}

/* Copies a file of the container, if there is one, into a directory that nobody else has. */
static int copy_file(int directory, const char *name, const char *source, struct problem problem)
{
	AUTO_FREE char *content = malloc(MAX_NODE_FILE);
	AUTO_CLOSE int from = open(source, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	AUTO_CLOSE int to = CLOSED;
	ssize_t length;

	if (from < 0)
		return errno == ENOENT ? 0 : fail(problem, "Cannot open %s: %s.", source, strerror(errno));
	if (!content)
		return fail(problem, "Out of memory.");
	/* What the kubelet writes is far smaller; one read takes a whole regular file of this size. */
	length = read(from, content, MAX_NODE_FILE);
	if (length < 0)
		return fail(problem, "Cannot read %s: %s.", source, strerror(errno));
	to = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (to < 0 || fchmod(to, 0644) < 0 || write(to, content, length) != length)
		return fail(problem, "Cannot write /run/" NODE_FILES "/%s for the step: %s.", name, strerror(errno));
	return 0;
}

static int write_host_name(int directory, struct problem problem)
{
	AUTO_CLOSE int file = CLOSED;
	char name[257] = "";
	size_t length;

	if (gethostname(name, sizeof(name) - 2) < 0)
		return fail(problem, "Cannot read this node's host name: %s.", strerror(errno));
	length = strlen(name);
	name[length++] = '\n';
	file = openat(directory, "hostname", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (file < 0 || fchmod(file, 0644) < 0 || write(file, name, length) != (ssize_t)length)
		return fail(problem, "Cannot write /run/" NODE_FILES "/hostname for the step: %s.", strerror(errno));
	return 0;
}

static int fill_node_files(int run, struct problem problem)
{
	AUTO_CLOSE int directory = CLOSED;

	if (mkdirat(run, NODE_FILES, 0755) < 0 || fchmodat(run, NODE_FILES, 0755, 0) < 0)
		return fail(problem, "Cannot make /run/" NODE_FILES " for the step: %s.", strerror(errno));
	directory = openat(run, NODE_FILES, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (directory < 0)
		return fail(problem, "Cannot open /run/" NODE_FILES " of the step: %s.", strerror(errno));
	if (copy_file(directory, "hosts", "/etc/hosts", problem) < 0)
		return -1;
	if (copy_file(directory, "resolv.conf", "/etc/resolv.conf", problem) < 0)
		return -1;
	return write_host_name(directory, problem);
}

/* An empty tmpfs, attached nowhere yet. */
static int new_run(struct problem problem)
{
	AUTO_CLOSE int context = fsopen("tmpfs", FSOPEN_CLOEXEC);
	int made;

	if (context < 0 || fsconfig(context, FSCONFIG_SET_STRING, "mode", "0755", 0) < 0 ||
	    fsconfig(context, FSCONFIG_SET_STRING, "size", RUN_SIZE, 0) < 0 ||
	    fsconfig(context, FSCONFIG_SET_STRING, "source", "run", 0) < 0 ||
	    fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return fail(problem, "Cannot make a /run for the step: %s%s.", strerror(errno), hint(errno));
	made = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (made < 0)
		return fail(problem, "Cannot mount a /run for the step: %s%s.", strerror(errno), hint(errno));
	return made;
}

/* One directory of the container's /run; it is left out where the container has none. */
static int show_in_run(int run, const char *name, struct problem problem)
{
	AUTO_CLOSE int tree = CLOSED;
	AUTO_CLOSE int target = CLOSED;
	AUTO_FREE char *source = NULL;

	if (asprintf(&source, "/run/%s", name) < 0) {
		source = NULL;
		return fail(problem, "Out of memory.");
	}
	if (access(source, F_OK) < 0 && errno == ENOENT)
		return 0;
	tree = copy_of(source, false, false, problem);
	if (tree < 0)
		return -1;
	if (mkdirat(run, name, 0755) < 0)
		return fail(problem, "Cannot make %s for the step: %s.", source, strerror(errno));
	target = openat(run, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (target < 0)
		return fail(problem, "Cannot open %s of the step: %s.", source, strerror(errno));
	return attach(tree, target, source, problem);
}

/* A /run of the step's own: the container's has the pod's service account token in it. */
static int make_run(const struct plan *plan, int root, struct problem problem)
{
	AUTO_CLOSE int run = new_run(problem);
	AUTO_CLOSE int target = CLOSED;
	AUTO_FREE char *names = strdup(plan->run);
	char *rest = NULL;

	if (run < 0)
		return -1;
	if (!names)
		return fail(problem, "Out of memory.");
	if (fill_node_files(run, problem) < 0)
		return -1;
	target = open_inside(root, "/run", O_DIRECTORY);
	if (target < 0)
		return unusable(plan, "/run", problem);
	if (attach(run, target, "/run", problem) < 0)
		return -1;
	for (char *name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
		if (show_in_run(run, name, problem) < 0)
			return -1;
	return 0;
}

/* A root that is being made, or was made halfway, has no marker. */
static int check_marker(const struct plan *plan, int root, struct problem problem)
{
	AUTO_CLOSE int marker = CLOSED;
	struct stat status;

	if (!plan->marker)
		return 0;
	marker = open_inside(root, plan->marker, 0);
	if (marker < 0 && errno == ENOENT)
		return fail(problem, "The shared root %s is not complete: it has no %s. It was never populated, or is being populated.", plan->root, plan->marker);
	if (marker < 0)
		return unusable(plan, plan->marker, problem);
	if (fstat(marker, &status) < 0 || !S_ISREG(status.st_mode))
		return fail(problem, "%s in the shared root %s is not a regular file.", plan->marker, plan->root);
	return 0;
}

static int mount_all(const struct plan *plan, int root, struct problem problem)
{
	/*
	 * The container's /proc and /sys, not new ones: the container runtime has made parts of them read-only or
	 * has covered them, and new ones would show everything again.
	 */
	const struct bind own[] = {
		{.source = "/proc", .target = "/proc"},
		{.source = "/sys", .target = "/sys"},
		{.source = "/dev", .target = "/dev"},
		{.source = plan->tmp, .target = "/tmp"},
		{.source = plan->spool, .target = plan->spool},
	};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (own[i].source && show(plan, root, &own[i], problem) < 0)
			return -1;
	if (make_run(plan, root, problem) < 0)
		return -1;
	for (size_t i = 0; i < plan->bind_count; i++)
		if (show(plan, root, &plan->binds[i], problem) < 0)
			return -1;
	return 0;
}

/* Makes the root "/" and forgets the container's. */
static int change_root(const struct plan *plan, int root, struct problem problem)
{
	struct stat wanted, now;

	if (fchdir(root) < 0)
		return fail(problem, "Cannot change to the shared root %s: %s.", plan->root, strerror(errno));
	/* The old root lands on top of the new one and is taken off again: no directory is needed for it. */
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return fail(problem, "Cannot make %s the root of the step: %s%s.", plan->root, strerror(errno), hint(errno));
	if (umount2(".", MNT_DETACH) < 0)
		return fail(problem, "Cannot remove the container's root from the step: %s%s.", strerror(errno), hint(errno));
	if (chdir("/") < 0)
		return fail(problem, "Cannot change to / in the shared root %s: %s.", plan->root, strerror(errno));
	if (fstat(root, &wanted) < 0 || stat("/", &now) < 0)
		return fail(problem, "Cannot look at the shared root %s: %s.", plan->root, strerror(errno));
	if (wanted.st_dev != now.st_dev || wanted.st_ino != now.st_ino)
		return fail(problem, "The step's root is not the shared root %s after entering it.", plan->root);
	return 0;
}

int enter_root(const struct plan *plan, char *text, size_t size)
{
	struct problem problem = {text, size};
	AUTO_CLOSE int root = CLOSED;

	if (unshare(CLONE_NEWNS) < 0)
		return fail(problem, "Cannot give the step mounts of its own: %s%s.", strerror(errno), hint(errno));
	/* Nothing that is mounted here reaches the container or other steps. */
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return fail(problem, "Cannot separate the step's mounts from the container's: %s%s.", strerror(errno), hint(errno));
	/* With whatever the pod has mounted below it. */
	root = copy_of(plan->root, false, false, problem);
	if (root < 0)
		return -1;
	if (move_mount(root, "", AT_FDCWD, plan->root, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return fail(problem, "Cannot mount the shared root %s: %s%s.", plan->root, strerror(errno), hint(errno));
	if (check_marker(plan, root, problem) < 0)
		return -1;
	if (mount_all(plan, root, problem) < 0)
		return -1;
	return change_root(plan, root, problem);
}

/* Whether somebody did it before in this container. */
static int is_complemented(const struct plan *plan, int root, struct problem problem)
{
	AUTO_CLOSE int proc = open_inside(root, "/proc", O_DIRECTORY);
	struct statfs status;

	if (proc < 0)
		return unusable(plan, "/proc", problem);
	if (fstatfs(proc, &status) < 0)
		return fail(problem, "Cannot look at /proc in the shared root %s: %s.", plan->root, strerror(errno));
	return status.f_type == PROC_SUPER_MAGIC;
}

int complement_root(const struct plan *plan, char *text, size_t size)
{
	struct problem problem = {text, size};
	AUTO_CLOSE int root = open(plan->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int is_done;

	if (root < 0)
		return fail(problem, "Cannot open the shared root %s: %s.", plan->root, strerror(errno));
	if (check_marker(plan, root, problem) < 0)
		return -1;
	is_done = is_complemented(plan, root, problem);
	if (is_done != 0)
		return is_done < 0 ? -1 : 0;
	/* Also where the pod shares this volume's mounts with its node, nothing reaches the node. */
	if (mount(NULL, plan->root, NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return fail(problem, "Cannot keep mounts in the shared root %s to this container: %s%s.", plan->root, strerror(errno), hint(errno));
	return mount_all(plan, root, problem);
}

/* --- capabilities ---------------------------------------------------------------------------------------- */

/* With any of these, root in a job could reach the container's root, or the machine, through another process. */
static const int DANGEROUS[] = {
	CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_SYS_MODULE, CAP_SYS_RAWIO, CAP_SYS_BOOT, CAP_SYSLOG,
	CAP_DAC_READ_SEARCH, CAP_MAC_ADMIN, CAP_MAC_OVERRIDE, CAP_BPF, CAP_PERFMON,
};

int drop_capabilities(char *text, size_t size)
{
	struct problem problem = {text, size};
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data) < 0)
		return fail(problem, "Cannot read the capabilities of the task: %s.", strerror(errno));
	for (size_t i = 0; i < sizeof(DANGEROUS) / sizeof(DANGEROUS[0]); i++) {
		int capability = DANGEROUS[i];

		/* Also from what is handed on: root gets both when it starts a program. */
		data[CAP_TO_INDEX(capability)].inheritable &= ~CAP_TO_MASK(capability);
		if (prctl(PR_CAPBSET_READ, capability, 0, 0, 0) != 1)
			continue;
		if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0)
			return fail(problem, "Cannot take capability %d from the task: %s (SETPCAP is needed; capabilities=keep leaves them).", capability, strerror(errno));
	}
	if (syscall(SYS_capset, &header, data) < 0)
		return fail(problem, "Cannot change the capabilities of the task: %s.", strerror(errno));
	return 0;
}
