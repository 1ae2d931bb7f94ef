/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* host_check.c - checks of detent.yaml that depend on this machine: programs, folders, users and
 * the kind of its store; and the folders and environment of tasks. */
#include <detent/driver/schedule.h>
#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "config/config_internal.h"
#include "config/log_file.h"
#include "config/module.h"
#include "kinds/kinds.h"
#include "os/os.h"
#include "store/store.h"
#include "terminal/input.h"

/* The path of execvp() and posix_spawnp() without PATH. */
#define PATH_DEFAULT "/bin:/usr/bin"

struct checker {
    struct cli_reader reader;
    const struct config_site *site;
    uid_t owner; /* of the file */
};

/* `name` seen from `folder`. False when the path is too long. */
static bool join_path(const char *folder, const char *name, char *target)
{
    bool is_complete = *name == '/' || strcmp(folder, ".") == 0;
    int length = strcmp(name, ".") == 0
                     ? snprintf(target, DET_PATH_MAX, "%s", folder)
                     : snprintf(
                           target, DET_PATH_MAX, "%s%s%s", is_complete ? "" : folder,
                           is_complete ? "" : "/", name);

    return length >= 0 && length < DET_PATH_MAX;
}

static bool is_program(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

static bool is_in_path(const char *path, const char *name)
{
    for (;;) {
        size_t size = strcspn(path, ":");
        char file[DET_PATH_MAX];
        /* An empty part is the folder we are in. */
        int length =
            snprintf(file, sizeof file, "%.*s%s%s", (int)size, path, size ? "/" : "", name);

        if (length < (int)sizeof file && is_program(file))
            return true;
        if (!path[size])
            return false;
        path += size + 1;
    }
}

static int check_in_path(struct checker *checker, const struct det_datum *node, const char *name)
{
    const char *path = checker->site->path ? checker->site->path : PATH_DEFAULT;

    if (is_in_path(path, name))
        return 0;
    return reader_fail(
        &checker->reader, node,
        "there is no program '%s' in PATH; change PATH or write the path of the program, such as "
        "./%s",
        name, name);
}

/* The folder it runs in is there. */
static int check_program(
    struct checker *checker, const struct det_datum *node, const char *folder, const char *name)
{
    char path[DET_PATH_MAX];

    if (!strchr(name, '/'))
        return check_in_path(checker, node, name);
    if (!join_path(folder, name, path))
        return reader_fail(&checker->reader, node, "the path of the program is too long");
    if (!cli_is_there(path))
        return reader_fail(&checker->reader, node, "%s: there is no such program", path);
    if (cli_is_folder(path))
        return reader_fail(&checker->reader, node, "%s: is a folder, not a program", path);
    if (!is_program(path))
        return reader_fail(
            &checker->reader, node, "%s: is not executable; run: chmod +x %s", path, path);
    return 0;
}

/* `node` is its folder's; NULL: the file's. */
static int check_folder(
    struct checker *checker, const struct det_datum *node, const struct det_datum *owner,
    char *target)
{
    if (!join_path(checker->site->folder, node ? node->text : ".", target))
        return reader_fail(&checker->reader, node ? node : owner, "the path is too long");
    if (!node || cli_is_folder(target))
        return 0;
    return reader_fail(
        &checker->reader, node,
        cli_is_there(target) ? "%s: is not a folder" : "%s: there is no such folder", target);
}

static int check_user(struct checker *checker, const struct config_task *task)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    if (getpwnam(task->process.user))
        return 0;
    return reader_fail(
        &checker->reader, task->user_node, "there is no user '%s'", task->process.user);
}

/* `node` NULL: it has none. */
static int check_cron(struct checker *checker, const struct det_datum *node)
{
    struct det_error error = { 0 };
    struct det_cron cron;

    if (!node || !checker->site->parse_cron ||
        checker->site->parse_cron(node->text, &cron, &error) == 0)
        return 0;
    return reader_fail(&checker->reader, node, "%s", error.text);
}

/* The values are discarded: config_settle() reads the files again. */
static int check_variables(struct checker *checker, const struct config_task *task)
{
    int r = 0;

    for (const char *const *path = task->env_files; path && *path; path++) {
        const char *const *unused;
        struct det_error error = { 0 };
        char whole[DET_PATH_MAX];
        struct det_arena arena;
        int bad;

        det_arena_init(&arena, NULL);
        bad = join_path(checker->site->folder, *path, whole)
                  ? config_read_variables(whole, checker->owner, &arena, &unused, &error)
                  : det_error_set(&error, DET_ERR_LIMIT, "the path is too long");
        det_arena_deinit(&arena);
        if (bad == DET_ERR_NO_MEMORY)
            return reader_no_memory(&checker->reader, task->env_node);
        if (bad < 0)
            r = reader_both(r, reader_fail(&checker->reader, task->env_node, "%s", error.text));
    }
    return r;
}

