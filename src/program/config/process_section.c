/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* process_section.c - process settings of a task in detent.yaml: environment files, limits, a log
 * file; and time zones. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/memory.h"
#include "config/config_internal.h"
#include "os/os.h"
#include "terminal/input.h"
#include "terminal/trust.h"

#define ZONES         "/usr/share/zoneinfo"
#define ZONE_NAME_MAX 64
#define ZONE_FILE_MAX (64 << 10)
#define ENV_FILE_MAX  (64 << 10)

/* "Europe/Berlin": no path that leaves the folder. */
static bool is_zone_name(const char *name)
{
    size_t size = strlen(name);

    if (size == 0 || size > ZONE_NAME_MAX || !isalpha((unsigned char)*name) || strstr(name, ".."))
        return false;
    for (size_t i = 0; i < size; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("/_+-", name[i]))
            return false;
    return true;
}

int config_take_zone(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    struct det_world *world = det_world_real();
    const struct det_zone **ret = target;
    struct det_zone *zone;
    char path[sizeof ZONES + ZONE_NAME_MAX + 2], *data;
    size_t size = 0;
    int r;

    if (!det_datum_is_scalar(node) || !is_zone_name(node->text))
        return reader_fail(
            reader, node, "'%s' is the name of a time zone, such as Europe/Berlin or UTC",
            key->name);
    (void)snprintf(path, sizeof path, ZONES "/%s", node->text);
    zone = det_arena_alloc(reader->arena, sizeof *zone);
    if (!zone)
        return reader_no_memory(reader, node);
    r = det_file_load(world, NULL, path, ZONE_FILE_MAX, &data, &size);
    if (r < 0)
        return reader_fail(
            reader, node, "there is no time zone '%s': %s cannot be read%s", node->text, path,
            cli_is_folder(ZONES) ? "" : "; install the package tzdata");
    r = det_zone_parse(data, size, det_world_now(world, DET_CLOCK_WALL) - 366 * DET_DAY, zone);
    det_free(NULL, data, size + 1);
    if (r < 0)
        return reader_fail(reader, node, "%s is not a file of a time zone", path);
    *ret = zone;
    return 0;
}

/* Limits. */

struct limits {
    det_time cpu;
    uint64_t sizes[DET_LIMIT_KINDS];
};

static int add_limits(
    struct cli_reader *reader, const struct det_datum *node, const struct limits *limits,
    const struct det_datum *const *nodes, struct det_process_spec *process)
{
    struct det_process_limit *items =
        det_arena_array(reader->arena, DET_LIMIT_KINDS, sizeof *items);

    if (!items)
        return reader_no_memory(reader, node);
    process->limits = items;
    for (unsigned i = 0; i < DET_LIMIT_KINDS; i++) {
        uint64_t most = limits->sizes[i];

        if (!nodes[i])
            continue;
        /* A started second counts. */
        if (i == DET_LIMIT_CPU)
            most = ((uint64_t)limits->cpu + DET_SECOND - 1) / DET_SECOND;
        items[process->limit_count++] =
            (struct det_process_limit){ .kind = (enum det_limit_kind)i, .most = most };
    }
    det_assert(process->limit_count <= DET_LIMIT_KINDS);
    return 0;
}

static int take_count(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    uint32_t number = 0;
    int r = config_take_number(reader, node, key, &number);

    *(uint64_t *)target = number;
    return r;
}

