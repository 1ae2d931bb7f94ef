/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* config.h - detent.yaml (docs/formats/detent-yaml.md) as data for the task layer.
 *
 *     text --det_yaml_read--> nodes --config_read--> config --config_check--> right for here
 *                                                       \-----config_settle--> ready to be added
 *
 * Everything is in one arena, including the nodes: each part has the node it was read from, for its
 * place. Reading is pure; config_check() examines the machine. */
#ifndef DET_CONFIG_CONFIG_H
#define DET_CONFIG_CONFIG_H

#include <sys/types.h>

#include <detent/driver/schedule.h>
#include <detent/runtime.h>
#include <detent/slot.h>
#include <detent/workers.h>

#include "config/file_reader.h"
#include "http/http.h"

#define CONFIG_FILE_NAME     "detent.yaml"
#define CONFIG_STORE_DEFAULT "sqlite:detent.db"

/* The log file of a task's output, in addition to the printed output. */
struct config_log_file {
    const char *path;  /* NULL: none */
    uint64_t max_size; /* bytes; a file of this size is rotated */
    uint32_t keep;     /* number of rotated files to keep */
    det_time max_age;  /* maximum age; DET_NEVER: unlimited */
};

struct config_task {
    struct det_task_spec spec; /* its process is the one below */
    struct det_process_spec process;
    const char *const *environment; /* "NAME=value", in addition to the base; NULL: none */
    const char *const *env_files;   /* paths, NULL at the end; NULL: none */
    struct config_log_file log;
    const char *slot; /* NULL: added as a task, not submitted */
    enum det_admission admission;
    struct det_check health;        /* argv NULL: none; already part of the spec */
    const struct det_datum *node;   /* its key is the name */
    const struct det_datum **edges; /* the nodes of spec.depends_on */
    const struct det_datum *run_node, *check_node, *folder_node, *user_node, *cron_node;
    const struct det_datum *env_node, *log_node;
};

struct config_group {
    struct det_task_group_spec spec;
    const struct det_datum *node;
};

/* A job that a schedule submits to a durable slot. */
struct config_job {
    const char *name; /* of the schedule in the store: "<slot>.<key>" */
    struct det_schedule schedule;
    const char *const *argv;
    const char *folder; /* as in the file; NULL: that of the file */
    uint32_t retries;
    det_time timeout; /* 0: none */
    const struct det_datum *node, *run_node, *folder_node, *cron_node;
};
#define CONFIG_JOB_NAME_MAX 100

struct config_slot {
    const char *name;
    struct det_slot_options options;
    int is_durable; /* its queue is in the store */
    struct config_job *jobs;
    size_t job_count;
    const struct det_datum *node;
};

/* Maps exit codes or statuses to an event. */
struct config_answer {
    uint32_t least, most; /* codes: 400 to 499 for "4xx" */
    const char *event;
    const struct det_datum *node;
};
/* The event of an answer that produces none. */
#define CONFIG_NOTHING "nothing"

/* A header of an HTTP call; the value of a secret one is a reference. */
enum config_source { CONFIG_HEADER_TEXT, CONFIG_HEADER_FILE, CONFIG_HEADER_VARIABLE };
struct config_header {
    const char *name, *value;
    enum config_source from;
};
struct config_headers {
    struct config_header *items;
    size_t count;
};

/* A command if it has an argv, else an HTTP call. */
struct config_effect {
    const char *name;
    const char *const *argv;
    const char *folder;             /* as in the file; NULL: that of the file */
    const char *const *environment; /* "NAME=value"; NULL: none */
    const char *const *pass;        /* names; NULL: none */
    const char *method, *url;
    struct config_headers headers;
    struct config_answer *answers;
    size_t answer_count;
    det_time timeout;
    struct det_effect_policy policy;
    const struct det_datum *node, *command_node, *folder_node;
};
#define CONFIG_EFFECT_TIMEOUT  (30 * DET_SECOND)
#define CONFIG_EFFECT_ATTEMPTS 8 /* if unspecified: those of the runtime */

