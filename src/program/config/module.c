/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* module.c - loads modules, and checks their definitions against the specs. */
#include "config/module_internal.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <detent/tool/spec.h>

#include "base/assert.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "machine/compare.h"
#include "os/os.h"

struct served {
    struct served *next;
    struct module_machine machine;
};

struct module {
    struct module *next;
    const char *path; /* borrowed from the configuration */
    dev_t device;     /* which file it is */
    ino_t number;
    struct timespec changed;
    /* A copy of it in memory, open while it is loaded: the linker identifies a library by its path,
     * which contains this number, and would reuse the loaded one for another file of the same
     * number. */
    int copy;
    void *handle;
    const struct det_module *descriptor;
    void *context;
    bool is_open; /* its open() has succeeded, if it has one */
    struct served *served;
};

/* Loading. */

static int check_descriptor(
    const struct det_module *descriptor, const char *path, struct det_error *reterr)
{
    if (!descriptor)
        return det_error_set(
            reterr, DET_ERR_INVALID,
            "%.200s has no symbol " DET_MODULE_SYMBOL "; define it with DET_MODULE(...) of "
            "<detent/module.h>",
            path);
    if (descriptor->abi != DET_MODULE_ABI || descriptor->layout != DET_MODULE_LAYOUT)
        return det_error_set(
            reterr, DET_ERR_VERSION,
            "%.200s was built with the headers of another detent (%u.%x, this one is %u.%x); build "
            "it again",
            path, descriptor->abi, descriptor->layout, DET_MODULE_ABI, DET_MODULE_LAYOUT);
    if ((!descriptor->machines || !descriptor->machines[0]) &&
        (!descriptor->workers || !descriptor->workers[0]) &&
        (!descriptor->flows || !descriptor->flows[0]))
        return det_error_set(
            reterr, DET_ERR_INVALID, "%.200s has no machines, workers or flows", path);
    return 0;
}

/* Copies from the descriptor: the file at the path may have been replaced. */
static int copy_file(struct module *module, int from, off_t size, struct det_error *reterr)
{
    const char *slash = strrchr(module->path, '/');
    ssize_t count = 1;

    module->copy = memfd_create(slash ? slash + 1 : module->path, MFD_CLOEXEC);
    if (module->copy < 0)
        return module_fail(reterr, module->path);
    while (size > 0 && count > 0) {
        count = sendfile(module->copy, from, NULL, (size_t)size);
        size -= count;
    }
    return count < 0 ? module_fail(reterr, module->path) : 0;
}

static int load(struct module *module, struct det_error *reterr)
{
    const char *path = module->path;
    char file[32];

    snprintf(file, sizeof file, "/proc/self/fd/%d", module->copy);
    module->handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!module->handle) {
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
        const char *why = dlerror();
        size_t head = strncmp(why, file, strlen(file)) == 0 ? strlen(file) : 0;

        return det_error_set(
            reterr, DET_ERR_INVALID, "%.200s cannot be loaded%s%.200s", path, head ? "" : ": ",
            why + head);
    }
    module->descriptor = dlsym(module->handle, DET_MODULE_SYMBOL);
    return check_descriptor(module->descriptor, path, reterr);
}

static int run_open(struct module *module, const char *folder, struct det_error *reterr)
{
    const struct det_module_settings settings = { .folder = folder };
    struct det_error error = { 0 };
    int r = 0;

    det_assert(!module->is_open);
    if (module->descriptor->open)
        r = module->descriptor->open(&settings, &module->context, &error);
    module->is_open = r >= 0;
    if (r >= 0)
        return 0;
    error.text[sizeof error.text - 1] = '\0';
    return det_error_set(
        reterr, DET_ERR_INVALID, "%.200s does not open: %.200s", module->path,
        *error.text ? error.text : det_error_text(r));
}

static void run_close(struct module *module)
{
    if (module->is_open && module->descriptor->close)
        module->descriptor->close(module->context);
    module->is_open = false;
    module->context = NULL;
}

