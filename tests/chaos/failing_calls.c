/* Loaded into a process before the C library: system calls on files of one folder fail, or write less than they
   were told to, and the wall clock is off, as a file in shared memory says (failing_calls.py has its fields).
   Calls go to the kernel directly, so that no other function of the C library comes between. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/falloc.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { WRITE = 1, SYNC_FILE = 2, SYNC_FOLDER = 4, RENAME = 8, OPEN = 16, TRUNCATE = 32 };
enum { ERROR = 1, SHORT = 2 };

struct control {
    int64_t calls;    /* which calls are struck, a sum of the above */
    int64_t harm;     /* ERROR or SHORT */
    int64_t passed;   /* so many of these calls are left alone first */
    int64_t left;     /* then so many are struck */
    int64_t clock_ns; /* added to the wall clock */
};

static volatile struct control *control;
static const char *folder;
static size_t folder_length;

__attribute__((constructor)) static void attach(void) {
    const char *path = getenv("FAILING_CALLS_CONTROL");
    folder = getenv("FAILING_CALLS_FOLDER");
    if (path == NULL || folder == NULL) return;
    folder_length = strlen(folder);
    int descriptor = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
    if (descriptor < 0) abort();
    void *memory = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    syscall(SYS_close, descriptor);
    if (memory == MAP_FAILED) abort();
    control = memory;
}

static int is_below(const char *path) {
    return !strncmp(path, folder, folder_length) && (path[folder_length] == '/' || !path[folder_length]);
}

static void name_of(int descriptor, char link[32]) { snprintf(link, 32, "/proc/self/fd/%d", descriptor); }

/* Whether the file or folder of a descriptor is below the folder. */
static int concerns(int descriptor) {
    char link[32], path[PATH_MAX];
    name_of(descriptor, link);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_below(path);
}

static int is_armed(int call, int harm) {
    return control && (control->calls & call) && control->harm == harm && control->left > 0;
}

/* Counts the call; whether it is one to be struck. */
static int strikes(void) {
    if (__atomic_fetch_sub(&control->passed, 1, __ATOMIC_SEQ_CST) > 0) return 0;
    return __atomic_fetch_sub(&control->left, 1, __ATOMIC_SEQ_CST) > 0;
}

static int fails(int call, int descriptor) {
    if (!is_armed(call, ERROR) || descriptor < 0 || !concerns(descriptor) || !strikes()) return 0;
    errno = EIO;
    return 1;
}

static int path_fails(int call, const char *path) {
    if (!is_armed(call, ERROR) || !is_below(path) || !strikes()) return 0;
    errno = EIO;
    return 1;
}

/* How much is written of so many bytes: all, or about half. Large writes stay on pages, as direct I/O wants. */
static size_t allowed(int descriptor, size_t size) {
    if (size < 2 || !is_armed(WRITE, SHORT) || !concerns(descriptor) || !strikes()) return size;
    return size >= 8192 ? size / 2 & ~(size_t)4095 : size / 2;
}

ssize_t write(int descriptor, const void *content, size_t size) {
    if (fails(WRITE, descriptor)) return -1;
    return syscall(SYS_write, descriptor, content, allowed(descriptor, size));
}

ssize_t pwrite64(int descriptor, const void *content, size_t size, off64_t offset) {
    if (fails(WRITE, descriptor)) return -1;
    return syscall(SYS_pwrite64, descriptor, content, allowed(descriptor, size), offset);
}

ssize_t pwritev64v2(int descriptor, const struct iovec *parts, int count, off64_t offset, int flags) {
    if (fails(WRITE, descriptor)) return -1;
    struct iovec cut[IOV_MAX];
    size_t size = 0;
    for (int part = 0; part < count; part++) size += parts[part].iov_len;
    size_t left = allowed(descriptor, size);
    if (left < size && count <= IOV_MAX) {
        int used = 0;
        for (; left; used++) {
            cut[used] = parts[used];
            if (cut[used].iov_len > left) cut[used].iov_len = left;
            left -= cut[used].iov_len;
        }
        parts = cut;
        count = used;
    }
    return syscall(SYS_pwritev2, descriptor, parts, count, offset, 0, flags);
}