/* A machine: its definition and settings. */
struct config_machine {
    const char *name;   /* name that the definition must have */
    const char *spec;   /* its file, relative to the folder of detent.yaml */
    const char *module; /* likewise: the module with its functions; NULL: none needed */
    struct config_effect *effects;
    size_t effect_count;
    bool is_served; /* by `up`; else it is there for commands on its store */
    const struct det_datum *node, *spec_node, *module_node;
};

/* Says that the machine is listed, but not served, and what to write. Returns `target`. */
#define CONFIG_UNSERVED_TEXT 256
const char *config_unserved_text(
    const struct config_machine *machine, char target[CONFIG_UNSERVED_TEXT]);

/* Addresses and access rules of the HTTP API and the console. */
struct config_http {
    const char *const *listen; /* addresses, NULL at the end */
    const char *socket;        /* a path; NULL: none */
    const char *const *hosts;  /* in addition to those of this machine, NULL at the end; NULL:
                                * none */
    struct http_tls tls;       /* certificate NULL: none */
    uint32_t rate;             /* requests per second and token, or CONFIG_UNLIMITED */
    struct http_limits limits;
#define CONFIG_LIMIT(name, type, otherwise, most, unit, about) type name;
#include "config/limits.def"
#undef CONFIG_LIMIT
    const struct det_datum *node, *listen_node, *tls_node; /* NULL: not said */
};
#define CONFIG_UNLIMITED   UINT32_MAX
#define CONFIG_HTTP_LISTEN "127.0.0.1:7788"
#define CONFIG_HTTP_SOCKET ".detent/http.sock"

/* Defaults without a section 'http'. */
void config_http_init(struct config_http *http);

enum config_log_format { CONFIG_LOG_DEFAULT, CONFIG_LOG_TEXT, CONFIG_LOG_JSON };
enum config_level {
    CONFIG_LEVEL_DEFAULT,
    CONFIG_LEVEL_DEBUG,
    CONFIG_LEVEL_INFO,
    CONFIG_LEVEL_WARNING,
    CONFIG_LEVEL_ERROR,
};
struct config_log {
    enum config_log_format format;
    enum config_level level;
};

/* Export of spans. */
struct config_traces {
    const char *endpoint; /* NULL: disabled */
    struct config_headers headers;
    uint32_t sample; /* of CONFIG_SAMPLE_ALL */
};
#define CONFIG_SAMPLE_ALL 1000000

/* A file with worker kinds in C. */
struct config_kinds {
    const char *path; /* as in the file, and whole once it is settled */
    bool is_isolated; /* a separate process for each worker */
    const struct det_datum *node;
};

/* A tree of workers. */
struct config_workers {
    const char *name;                /* of the root; NULL: that of det_workers_open() */
    const struct det_datum *spec;    /* for det_workers_apply_data() */
    const struct det_datum *globals; /* for det_workers_set_globals_data(); NULL: none */
    struct det_worker_limits limits;
    struct config_kinds *modules;
    size_t module_count;
    const struct det_datum *node; /* NULL: there are none */
};

/* A flow. */
enum config_durability {
    CONFIG_DURABILITY_DISK,
    CONFIG_DURABILITY_OS,
    CONFIG_DURABILITY_MEMORY,
};
/* Settings that replace those of a stage in the .flow file. */
struct config_flow_stage {
    const char *name;
    const struct det_datum *settings; /* a mapping; its key is the name of the stage */
};
#define CONFIG_FLOW_SUFFIX ".flow"
struct config_flow {
    const char *name;
    const char *file;   /* its spec, relative to the folder of detent.yaml */
    const char *module; /* likewise: the module with its functions; NULL: none needed */
    enum config_durability durability;
    int is_manual;            /* its sources start by an order */
    uint64_t retain_size;     /* bytes; 0: everything */
    det_time retain_age;      /* 0: any age */
    uint32_t window;          /* rows; 0: that of pipelines */
    uint32_t threads;         /* of stages that may block; 0: that of pipelines */
    det_time stop_timeout;    /* 0: that of pipelines */
    struct det_policy policy; /* restart, retries_max and backoff */
    struct config_flow_stage *stages;
    size_t stage_count;
    const struct det_datum *node, *file_node, *module_node;
};

