/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* port_holder.c - finds the process that listens on a port: the inode of the socket from the
 * kernel's tables, then the process that has it open, if its descriptors are readable. */
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/host.h"

#define STATE_LISTEN 0x0a
#define PATH_TEXT    300

/* The inode of the socket that listens on the port, in one table; 0: none. */
static uint64_t find_socket(const char *table, uint16_t port)
{
    FILE *file = fopen(table, "re");
    uint64_t inode = 0;
    char line[512];

    while (file && !inode && fgets(line, sizeof line, file)) {
        unsigned local, state;
        uint64_t number;

        /* NOLINTNEXTLINE(cert-err34-c): the kernel writes numbers */
        if (sscanf(
                line, "%*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*s %*s %" SCNu64,
                &local, &state, &number) == 3 &&
            local == port && state == STATE_LISTEN)
            inode = number;
    }
    if (file)
        (void)fclose(file);
    return inode;
}

static bool leads_to(const char *process, const char *file, const char *wanted)
{
    char path[PATH_TEXT], target[64];
    ssize_t size;

    if (snprintf(path, sizeof path, "/proc/%s/fd/%s", process, file) >= (int)sizeof path)
        return false;
    size = readlink(path, target, sizeof target - 1);
    if (size < 0)
        return false;
    target[size] = '\0';
    return strcmp(target, wanted) == 0;
}

static bool has_open(const char *process, const char *wanted)
{
    char path[PATH_TEXT];
    const struct dirent *entry;
    bool is_found = false;
    DIR *folder;

    snprintf(path, sizeof path, "/proc/%.20s/fd", process);
    folder = opendir(path);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): only this thread reads the folder */
    while (folder && !is_found && (entry = readdir(folder)))
        is_found = leads_to(process, entry->d_name, wanted);
    if (folder)
        closedir(folder);
    return is_found;
}

static void describe_process(const char *process, char target[SERVE_HOLDER_TEXT])
{
    char path[PATH_TEXT], name[32] = "", folder[128];
    ssize_t size;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%.20s/comm", process);
    file = fopen(path, "re");
    if (file && fgets(name, sizeof name, file))
        name[strcspn(name, "\n")] = '\0';
    if (file)
        (void)fclose(file);
    snprintf(path, sizeof path, "/proc/%.20s/cwd", process);
    size = readlink(path, folder, sizeof folder - 1);
    folder[size < 0 ? 0 : size] = '\0';
    snprintf(
        target, SERVE_HOLDER_TEXT, "%s (process %.20s%s%s)", name, process, *folder ? ", in " : "",
        folder);
}

const char *serve_holder(uint16_t port, char target[SERVE_HOLDER_TEXT])
{
    uint64_t inode = find_socket("/proc/net/tcp", port);
    const struct dirent *entry;
    char wanted[64];
    DIR *folder;

    *target = '\0';
    if (!inode)
        inode = find_socket("/proc/net/tcp6", port);
    if (!inode)
        return target;
    snprintf(wanted, sizeof wanted, "socket:[%" PRIu64 "]", inode);
    folder = opendir("/proc");
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): only this thread reads the folder */
    while (folder && !*target && (entry = readdir(folder))) {
        if (isdigit((unsigned char)entry->d_name[0]) && has_open(entry->d_name, wanted))
            describe_process(entry->d_name, target);
    }
    if (folder)
        closedir(folder);
    return target;
}