ssize_t pwritev64(int descriptor, const struct iovec *parts, int count, off64_t offset) {
    return pwritev64v2(descriptor, parts, count, offset, 0);
}

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    /* Without an offset: at the file's own, where -1 is that. */
    return pwritev64v2(descriptor, parts, count, -1, 0);
}

/* As on a real disk: what could not be written is gone from the page cache, and a second fsync succeeds. */
static void lose(int descriptor, off_t size) {
    char link[32];
    name_of(descriptor, link);
    int writable = syscall(SYS_openat, AT_FDCWD, link, O_WRONLY | O_CLOEXEC, 0);
    if (writable < 0) return;
    syscall(SYS_fallocate, writable, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0L, (long)size);
    syscall(SYS_close, writable);
}

static int sync_fails(int descriptor) {
    struct stat found;
    if (!is_armed(SYNC_FILE, ERROR) && !is_armed(SYNC_FOLDER, ERROR)) return 0;
    if (fstat(descriptor, &found)) return 0;
    if (!fails(S_ISDIR(found.st_mode) ? SYNC_FOLDER : SYNC_FILE, descriptor)) return 0;
    if (S_ISREG(found.st_mode)) lose(descriptor, found.st_size);
    errno = EIO;
    return 1;
}

int fsync(int descriptor) { return sync_fails(descriptor) ? -1 : syscall(SYS_fsync, descriptor); }

int fdatasync(int descriptor) { return sync_fails(descriptor) ? -1 : syscall(SYS_fdatasync, descriptor); }

int ftruncate64(int descriptor, off64_t size) {
    return fails(TRUNCATE, descriptor) ? -1 : syscall(SYS_ftruncate, descriptor, size);
}

int rename(const char *old, const char *new) {
    return path_fails(RENAME, new) ? -1 : syscall(SYS_renameat2, AT_FDCWD, old, AT_FDCWD, new, 0);
}

static int opened(int at, const char *path, int flags, mode_t mode) {
    return path_fails(OPEN, path) ? -1 : syscall(SYS_openat, at, path, flags, mode);
}

#define MODE(flags)                                      \
    mode_t mode = 0;                                     \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {             \
        va_list more;                                    \
        va_start(more, flags);                           \
        mode = va_arg(more, mode_t);                     \
        va_end(more);                                    \
    }

int open64(const char *path, int flags, ...) {
    MODE(flags)
    return opened(AT_FDCWD, path, flags, mode);
}

int openat64(int at, const char *path, int flags, ...) {
    MODE(flags)
    return opened(at, path, flags, mode);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = syscall(SYS_clock_gettime, clock, now);
    if (!result && control && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t ns = now->tv_nsec + control->clock_ns % 1000000000;
        now->tv_sec += control->clock_ns / 1000000000 + (ns >= 1000000000) - (ns < 0);
        now->tv_nsec = ns + 1000000000 * ((ns < 0) - (ns >= 1000000000));
    }
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    (void)zone;
    int result = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return result;
}

time_t time(time_t *place) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (place) *place = now.tv_sec;
    return now.tv_sec;
}

/* The names without 64 are those of the same functions on machines of 64 bits. */
ssize_t pwrite(int, const void *, size_t, off_t) __attribute__((alias("pwrite64")));
ssize_t pwritev(int, const struct iovec *, int, off_t) __attribute__((alias("pwritev64")));
ssize_t pwritev2(int, const struct iovec *, int, off_t, int) __attribute__((alias("pwritev64v2")));
int ftruncate(int, off_t) __attribute__((alias("ftruncate64")));
int open(const char *, int, ...) __attribute__((alias("open64")));
int openat(int, const char *, int, ...) __attribute__((alias("openat64")));
