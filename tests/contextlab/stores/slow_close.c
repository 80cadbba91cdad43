// Delays close() of the database's files, to widen a race in SQLite (contextlab/database.py).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int close(int fd) {
    static int (*real)(int);
    char link[64], path[512];
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "close");
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length > 0) {
        path[length] = 0;
        if (strstr(path, "raced.sqlite3")) usleep(300);
    }
    return real(fd);
}
