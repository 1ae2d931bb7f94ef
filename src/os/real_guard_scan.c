/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_guard_scan.c - finds the living processes of a run by a walk through /proc.
 *
 * It makes only system calls, because the helper, forked from a program with threads, runs it. A
 * process is never identified by its number alone: a pidfd is opened, its start time is read again,
 * and the signal goes through the pidfd. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "os/real_guard.h"

/* The kernel's own limit of numbers (PID_MAX_LIMIT). */
#define NUMBERS_MAX (4 << 20)
#define FOUND_SIZE  (NUMBERS_MAX * sizeof(uint32_t))
#define DEPTH_MAX   64

static size_t add_text(char *target, size_t used, const char *text)
{
    while (*text)
        target[used++] = *text++;
    target[used] = '\0';
    return used;
}

/* "<number>/<file>" */
static void name_file(char target[64], pid_t number, const char *file)
{
    char digits[16];
    size_t at = sizeof digits - 1;

    digits[at] = '\0';
    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    (void)add_text(target, add_text(target, add_text(target, 0, digits + at), "/"), file);
}

static int open_file(int proc, pid_t number, const char *file)
{
    char path[64];

    name_file(path, number, file);
    return openat(proc, path, O_RDONLY | O_CLOEXEC);
}

/* Fields are separated by one space; skips `skip` of them. */
static uint64_t read_field(const char **at, int skip)
{
    uint64_t value = 0;

    while (skip-- > 0) {
        while (**at && **at != ' ')
            ++*at;
        *at += **at == ' ';
    }
    for (; **at >= '0' && **at <= '9'; ++*at)
        value = value * 10 + (uint64_t)(**at - '0');
    *at += **at == ' ';
    return value;
}

/* "12 (a name) S 1 2 3 ...": the name may hold anything, but nothing after it holds a bracket. */
static bool parse_stat(const char *text, struct det_process_guard_seen *ret)
{
    const char *from = strchr(text, '('), *end = strrchr(text, ')'), *at;
    size_t length;

    if (!from || !end || end < from || strlen(end) < 5)
        return false;
    length = (size_t)(end - from - 1);
    if (length >= sizeof ret->name)
        length = sizeof ret->name - 1;
    memcpy(ret->name, from + 1, length);
    ret->name[length] = '\0';
    ret->state = end[2];
    at = end + 4;
    ret->parent = (pid_t)read_field(&at, 0);
    ret->group = (pid_t)read_field(&at, 0);
    ret->session = (pid_t)read_field(&at, 0);
    /* Field 22; the session is field 6. */
    ret->start = read_field(&at, 15);
    return true;
}

bool det_process_guard_find(int proc, pid_t number, struct det_process_guard_seen *ret)
{
    int file = open_file(proc, number, "stat");
    char text[1024];
    ssize_t size;

    if (file < 0)
        return false;
    size = read(file, text, sizeof text - 1);
    close(file);
    if (size <= 0)
        return false;
    text[size] = '\0';
    ret->number = number;
    return parse_stat(text, ret);
}

/* Run mark in the environment of a process. */
enum mark { MARK_NONE, MARK_TIED, MARK_KEPT };

static enum mark find_mark(const char *data, size_t size, const char *run)
{
    size_t length = strlen(run);
    const char *found = memmem(data, size, run, length);

    if (!found || (size_t)(found - data) + length >= size)
        return MARK_NONE;
    return found[length] == '-' ? MARK_KEPT : MARK_TIED;
}

static enum mark mark_of(int proc, pid_t number, const char *run)
{
    int file = open_file(proc, number, "environ");
    char data[4096 + DET_GUARD_ID_SIZE];
    enum mark mark = MARK_NONE;
    size_t kept = 0;
    ssize_t size;

    if (file < 0)
        return MARK_NONE;
    while (mark == MARK_NONE && (size = read(file, data + kept, 4096)) > 0) {
        size_t all = kept + (size_t)size;

        mark = find_mark(data, all, run);
        /* A mark may span two reads. */
        kept = all < DET_GUARD_ID_SIZE ? all : DET_GUARD_ID_SIZE;
        memmove(data, data + all - kept, kept);
    }
    close(file);
    return mark;
}

