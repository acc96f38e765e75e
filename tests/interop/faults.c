/* Makes calls of the C library fail on files below one directory, for faults.py.
 *
 *   cc -shared -fPIC -O1 -o faults.so faults.c -ldl
 *   FAULTS_UNDER=/tmp/x FAULTS_KINDS=write,create FAULTS_NTH=3 FAULTS_ERRNO=28 LD_PRELOAD=./faults.so webstrata ...
 *
 * FAULTS_UNDER   the directory, as an absolute path; calls on other files, pipes and sockets are never touched
 * FAULTS_KINDS   the kinds of calls to count, with commas: those of `names` below
 * FAULTS_NTH     the call that fails, from 1; 0 or nothing for none
 * FAULTS_ERRNO   how it fails; 0 for a short read or write, which does half of what it was asked to do and succeeds
 * FAULTS_STICKY  1: all later calls fail too, as on a disk that stays full
 * FAULTS_LOG     a file outside of the directory: a line for the first call that fails ("fault KIND PATH"), and at the
 *                end of the process how many calls there were of each kind ("calls KIND NUMBER")
 *
 * The path of an open file is the one that /proc says, so nothing must be remembered.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { OPEN, CREATE, READ, WRITE, SYNC, TRUNCATE, RENAME, UNLINK, MKDIR, LIST, STAT, MAP, LOCK, KINDS };
static const char *const names[KINDS] = {"open",   "create", "read", "write", "sync", "truncate", "rename",
                                         "unlink", "mkdir",  "list", "stat",  "map",  "lock"};

static char under[PATH_MAX];
static size_t under_len;
static int chosen[KINDS], fails_with, is_sticky, log_fd = -1;
static long nth;
static atomic_long counted, calls[KINDS];

static void say(const char *line) {
    if (log_fd >= 0) syscall(SYS_write, log_fd, line, strlen(line));
}

__attribute__((constructor)) static void begin(void) {
    const char *text;
    if ((text = getenv("FAULTS_UNDER")) && strlen(text) < sizeof under) strcpy(under, text);
    under_len = strlen(under);
    if ((text = getenv("FAULTS_KINDS")))
        for (int kind = 0; kind < KINDS; kind++) {
            const char *at = strstr(text, names[kind]);
            chosen[kind] = at && (at == text || at[-1] == ',');
        }
    if ((text = getenv("FAULTS_NTH"))) nth = atol(text);
    if ((text = getenv("FAULTS_ERRNO"))) fails_with = atoi(text);
    if ((text = getenv("FAULTS_STICKY"))) is_sticky = atoi(text);
    if ((text = getenv("FAULTS_LOG")))
        log_fd = (int)syscall(SYS_openat, AT_FDCWD, text, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

__attribute__((destructor)) static void end(void) {
    char line[64];
    for (int kind = 0; kind < KINDS; kind++) {
        snprintf(line, sizeof line, "calls %s %ld\n", names[kind], atomic_load(&calls[kind]));
        say(line);
    }
}

/* The path of an open file. */
static int path_of(int fd, char *path) {
    char link[32];
    if (fd == AT_FDCWD) return getcwd(path, PATH_MAX) != NULL;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long length = syscall(SYS_readlink, link, path, PATH_MAX - 1);
    path[length > 0 ? length : 0] = 0;
    return length > 0;
}

/* Counts a call on `name` in the directory `fd`, or on `fd` itself where there is no name. Whether it is to fail. */
static int fails(enum kind kind, int fd, const char *name) {
    char path[2 * PATH_MAX], line[2 * PATH_MAX + 64];
    int before = errno, hit = 0;
    if (!under_len) return 0;
    if (name && name[0] == '/') {
        snprintf(path, sizeof path, "%s", name);
    } else if (!path_of(fd, path)) {
        goto out;
    } else if (name && name[0]) {
        size_t length = strlen(path);
        snprintf(path + length, sizeof path - length, "/%s", name);
    }
    if (strncmp(path, under, under_len) || (path[under_len] && path[under_len] != '/')) goto out;
    atomic_fetch_add(&calls[kind], 1);
    if (!chosen[kind] || !nth) goto out;
    long number = atomic_fetch_add(&counted, 1) + 1;
    hit = number == nth || (is_sticky && number > nth);
    if (number == nth) {
        snprintf(line, sizeof line, "fault %s %s\n", names[kind], path);
        say(line);
    }
out:
    errno = hit ? fails_with : before;
    return hit;
}

#define REAL(result, function, ...)                                                                                    \
    static result (*real)(__VA_ARGS__);                                                                                \
    if (!real) real = (result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, function)

static int opened(const char *function, const char *path, int flags, mode_t mode) {
    int (*real)(const char *, int, mode_t) = (int (*)(const char *, int, mode_t))dlsym(RTLD_NEXT, function);
    return fails(flags & O_CREAT ? CREATE : OPEN, AT_FDCWD, path) ? -1 : real(path, flags, mode);
}