/* The path and the folder of the file for its output. */
static int check_log_file(struct checker *checker, const struct config_task *task)
{
    char path[DET_PATH_MAX], *slash;

    if (!task->log.path)
        return 0;
    if (!join_path(checker->site->folder, task->log.path, path) || strlen(path) > LOG_FILE_PATH_MAX)
        return reader_fail(
            &checker->reader, task->log_node, "the path has more than %d characters",
            LOG_FILE_PATH_MAX);
    slash = strrchr(path, '/');
    if (!slash || slash == path)
        return 0;
    *slash = '\0';
    if (cli_is_folder(path))
        return 0;
    return reader_fail(&checker->reader, task->log_node, "%s: there is no such folder", path);
}

static int check_task(struct checker *checker, const struct config_task *task)
{
    const struct det_check *check = &task->spec.readiness.check;
    char folder[DET_PATH_MAX];
    int there = check_folder(checker, task->folder_node, task->node, folder);
    int r = there;

    det_assert(task->run_node && task->process.argv[0]);
    det_assert(!check->argv || task->check_node);
    det_assert(!task->log.path == !task->log_node);
    if (there == 0)
        r = check_program(checker, task->run_node, folder, task->process.argv[0]);
    if (there == 0 && check->argv)
        r = reader_both(r, check_program(checker, task->check_node, folder, check->argv[0]));
    if (task->process.user)
        r = reader_both(r, check_user(checker, task));
    r = reader_both(r, check_variables(checker, task));
    r = reader_both(r, check_log_file(checker, task));
    return reader_both(r, check_cron(checker, task->cron_node));
}

static int check_job(struct checker *checker, const struct config_job *job)
{
    char folder[DET_PATH_MAX];
    int r;

    r = check_folder(checker, job->folder_node, job->node, folder);
    if (r == 0)
        r = check_program(checker, job->run_node, folder, job->argv[0]);
    return reader_both(r, check_cron(checker, job->cron_node));
}

static int check_slot(struct checker *checker, const struct config_slot *slot)
{
    int r = 0;

    for (size_t i = 0; i < slot->job_count; i++)
        r = reader_both(r, check_job(checker, &slot->jobs[i]));
    return r;
}

static int check_effect(struct checker *checker, const struct config_effect *effect)
{
    char folder[DET_PATH_MAX];
    int r;

    if (!effect->argv)
        return 0;
    r = check_folder(checker, effect->folder_node, effect->node, folder);
    return r < 0 ? r : check_program(checker, effect->command_node, folder, effect->argv[0]);
}

static int check_module(struct checker *checker, const char *module, const struct det_datum *node)
{
    struct det_error error = { 0 };
    char path[DET_PATH_MAX];

    if (!module)
        return 0;
    if (!join_path(checker->site->folder, module, path))
        return reader_fail(&checker->reader, node, "the path is too long");
    if (module_check(path, &error) == 0)
        return 0;
    return reader_fail(&checker->reader, node, "%s", error.text);
}

/* Kinds of modules are known when these are loaded, which is not done to check a file. */
static int check_workers(struct checker *checker, const struct config_workers *workers)
{
    int r = 0;

    for (size_t i = 0; i < workers->module_count; i++)
        r = reader_both(
            r, check_module(checker, workers->modules[i].path, workers->modules[i].node));
    if (!workers->node || workers->module_count)
        return r;
    return config_check_workers(workers, det_kinds_all(), NULL, checker->reader.problems);
}

static int check_machine(struct checker *checker, const struct config_machine *machine)
{
    const struct det_datum *node = machine->spec_node ? machine->spec_node : machine->node;
    char path[DET_PATH_MAX];
    int r = 0;

    for (size_t i = 0; i < machine->effect_count; i++)
        r = reader_both(r, check_effect(checker, &machine->effects[i]));

    r = reader_both(r, check_module(checker, machine->module, machine->module_node));
    if (!join_path(checker->site->folder, machine->spec, path))
        return reader_fail(&checker->reader, node, "the path is too long");
    if (cli_is_there(path) && !cli_is_folder(path))
        return r;
    return reader_fail(&checker->reader, node, "%s: there is no such spec", path);
}