/* Compact form of a start time; 0 means none. */
static uint32_t mark_of_start(uint64_t start)
{
    uint32_t mark = (uint32_t)start + 1;

    return mark ? mark : 1;
}

/* A number found earlier may have been reused. */
static bool is_found(
    const struct det_process_guard_scan *scan, const struct det_process_guard_seen *seen)
{
    return scan->found[seen->number] == mark_of_start(seen->start);
}

/* The number of an exited process still identifies the one found, unless another process with that
 * number lives. */
static bool is_parent_found(
    const struct det_process_guard_scan *scan, const struct det_process_guard_seen *seen)
{
    pid_t number = seen->parent;
    struct det_process_guard_seen parent;

    if (number <= 0 || number >= NUMBERS_MAX || !scan->found[number])
        return false;
    return !det_process_guard_find(scan->proc, number, &parent) || is_found(scan, &parent);
}

static const struct det_process_guard_slot *slot_at(
    const struct det_process_guard_scan *scan, uint32_t index)
{
    const struct det_process_guard_slot *slot = &scan->record->slots[index];

    return slot->state == DET_GUARD_LIVE && (scan->with_kept || !slot->is_kept) ? slot : NULL;
}

static uint32_t slot_count(const struct det_process_guard_scan *scan)
{
    uint32_t count = scan->record->count;

    return count < scan->slot_count ? count : (uint32_t)scan->slot_count;
}

static const struct det_process_guard_slot *slot_of(
    const struct det_process_guard_scan *scan, const struct det_process_guard_seen *seen)
{
    for (uint32_t i = 0; i < slot_count(scan); i++) {
        const struct det_process_guard_slot *slot = slot_at(scan, i);

        if (slot && slot->number == (uint32_t)seen->number && slot->start == seen->start)
            return slot;
    }
    return NULL;
}

/* The number of a group is not reused while the group has members. So it is the recorded group
 * unless another process with that number lives, which created a new group. */
static bool is_in_group(
    const struct det_process_guard_scan *scan, const struct det_process_guard_seen *seen)
{
    for (uint32_t i = 0; i < slot_count(scan); i++) {
        const struct det_process_guard_slot *slot = slot_at(scan, i);
        struct det_process_guard_seen leader;

        if (!slot || slot->number != (uint32_t)seen->group || seen->start < slot->start ||
            seen->session != (pid_t)scan->run->session)
            continue;
        if (!det_process_guard_find(scan->proc, seen->group, &leader) ||
            leader.start == slot->start)
            return true;
    }
    return false;
}

static bool belongs_to_run(
    const struct det_process_guard_scan *scan, const struct det_process_guard_seen *seen)
{
    enum mark mark;

    if (slot_of(scan, seen) || is_in_group(scan, seen))
        return true;
    mark = mark_of(scan->proc, seen->number, scan->run->name);
    return mark == MARK_TIED || (mark == MARK_KEPT && scan->with_kept);
}

/* The walk. */

struct walk {
    struct det_process_guard_scan *scan;
    void (*visit)(struct walk *walk, const struct det_process_guard_seen *seen);
    pid_t above[DEPTH_MAX]; /* the caller and its ancestors */
    size_t above_count;
    int count, signal;
    det_process_guard_found_fn *call;
    void *user;
};

static bool is_above(const struct walk *walk, pid_t number)
{
    for (size_t i = 0; i < walk->above_count; i++)
        if (walk->above[i] == number)
            return true;
    return false;
}

static bool may_belong(const struct walk *walk, const struct det_process_guard_seen *seen)
{
    return seen->state != 'Z' && seen->state != 'X' && seen->number < NUMBERS_MAX &&
           seen->start >= walk->scan->run->owner_start && !is_above(walk, seen->number);
}

static void visit_entry(struct walk *walk, const char *name)
{
    struct det_process_guard_seen seen;
    pid_t number = 0;

    for (; *name >= '0' && *name <= '9'; name++)
        number = number * 10 + (*name - '0');
    if (*name == '\0' && number > 0 && det_process_guard_find(walk->scan->proc, number, &seen) &&
        may_belong(walk, &seen))
        walk->visit(walk, &seen);
}