static int opened_at(const char *function, int fd, const char *path, int flags, mode_t mode) {
    int (*real)(int, const char *, int, mode_t) = (int (*)(int, const char *, int, mode_t))dlsym(RTLD_NEXT, function);
    return fails(flags & O_CREAT ? CREATE : OPEN, fd, path) ? -1 : real(fd, path, flags, mode);
}

static mode_t mode_of(int flags, va_list more) {
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? (mode_t)va_arg(more, int) : 0;
}

#define MODE(mode, flags)                                                                                              \
    va_list more;                                                                                                      \
    va_start(more, flags);                                                                                             \
    mode_t mode = mode_of(flags, more);                                                                                \
    va_end(more)

int open(const char *path, int flags, ...) {
    MODE(mode, flags);
    return opened("open", path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    MODE(mode, flags);
    return opened("open64", path, flags, mode);
}

int openat(int fd, const char *path, int flags, ...) {
    MODE(mode, flags);
    return opened_at("openat", fd, path, flags, mode);
}

int openat64(int fd, const char *path, int flags, ...) {
    MODE(mode, flags);
    return opened_at("openat64", fd, path, flags, mode);
}

/* Half of the bytes where the call is to be short, or else none. */
static size_t shortened(size_t bytes) { return fails_with || bytes < 2 ? 0 : bytes / 2; }

ssize_t read(int fd, void *buffer, size_t bytes) {
    REAL(ssize_t, "read", int, void *, size_t);
    if (!fails(READ, fd, NULL)) return real(fd, buffer, bytes);
    size_t some = shortened(bytes);
    return some ? real(fd, buffer, some) : fails_with ? -1 : real(fd, buffer, bytes);
}

ssize_t readv(int fd, const struct iovec *parts, int count) {
    REAL(ssize_t, "readv", int, const struct iovec *, int);
    if (!fails(READ, fd, NULL)) return real(fd, parts, count);
    return fails_with ? -1 : real(fd, parts, 1);
}

ssize_t write(int fd, const void *buffer, size_t bytes) {
    REAL(ssize_t, "write", int, const void *, size_t);
    if (!fails(WRITE, fd, NULL)) return real(fd, buffer, bytes);
    size_t some = shortened(bytes);
    return some ? real(fd, buffer, some) : fails_with ? -1 : real(fd, buffer, bytes);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    if (!fails(WRITE, fd, NULL)) return real(fd, parts, count);
    return fails_with ? -1 : real(fd, parts, 1);
}

int fsync(int fd) {
    REAL(int, "fsync", int);
    return fails(SYNC, fd, NULL) ? -1 : real(fd);
}

int fdatasync(int fd) {
    REAL(int, "fdatasync", int);
    return fails(SYNC, fd, NULL) ? -1 : real(fd);
}

int ftruncate64(int fd, off64_t bytes) {
    REAL(int, "ftruncate64", int, off64_t);
    return fails(TRUNCATE, fd, NULL) ? -1 : real(fd, bytes);
}

int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    return fails(RENAME, AT_FDCWD, to) ? -1 : real(from, to);
}

int unlink(const char *path) {
    REAL(int, "unlink", const char *);
    return fails(UNLINK, AT_FDCWD, path) ? -1 : real(path);
}

int unlinkat(int fd, const char *path, int flags) {
    REAL(int, "unlinkat", int, const char *, int);
    return fails(UNLINK, fd, path) ? -1 : real(fd, path, flags);
}

int rmdir(const char *path) {
    REAL(int, "rmdir", const char *);
    return fails(UNLINK, AT_FDCWD, path) ? -1 : real(path);
}

int mkdir(const char *path, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    return fails(MKDIR, AT_FDCWD, path) ? -1 : real(path, mode);
}

DIR *opendir(const char *path) {
    REAL(DIR *, "opendir", const char *);
    return fails(LIST, AT_FDCWD, path) ? NULL : real(path);
}

struct dirent64 *readdir64(DIR *directory) {
    REAL(struct dirent64 *, "readdir64", DIR *);
    return fails(LIST, dirfd(directory), NULL) ? NULL : real(directory);
}

/* Declared here because the header says that there is always a path: without one, the Rust library asks whether the
 * system has this call. */
int look(int fd, const char *path, int flags, unsigned mask, void *found) __asm__("statx");

int look(int fd, const char *path, int flags, unsigned mask, void *found) {
    REAL(int, "statx", int, const char *, int, unsigned, void *);
    return path && fails(STAT, fd, path) ? -1 : real(fd, path, flags, mask, found);
}

void *mmap64(void *address, size_t bytes, int protection, int flags, int fd, off64_t offset) {
    REAL(void *, "mmap64", void *, size_t, int, int, int, off64_t);
    return fd >= 0 && fails(MAP, fd, NULL) ? MAP_FAILED : real(address, bytes, protection, flags, fd, offset);
}

void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset) {
    REAL(void *, "mmap", void *, size_t, int, int, int, off_t);
    return fd >= 0 && fails(MAP, fd, NULL) ? MAP_FAILED : real(address, bytes, protection, flags, fd, offset);
}

int flock(int fd, int operation) {
    REAL(int, "flock", int, int);
    return !(operation & LOCK_UN) && fails(LOCK, fd, NULL) ? -1 : real(fd, operation);
}