int config_take_limits(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
#define SIZE_OF(kind) offsetof(struct limits, sizes) + (kind) * sizeof(uint64_t)
    static const struct config_key keys[DET_LIMIT_KINDS] = {
        [DET_LIMIT_CPU] =
            CONFIG_RANGE("cpu", config_take_span, offsetof(struct limits, cpu), DET_SECOND, 0),
        [DET_LIMIT_MEMORY] = CONFIG_RANGE(
            "memory", config_take_size, SIZE_OF(DET_LIMIT_MEMORY), 1 << 20, 1ULL << 42),
        [DET_LIMIT_OPEN_FILES] =
            CONFIG_RANGE("open_files", take_count, SIZE_OF(DET_LIMIT_OPEN_FILES), 3, 1 << 20),
        [DET_LIMIT_PROCESSES] =
            CONFIG_RANGE("processes", take_count, SIZE_OF(DET_LIMIT_PROCESSES), 1, 1 << 22),
        [DET_LIMIT_CORE] =
            CONFIG_RANGE("core", config_take_size, SIZE_OF(DET_LIMIT_CORE), 0, 1ULL << 42),
        [DET_LIMIT_FILE_SIZE] = CONFIG_RANGE(
            "file_size", config_take_size, SIZE_OF(DET_LIMIT_FILE_SIZE), 0, 1ULL << 42),
        [DET_LIMIT_STACK] =
            CONFIG_RANGE("stack", config_take_size, SIZE_OF(DET_LIMIT_STACK), 64 << 10, 1ULL << 40),
    };
#undef SIZE_OF
    const struct det_datum *nodes[DET_LIMIT_KINDS];
    struct limits limits = { 0 };
    int r;

    (void)key;
    r = config_take_mapping(reader, node, CONFIG_TABLE("'limits' of a task", keys), &limits, nodes);
    return r < 0 ? r : add_limits(reader, node, &limits, nodes, target);
}

/* Files of variables. */

int config_take_paths(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    const char *const **ret = target;
    const struct det_datum *item = node->kind == DET_DATUM_LIST ? node->first : node;
    const char **paths = det_arena_array(reader->arena, node->count + 2, sizeof *paths);
    size_t count = 0;

    if (!paths)
        return reader_no_memory(reader, node);
    for (; item; item = node->kind == DET_DATUM_LIST ? item->next : NULL) {
        if (!det_datum_is_scalar(item) || !*item->text)
            return reader_fail(
                reader, item, "'%s' is the path of a file, or a sequence of such", key->name);
        paths[count++] = item->text;
    }
    *ret = paths;
    return 0;
}

/* Returns the value of "NAME=value" without quotes. */
static char *value_in(char *text)
{
    size_t size = strlen(text);

    if (size >= 2 && (*text == '"' || *text == '\'') && text[size - 1] == *text) {
        text[size - 1] = '\0';
        return text + 1;
    }
    return text;
}

struct variables_file {
    const char *path;
    struct det_arena *arena;
    const char **variables;
    size_t count, capacity;
    struct det_error *reterr;
};

/* Reads one line; skips comments. */
static int take_line(struct variables_file *file, char *line, size_t number)
{
    char *equals, *name = line + strspn(line, " \t");
    size_t size = strlen(name);

    while (size && strchr(" \t\r", name[size - 1]))
        name[--size] = '\0';
    if (!size || *name == '#')
        return 0;
    if (strncmp(name, "export ", 7) == 0)
        name += 7 + strspn(name + 7, " \t");
    equals = strchr(name, '=');
    if (equals)
        *equals = '\0';
    if (!equals || !config_is_variable(name))
        return det_error_set(
            file->reterr, DET_ERR_MALFORMED, "%.200s: line %zu is not NAME=value", file->path,
            number);
    name = det_arena_format(file->arena, "%s=%s", name, value_in(equals + 1));
    if (!name)
        return det_error_set(file->reterr, DET_ERR_NO_MEMORY, "out of memory");
    det_assert(file->count < file->capacity);
    file->variables[file->count++] = name;
    return 0;
}

static size_t count_lines(const char *data, size_t size)
{
    size_t count = 1;

    for (size_t i = 0; i < size; i++)
        count += data[i] == '\n';
    return count;
}