/* Its stages are checked when it is read: flow_file.c. */
static int check_flow(struct checker *checker, const struct config_flow *flow)
{
    const struct det_datum *node = flow->file_node ? flow->file_node : flow->node;
    char path[DET_PATH_MAX];
    int r = check_module(checker, flow->module, flow->module_node);

    if (!join_path(checker->site->folder, flow->file, path))
        return reader_both(r, reader_fail(&checker->reader, node, "the path is too long"));
    if (cli_is_there(path) && !cli_is_folder(path))
        return r;
    return reader_both(r, reader_fail(&checker->reader, node, "%s: there is no such flow", path));
}

static int check_store(struct checker *checker, const struct det_datum *node)
{
    struct det_error error = { 0 };

    if (!node || det_store_check_url(node->text, &error) == 0)
        return 0;
    return reader_fail(&checker->reader, node, "%s", error.text);
}

int config_check(
    const struct config *config, const struct config_site *site, struct cli_problems *problems)
{
    struct checker checker = { .reader = { .problems = problems },
                               .site = site,
                               .owner = config->owner };
    int r = check_store(&checker, config->store_node);

    det_assert(problems->count <= CLI_PROBLEMS_MAX);
    det_assert(!config->task_count || config->order);
    for (size_t i = 0; i < config->task_count && reader_can_continue(&checker.reader, r); i++)
        r = reader_both(r, check_task(&checker, &config->tasks[i]));
    for (size_t i = 0; i < config->slot_count && reader_can_continue(&checker.reader, r); i++)
        r = reader_both(r, check_slot(&checker, &config->slots[i]));
    for (size_t i = 0; i < config->machine_count && reader_can_continue(&checker.reader, r); i++)
        r = reader_both(r, check_machine(&checker, &config->machines[i]));
    for (size_t i = 0; i < config->flow_count && reader_can_continue(&checker.reader, r); i++)
        r = reader_both(r, check_flow(&checker, &config->flows[i]));
    return reader_can_continue(&checker.reader, r)
               ? reader_both(r, check_workers(&checker, &config->workers))
               : r;
}

/* Returns true if both set the same variable. */
static bool is_same_variable(const char *a, const char *b)
{
    size_t size = strcspn(a, "=");

    return strncmp(a, b, size) == 0 && (b[size] == '=' || b[size] == '\0');
}

static bool has_variable(const char *const *environment, const char *variable)
{
    while (*environment && !is_same_variable(*environment, variable))
        environment++;
    return *environment != NULL;
}

static size_t count_of(const char *const *items)
{
    size_t count = 0;

    while (items[count])
        count++;
    return count;
}

/* Appends the base, with `own` replacing or extending it. */
static const char *const *add_variables(
    struct det_arena *arena, const char *const *base, const char *const *own)
{
    size_t capacity = count_of(base) + count_of(own), count = 0;
    const char **all = det_arena_array(arena, capacity + 1, sizeof *all);

    if (!all)
        return NULL;
    for (; *base; base++) {
        if (!has_variable(own, *base))
            all[count++] = *base;
    }
    for (; *own; own++)
        all[count++] = *own;
    det_assert(count <= capacity);
    return all;
}

/* First the files, then the entries of detent.yaml itself. */
static int settle_environment(
    struct config_task *task, uid_t owner, struct det_arena *arena, const char *folder,
    const char *const *base)
{
    for (const char *const *path = task->env_files; path && *path; path++) {
        const char *const *variables;
        char whole[DET_PATH_MAX];
        int r;

        if (!join_path(folder, *path, whole))
            return DET_ERR_LIMIT;
        r = config_read_variables(whole, owner, arena, &variables, NULL);
        if (r < 0)
            return r;
        base = add_variables(arena, base, variables);
        if (!base)
            return DET_ERR_NO_MEMORY;
    }
    task->process.environment =
        task->environment ? add_variables(arena, base, task->environment) : base;
    return task->process.environment ? 0 : DET_ERR_NO_MEMORY;
}

static int settle_path(struct det_arena *arena, const char *folder, const char **path)
{
    char whole[DET_PATH_MAX];

    if (!join_path(folder, *path ? *path : ".", whole))
        return DET_ERR_LIMIT;
    *path = det_arena_copy(arena, whole);
    return *path ? 0 : DET_ERR_NO_MEMORY;
}

