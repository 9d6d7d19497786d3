/* Loaded into the operator (LD_PRELOAD): its clock goes wrong by as many seconds as stand in the file SKEW_FILE.
 * The file is mapped, so that a new number counts at once. Clocks that only measure how long something takes stay. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int (*right)(clockid_t, struct timespec *);
static const volatile long *seconds;

static void look(void) {
    const char *path = getenv("SKEW_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        void *mapped = mmap(NULL, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
        seconds = mapped == MAP_FAILED ? NULL : mapped;
        close(file);
    }
    right = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
}

int clock_gettime(clockid_t which, struct timespec *now) {
    if (!right) look();
    int failed = right(which, now);
    if (!failed && seconds && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) now->tv_sec += *seconds;
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    int failed = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return failed;
}

time_t time(time_t *also) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (also) *also = now.tv_sec;
    return now.tv_sec;
}