static int check_rights(const char *path, int descriptor, uid_t owner, struct det_error *reterr)
{
    struct stat status;
    enum trust trust;

    if (fstat(descriptor, &status) < 0)
        return det_error_set(reterr, DET_ERR_IO, "%.200s: cannot be read", path);
    /* The owner of detent.yaml decides what runs here anyway. */
    if (status.st_uid == owner)
        status.st_uid = geteuid();
    trust = trust_of(&status, geteuid());
    if (trust == TRUST_GIVEN)
        return 0;
    if (trust == TRUST_OWNER)
        return det_error_set(
            reterr, DET_ERR_REFUSED,
            "%.200s: the file belongs to another user, whose variables would decide what runs "
            "here; chown it to the user that runs detent",
            path);
    return det_error_set(
        reterr, DET_ERR_REFUSED,
        "%.200s: %s may change the file, and with its variables what runs here; run %s on it", path,
        trust_who(trust), trust_chmod(trust));
}

/* Reads the checked file, even if it is replaced meanwhile. */
static int load_variables(
    const char *path, uid_t owner, char **ret, size_t *ret_size, struct det_error *reterr)
{
    int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    char opened[sizeof "/proc/self/fd/" + 12];
    int r;

    if (descriptor < 0)
        return det_error_set(
            reterr, errno == ENOENT ? DET_ERR_NOT_FOUND : DET_ERR_IO, "%.200s: %s", path,
            errno == ENOENT ? "there is no such file" : "the file cannot be read");
    r = check_rights(path, descriptor, owner, reterr);
    if (r == 0) {
        snprintf(opened, sizeof opened, "/proc/self/fd/%d", descriptor);
        r = det_file_load(det_world_real(), NULL, opened, ENV_FILE_MAX, ret, ret_size);
        if (r < 0)
            det_error_set(reterr, r, "%.200s: %s", path, det_error_text(r));
    }
    close(descriptor);
    return r;
}

int config_read_variables(
    const char *path, uid_t owner, struct det_arena *arena, const char *const **ret,
    struct det_error *reterr)
{
    struct variables_file file = { .path = path, .arena = arena, .reterr = reterr };
    char *data, *rest, *line;
    size_t size = 0, number = 0;
    int r;

    r = load_variables(path, owner, &data, &size, reterr);
    if (r < 0)
        return r;
    file.capacity = count_lines(data, size);
    file.variables = det_arena_array(arena, file.capacity + 1, sizeof *file.variables);
    if (!file.variables)
        r = det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    if (r == 0 && memchr(data, '\0', size))
        r = det_error_set(reterr, DET_ERR_MALFORMED, "%.200s: the file has a NUL byte", path);
    for (rest = data; r == 0 && (line = strsep(&rest, "\n"));)
        r = take_line(&file, line, ++number);
    det_free(NULL, data, size + 1);
    *ret = file.variables;
    return r;
}

/* Files of output. */

int config_take_log_file(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    enum { KEY_PATH, KEY_MAX_SIZE, KEY_KEEP, KEY_MAX_AGE, KEYS };
    static const struct config_key keys[KEYS] = {
        [KEY_PATH] = CONFIG_KEY("path", config_take_text, offsetof(struct config_log_file, path)),
        [KEY_MAX_SIZE] = CONFIG_RANGE(
            "max_size", config_take_size, offsetof(struct config_log_file, max_size), 4096,
            1ULL << 40),
        [KEY_KEEP] = CONFIG_RANGE(
            "keep", config_take_number, offsetof(struct config_log_file, keep), 0, 1000),
        [KEY_MAX_AGE] = CONFIG_RANGE_OR(
            "max_age", config_take_span, offsetof(struct config_log_file, max_age), DET_SECOND, 0,
            "never", DET_NEVER),
    };
    struct config_log_file *log = target;
    const struct det_datum *nodes[KEYS];
    int r;

    *log = (struct config_log_file){ .max_size = 10 << 20, .keep = 5, .max_age = DET_NEVER };
    if (det_datum_is_scalar(node))
        return config_take_text(reader, node, key, &log->path);
    r = config_take_mapping(reader, node, CONFIG_TABLE("'log' of a task", keys), log, nodes);
    if (r == 0 && !nodes[KEY_PATH])
        r = reader_fail(reader, node, "'log' needs 'path', such as log: {path: web.log}");
    return r;
}