static int settle_task(
    struct config_task *task, uid_t owner, struct det_arena *arena, const char *folder,
    const char *const *base)
{
    char path[DET_PATH_MAX];
    int r = 0;

    if (!join_path(folder, task->process.folder ? task->process.folder : ".", path))
        return DET_ERR_LIMIT;
    task->process.folder = det_arena_copy(arena, path);
    if (!task->process.folder)
        return DET_ERR_NO_MEMORY;
    if (task->log.path)
        r = settle_path(arena, folder, &task->log.path);
    if (r == 0 && (task->environment || task->env_files))
        r = settle_environment(task, owner, arena, folder, base);
    return r;
}

static const char *value_of(const char *const *environment, const char *name)
{
    for (; *environment; environment++) {
        if (is_same_variable(*environment, name))
            return *environment;
    }
    return NULL;
}

/* Variables that every command of an effect gets: to find programs, and the language. */
static const char *const always_passed[] = { "PATH",   "HOME", "USER",   "LOGNAME", "LANG",
                                             "LC_ALL", "TZ",   "TMPDIR", NULL };

static int settle_effect_environment(
    struct config_effect *effect, struct det_arena *arena, const char *const *base)
{
    static const char *const none[] = { NULL };
    const char *const *own = effect->environment ? effect->environment : none;
    const char *const *lists[] = { always_passed, effect->pass ? effect->pass : none };
    size_t capacity = count_of(always_passed) + count_of(lists[1]) + count_of(own), count = 0;
    const char **all = det_arena_array(arena, capacity + 1, sizeof *all);

    if (!all)
        return DET_ERR_NO_MEMORY;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        for (const char *const *name = lists[i]; *name; name++) {
            const char *value = value_of(base, *name);

            if (value && !value_of(own, *name) && !has_variable(all, value))
                all[count++] = value;
        }
    }
    for (; *own; own++)
        all[count++] = *own;
    det_assert(count <= capacity);
    effect->environment = all;
    return 0;
}

static int settle_headers(
    struct config_headers *headers, struct det_arena *arena, const char *folder)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < headers->count; i++) {
        if (headers->items[i].from == CONFIG_HEADER_FILE)
            r = settle_path(arena, folder, &headers->items[i].value);
    }
    return r;
}

static int settle_http(struct config_http *http, struct det_arena *arena, const char *folder)
{
    const char **paths[] = { &http->socket, &http->tls.certificate, &http->tls.key,
                             &http->tls.clients };
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof paths / sizeof *paths; i++) {
        if (*paths[i])
            r = settle_path(arena, folder, paths[i]);
    }
    return r;
}

static int settle_effect(
    struct config_effect *effect, struct det_arena *arena, const char *folder,
    const char *const *base)
{
    int r = settle_path(arena, folder, &effect->folder);

    if (r == 0)
        r = settle_headers(&effect->headers, arena, folder);
    return r < 0 || !effect->argv ? r : settle_effect_environment(effect, arena, base);
}

int config_settle(
    struct config *config, struct det_arena *arena, const char *folder, const char *const *base)
{
    int r = settle_http(&config->http, arena, folder);

    if (r == 0)
        r = settle_headers(&config->traces.headers, arena, folder);
    for (size_t i = 0; r == 0 && i < config->workers.module_count; i++)
        r = settle_path(arena, folder, &config->workers.modules[i].path);
    for (size_t i = 0; r == 0 && i < config->task_count; i++) {
        r = settle_task(&config->tasks[i], config->owner, arena, folder, base);
        config->has_log_files = config->has_log_files || config->tasks[i].log.path;
    }
    for (size_t i = 0; i < config->slot_count; i++) {
        for (size_t j = 0; r == 0 && j < config->slots[i].job_count; j++)
            r = settle_path(arena, folder, &config->slots[i].jobs[j].folder);
    }
    for (size_t i = 0; r == 0 && i < config->flow_count; i++) {
        r = settle_path(arena, folder, &config->flows[i].file);
        if (r == 0 && config->flows[i].module)
            r = settle_path(arena, folder, &config->flows[i].module);
    }
    for (size_t i = 0; r == 0 && i < config->machine_count; i++) {
        struct config_machine *machine = &config->machines[i];

        r = settle_path(arena, folder, &machine->spec);
        if (r == 0 && machine->module)
            r = settle_path(arena, folder, &machine->module);
        for (size_t j = 0; r == 0 && j < machine->effect_count; j++)
            r = settle_effect(&machine->effects[j], arena, folder, base);
    }
    return r;
}