struct config {
    bool has_log_files;        /* some task has one */
    struct config_task *tasks; /* in the order of the file */
    size_t task_count;
    struct config_task **order; /* the same tasks, each after its dependencies */
    struct config_group *groups;
    size_t group_count;
    struct config_group **group_order; /* parents first */
    struct config_slot *slots;
    size_t slot_count;
    const char *store;                  /* the URL; NULL: none given, and no machines */
    const struct det_datum *store_node; /* NULL: none is said */
    struct config_machine *machines;
    size_t machine_count;
    struct config_flow *flows;
    size_t flow_count;
    struct det_policy defaults;
    struct {
        uint32_t concurrent_max, tasks_max, slot_depth_max;
        uint32_t effects_max; /* 0: CONFIG_EFFECTS */
        det_time grace;
    } limits; /* 0: that of the task layer */
    struct config_http http;
    struct config_log log;
    struct config_traces traces;
    struct config_workers workers;
    uid_t owner;      /* owner of the file, whose commands run; set before; 0: root, or unknown */
    bool may_be_bare; /* set before: an empty file is valid */
    bool is_bare;     /* nothing to run: no tasks, machines, durable slots, workers, flows */
    bool lists_machines; /* it has a section 'machines', even if empty */
};

/* Returns true if the text is a valid name in the file; and the message otherwise. */
bool config_is_name(const char *text);
#define CONFIG_NAME_RULE                                                                        \
    "is not a name: letters, digits, '.', '_' and '-', at most 127, the first one a letter or " \
    "digit"

/* Limit of concurrent effects of all machines: `limits.effects`. */
#define CONFIG_EFFECTS     64
#define CONFIG_EFFECTS_MAX DET_EFFECT_THREADS_MAX
uint32_t config_effects(const struct config *config);
/* Returns true if it has a durable slot. */
bool config_has_durable(const struct config *config);
/* Reads the tree; `ret` is zero but for what is set before. 0, DET_ERR_MALFORMED with all problems
 * that do not follow from others, in order of place, or DET_ERR_NO_MEMORY with that as the last
 * one. */
DET_MUST_CHECK int config_read(
    struct det_arena *arena, const struct det_datum *root, struct config *ret,
    struct cli_problems *reterr);

/* The environment of the checks. */
struct config_site {
    const char *folder; /* of the file; "." for the current one */
    const char *path;   /* the variable PATH; NULL: the default of the C library */
    /* det_cron_parse(), or NULL: expressions are not checked. */
    int (*parse_cron)(const char *text, struct det_cron *ret, struct det_error *reterr);
};
/* Checks programs, folders, users, cron expressions, the URL of the store. Adds to the problems.
 * Returns 0 or DET_ERR_MALFORMED. */
DET_MUST_CHECK int config_check(
    const struct config *config, const struct config_site *site, struct cli_problems *problems);
/* Checks a definition against the file: effects, their events, functions that only C can provide.
 * Adds to the problems. Returns 0 or DET_ERR_MALFORMED. */
DET_MUST_CHECK int config_check_machine(
    const struct config_machine *machine, const struct det_machine *definition,
    struct cli_problems *problems);
/* workers_section.c: checks that the kinds (NULL at the end) and states of workers exist, and that
 * their configs can be derived. Adds to the problems. Returns 0, DET_ERR_MALFORMED or
 * DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int config_check_workers(
    const struct config_workers *workers, const struct det_worker_kind *const *kinds,
    const struct det_allocator *allocator, struct cli_problems *problems);
/* Resolves the folders of tasks and of effect commands relative to `folder`, and completes their
 * environment with `base`, NULL-terminated: the file wins. Specs and secrets get absolute paths.
 * Call it once. 0, DET_ERR_LIMIT, DET_ERR_NO_MEMORY, or the error of a file of variables. */
DET_MUST_CHECK int config_settle(
    struct config *config, struct det_arena *arena, const char *folder, const char *const *base);

#endif