static int walk_all(
    struct walk *walk, void (*visit)(struct walk *, const struct det_process_guard_seen *))
{
    _Alignas(struct dirent64) char data[8192];
    ssize_t size;

    walk->visit = visit;
    walk->count = 0;
    if (lseek(walk->scan->proc, 0, SEEK_SET) < 0)
        return -1;
    while ((size = getdents64(walk->scan->proc, data, sizeof data)) > 0) {
        for (ssize_t at = 0; at < size;) {
            const struct dirent64 *entry = (const void *)(data + at);

            visit_entry(walk, entry->d_name);
            at += entry->d_reclen;
        }
    }
    return size < 0 ? -1 : walk->count;
}

static void note_found(struct walk *walk, const struct det_process_guard_seen *seen)
{
    walk->scan->found[seen->number] = mark_of_start(seen->start);
    walk->count++;
}

static void visit_first(struct walk *walk, const struct det_process_guard_seen *seen)
{
    if (belongs_to_run(walk->scan, seen))
        note_found(walk, seen);
}

static void visit_child(struct walk *walk, const struct det_process_guard_seen *seen)
{
    if (!is_found(walk->scan, seen) && is_parent_found(walk->scan, seen))
        note_found(walk, seen);
}

static void send_signal(struct walk *walk, const struct det_process_guard_seen *seen)
{
    int descriptor = pidfd_open(seen->number, 0);
    struct det_process_guard_seen again;

    if (descriptor < 0)
        return;
    if (det_process_guard_find(walk->scan->proc, seen->number, &again) &&
        again.start == seen->start) {
        (void)pidfd_send_signal(descriptor, walk->signal, NULL, 0);
        if (walk->signal == SIGTERM)
            (void)pidfd_send_signal(descriptor, SIGCONT, NULL, 0);
    }
    close(descriptor);
}

static void visit_found(struct walk *walk, const struct det_process_guard_seen *seen)
{
    const struct det_process_guard_slot *slot;

    if (!is_found(walk->scan, seen))
        return;
    walk->count++;
    if (walk->call) {
        slot = slot_of(walk->scan, seen);
        walk->call(walk->user, seen, slot ? slot->command : seen->name);
    }
    if (walk->signal)
        send_signal(walk, seen);
}

static void find_above(struct walk *walk)
{
    struct det_process_guard_seen seen = { .parent = getpid() };

    do {
        walk->above[walk->above_count++] = seen.parent;
    } while (walk->above_count < DEPTH_MAX &&
             det_process_guard_find(walk->scan->proc, seen.parent, &seen) && seen.parent > 0);
}

/* Pages that were never written use no memory; afterwards all of them are zero again. */
static void forget_found(struct det_process_guard_scan *scan)
{
    if (madvise(scan->found, FOUND_SIZE, MADV_DONTNEED) < 0)
        memset(scan->found, 0, FOUND_SIZE);
}

int det_process_guard_scan_run(
    struct det_process_guard_scan *scan, int signal, det_process_guard_found_fn *call, void *user)
{
    struct walk walk = { .scan = scan, .signal = signal, .call = call, .user = user };
    int count;

    forget_found(scan);
    find_above(&walk);
    count = walk_all(&walk, visit_first);
    if (count <= 0)
        return count;
    while ((count = walk_all(&walk, visit_child)) > 0)
        continue;
    return count < 0 ? -1 : walk_all(&walk, visit_found);
}

int det_process_guard_scan_init(
    struct det_process_guard_scan *scan, const struct det_process_guard_run *run,
    const struct det_process_guard_record *record, size_t slot_count_max, bool with_kept)
{
    void *map = mmap(
        NULL, FOUND_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
        0);

    *scan = (struct det_process_guard_scan){
        .run = run,
        .record = record,
        .slot_count = slot_count_max,
        .with_kept = with_kept,
        .found = map,
    };
    if (map == MAP_FAILED)
        return -1;
    scan->proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (scan->proc >= 0)
        return 0;
    (void)munmap(map, FOUND_SIZE);
    return -1;
}

void det_process_guard_scan_deinit(struct det_process_guard_scan *scan)
{
    close(scan->proc);
    (void)munmap(scan->found, FOUND_SIZE);
}