static void close_module(struct modules *modules, struct module *module)
{
    while (module->served) {
        struct served *served = module->served;

        module->served = served->next;
        if (served->machine.effects)
            DET_DELETE_ARRAY(
                modules->allocator, served->machine.effects,
                (size_t)served->machine.machine.effect_count + 1);
        DET_DELETE(modules->allocator, served);
    }
    run_close(module);
    if (module->handle)
        dlclose(module->handle);
    if (module->copy >= 0)
        close(module->copy);
    DET_DELETE(modules->allocator, module);
}

static struct module *find(const struct modules *modules, const struct stat *status)
{
    struct module *module = modules->first;

    while (module && (module->device != status->st_dev || module->number != status->st_ino))
        module = module->next;
    return module;
}

/* A module that is loaded, and opened unless `folder` is NULL. */
static int add_module(
    struct modules *modules, const char *path, const char *folder, int file,
    const struct stat *status, struct det_error *reterr)
{
    struct module *module = DET_NEW(modules->allocator, struct module);
    int r;

    if (!module)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    module->path = path;
    module->copy = -1;
    module->device = status->st_dev;
    module->number = status->st_ino;
    module->changed = status->st_mtim;
    r = copy_file(module, file, status->st_size, reterr);
    if (r == 0)
        r = load(module, reterr);
    if (r == 0 && folder)
        r = run_open(module, folder, reterr);
    if (r < 0) {
        close_module(modules, module);
        return r;
    }
    module->next = modules->first;
    modules->first = module;
    return 0;
}

static int open_module(
    struct modules *modules, const char *path, const char *folder, struct module **ret,
    struct det_error *reterr)
{
    struct stat status = { .st_ino = 0 };
    int file = -1, r;

    r = module_open_file(path, &file, &status, reterr);
    if (r < 0)
        return r;
    if (!find(modules, &status))
        r = add_module(modules, path, folder, file, &status, reterr);
    close(file);
    *ret = find(modules, &status);
    det_assert(r < 0 || (*ret && (*ret)->descriptor));
    return r;
}

/* Judging. */

/* The canonical text of a definition. */
static int write_text(
    const struct det_machine *machine, const struct det_allocator *allocator,
    struct det_buffer *ret, struct det_error *reterr)
{
    int64_t size = det_machine_write(machine, allocator, NULL, 0, reterr), written;
    char *target;

    if (size < 0)
        return (int)size;
    target = det_buffer_extend(ret, (size_t)size + 1);
    if (!target)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    written = det_machine_write(machine, allocator, target, (size_t)size + 1, reterr);
    det_assert(written < 0 || written == size);
    return written < 0 ? (int)written : 0;
}

static void keep_first(void *context, const struct det_change *change)
{
    char *text = context;

    if (!*text)
        snprintf(text, DET_ERROR_TEXT_MAX, "%s", change->text);
}

static void ignore(void *context, const struct det_hazard *hazard)
{
    (void)context;
    (void)hazard;
}

static int report_difference(
    const char *path, const struct det_machine *module, const struct det_machine *spec,
    const struct det_allocator *allocator, struct det_error *reterr)
{
    char text[DET_ERROR_TEXT_MAX] = "";
    const struct det_compare compare = {
        .old = spec,
        .new = module,
        .allocator = allocator,
        .change = keep_first,
        .hazard = ignore,
        .context = text,
    };
    int r = det_compare_machines(&compare, reterr);

    if (r == DET_ERR_NO_MEMORY)
        return r;
    return det_error_set(
        reterr, DET_ERR_DEFINITION,
        "%.150s defines '%s' otherwise than its spec does: %.200s; build it again from that spec",
        path, spec->name, *text ? text : "the two are not written the same");
}

int module_is_same_machine(
    const struct det_machine *a, const struct det_machine *b, const struct det_allocator *allocator,
    bool *ret, struct det_error *reterr)
{
    struct det_buffer left, right;
    int r;

    det_buffer_init(&left, allocator);
    det_buffer_init(&right, allocator);
    r = write_text(a, allocator, &left, reterr);
    if (r == 0)
        r = write_text(b, allocator, &right, reterr);
    if (r == 0)
        *ret = strcmp(det_buffer_text(&left), det_buffer_text(&right)) == 0;
    det_buffer_deinit(&left);
    det_buffer_deinit(&right);
    return r;
}

static int check_same(
    const char *path, const struct det_machine *module, const struct det_machine *spec,
    const struct det_allocator *allocator, struct det_error *reterr)
{
    bool is_same = false;
    int r = module_is_same_machine(module, spec, allocator, &is_same, reterr);

    return r == 0 && !is_same ? report_difference(path, module, spec, allocator, reterr) : r;
}

/* Copies a machine so that its effects can be bound again. */
static int copy_machine(
    struct modules *modules, struct module *module, const struct det_machine *machine,
    struct module_machine **ret, struct det_error *reterr)
{
    struct served *served = DET_NEW(modules->allocator, struct served);
    size_t count = (size_t)machine->effect_count + 1;

    if (!served)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    served->next = module->served;
    module->served = served;
    served->machine.machine = *machine;
    served->machine.effects = DET_NEW_ARRAY(modules->allocator, count, struct det_effect_def);
    if (!served->machine.effects)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    if (machine->effect_count)
        memcpy(
            served->machine.effects, machine->effects,
            machine->effect_count * sizeof *machine->effects);
    served->machine.machine.effects = served->machine.effects;
    *ret = &served->machine;
    return 0;
}

/* Returns its definition of a machine, which equals that of the spec. */
static int find_machine(
    const struct modules *modules, const struct module *module, const struct config_machine *config,
    const struct det_machine *spec, const struct det_machine **ret, struct det_error *reterr)
{
    const struct det_machine *const *machine = module->descriptor->machines;

    if (!machine || !machine[0])
        return det_error_set(
            reterr, DET_ERR_NOT_FOUND, "%.200s does not define '%s'; it has only workers",
            config->module, config->name);
    while (*machine && strcmp((*machine)->name, config->name) != 0)
        machine++;
    if (!*machine)
        return det_error_set(
            reterr, DET_ERR_NOT_FOUND, "%.200s does not define '%s'; it defines '%s'%s",
            config->module, config->name, module->descriptor->machines[0]->name,
            module->descriptor->machines[1] ? " and others" : "");
    *ret = *machine;
    return check_same(config->module, *machine, spec, modules->allocator, reterr);
}

int modules_load(
    struct modules *modules, const struct config_machine *config, const char *folder,
    const struct det_machine *spec, struct module_machine **ret, struct det_error *reterr)
{
    const struct det_machine *machine = NULL;
    struct module *module;
    int r;

    r = open_module(modules, config->module, folder, &module, reterr);
    if (r == 0)
        r = find_machine(modules, module, config, spec, &machine, reterr);
    if (r < 0)
        return r;
    det_assert(machine);
    return copy_machine(modules, module, machine, ret, reterr);
}

/* Kinds of workers. */

static int check_kinds(
    const char *path, const struct det_worker_kind *const *kinds, struct det_error *reterr)
{
    struct det_error error = { 0 };
    int r = 0;

    if (!kinds || !kinds[0])
        return det_error_set(
            reterr, DET_ERR_NOT_FOUND,
            "%.200s has no kinds of workers; DET_MODULE_WORKERS(...) of "
            "<detent/module.h> lists them",
            path);
    for (; r == 0 && *kinds; kinds++) {
        r = det_worker_kind_check(*kinds, &error);
        if (r < 0)
            det_error_set(reterr, r, "%.200s: %.250s", path, error.text);
    }
    return r;
}

int modules_load_kinds(
    struct modules *modules, const char *path, const char *folder,
    const struct det_worker_kind *const **ret, struct det_error *reterr)
{
    struct module *module;
    int r;

    r = open_module(modules, path, folder, &module, reterr);
    if (r == 0)
        r = check_kinds(path, module->descriptor->workers, reterr);
    if (r == 0)
        *ret = module->descriptor->workers;
    return r;
}

/* Flows. */

static int find_flow(
    const struct module *module, const struct det_flow *spec, const struct det_flow **ret,
    struct det_error *reterr)
{
    const struct det_flow *const *flow = module->descriptor->flows;

    if (!flow || !flow[0])
        return det_error_set(
            reterr, DET_ERR_NOT_FOUND,
            "%.200s has no flows; DET_MODULE_FLOWS(...) of <detent/module.h> lists them",
            module->path);
    while (*flow && strcmp((*flow)->name, spec->name) != 0)
        flow++;
    if (!*flow)
        return det_error_set(
            reterr, DET_ERR_NOT_FOUND, "%.200s does not define the flow '%s'; it defines '%s'%s",
            module->path, spec->name, module->descriptor->flows[0]->name,
            module->descriptor->flows[1] ? " and others" : "");
    if (det_flow_fingerprint(*flow) != det_flow_fingerprint(spec))
        return det_error_set(
            reterr, DET_ERR_CONFLICT,
            "%.200s defines the flow '%s' otherwise than its .flow file does; build it again",
            module->path, spec->name);
    *ret = *flow;
    return 0;
}

int modules_load_flow(
    struct modules *modules, const char *path, const char *folder, const struct det_flow *spec,
    const struct det_flow **ret, struct det_error *reterr)
{
    struct module *module;
    int r;

    r = open_module(modules, path, folder, &module, reterr);
    return r < 0 ? r : find_flow(module, spec, ret, reterr);
}

int module_copy_of(const struct modules *modules, const struct det_worker_kind *const *kinds)
{
    const struct module *module = modules->first;

    while (module && module->descriptor->workers != kinds)
        module = module->next;
    det_assert(module && module->copy >= 0);
    return module->copy;
}

int modules_load_copy(
    struct modules *modules, const char *path, const char *folder,
    const struct det_worker_kind *const **ret, struct det_error *reterr)
{
    int file = open(path, O_RDONLY | O_CLOEXEC), r;
    struct stat status;

    if (file < 0)
        return module_fail(reterr, path);
    r = fstat(file, &status) < 0 ? module_fail(reterr, path) : 0;
    if (r == 0)
        r = add_module(modules, path, folder, file, &status, reterr);
    close(file);
    if (r == 0)
        *ret = modules->first->descriptor->workers;
    return r;
}

int module_try(
    const struct det_allocator *allocator, const struct config_machine *config,
    const struct det_machine *spec, struct det_error *reterr)
{
    const struct det_machine *machine = NULL;
    struct modules modules;
    struct module *module;
    int r;

    modules_init(&modules, allocator);
    r = open_module(&modules, config->module, NULL, &module, reterr);
    if (r == 0)
        r = find_machine(&modules, module, config, spec, &machine, reterr);
    modules_close(&modules);
    return r;
}

bool modules_is_same(const struct modules *modules, const char *path)
{
    const struct module *module;
    struct stat status;

    if (stat(path, &status) < 0)
        return false;
    module = find(modules, &status);
    return module && module->changed.tv_sec == status.st_mtim.tv_sec &&
           module->changed.tv_nsec == status.st_mtim.tv_nsec;
}

/* All of them. */

static void *find_context(const struct det_module_host *host, const char *machine)
{
    const struct modules *modules = (const struct modules *)(const void *)host;

    for (const struct module *module = modules->first; module; module = module->next) {
        for (const struct served *served = module->served; served; served = served->next) {
            if (strcmp(served->machine.machine.name, machine) == 0)
                return module->context;
        }
    }
    return NULL;
}

static void *find_kind_context(const struct det_module_host *host, const char *kind)
{
    const struct modules *modules = (const struct modules *)(const void *)host;

    for (const struct module *module = modules->first; module; module = module->next) {
        const struct det_worker_kind *const *one = module->descriptor->workers;

        while (one && *one && strcmp((*one)->name, kind) != 0)
            one++;
        if (one && *one)
            return module->context;
    }
    return NULL;
}

void modules_init(struct modules *modules, const struct det_allocator *allocator)
{
    *modules = (struct modules){ .host = { DET_MODULE_ABI, find_context, find_kind_context },
                                 .allocator = allocator };
}

void modules_suspend(struct modules *modules)
{
    for (struct module *module = modules->first; module; module = module->next)
        run_close(module);
}

int modules_resume(struct modules *modules, const char *folder, struct det_error *reterr)
{
    int r = 0;

    /* Modules of isolated kinds are loaded, but never opened in this process. */
    det_assert(!modules->isolated);
    for (struct module *module = modules->first; module && r == 0; module = module->next)
        r = run_open(module, folder, reterr);
    return r;
}

void modules_close(struct modules *modules)
{
    module_close_isolated(modules);
    while (modules->first) {
        struct module *module = modules->first;

        modules->first = module->next;
        close_module(modules, module);
    }
}
