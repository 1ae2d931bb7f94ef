/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* config.h - detent.yaml (docs/formats/detent-yaml.md) as data that the task layer takes as it is.
 *
 *     text --det_yaml_read--> nodes --config_read--> config --config_check--> right for here
 *                                                       \-----config_settle--> ready to be added
 *
 * Everything lives in one arena, the nodes too: a part knows the node it was read from, for its
 * place. Reading is pure; what asks the machine is config_check(). */
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

/* Where the output of a task is written to, beside what is printed. */
struct config_log_file {
    const char *path;  /* NULL: nowhere */
    uint64_t max_size; /* bytes; a file that has them is renamed, and a new one begins */
    uint32_t keep;     /* so many that were renamed stay */
    det_time max_age;  /* the same by time; DET_NEVER: not */
};

struct config_task {
    struct det_task_spec spec; /* process is the one below */
    struct det_process_spec process;
    const char *const *environment; /* "NAME=value", as the file adds them; NULL: none */
    const char *const *env_files;   /* paths, NULL at the end; NULL: none */
    struct config_log_file log;
    const char *slot; /* NULL: it is added, not submitted */
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

/* A job that is submitted to a durable slot by the clock. */
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

/* Which event an exit code or a status stands for. */
struct config_answer {
    uint32_t least, most; /* codes: 400 to 499 for "4xx" */
    const char *event;
    const struct det_datum *node;
};
/* The event of an answer that produces none. */
#define CONFIG_NOTHING "nothing"

/* A header of an HTTP call; of a secret one the value is where it stands. */
enum config_source { CONFIG_HEADER_TEXT, CONFIG_HEADER_FILE, CONFIG_HEADER_VARIABLE };
struct config_header {
    const char *name, *value;
    enum config_source from;
};
struct config_headers {
    struct config_header *items;
    size_t count;
};

/* What an effect runs: a command when it has an argv, else an HTTP call. */
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
#define CONFIG_EFFECT_ATTEMPTS 8 /* where it says nothing: those of the runtime */

/* A definition, and what goes with it. */
struct config_machine {
    const char *name;   /* that the definition must have */
    const char *spec;   /* its file, seen from the folder of this one */
    const char *module; /* likewise: who has its functions; NULL: nobody, and it needs none */
    struct config_effect *effects;
    size_t effect_count;
    bool is_served; /* by `up`; else it is there for commands on its store */
    const struct det_datum *node, *spec_node, *module_node;
};

/* Where the HTTP API and the console listen, and for whom. */
struct config_http {
    const char *const *listen; /* addresses, NULL at the end */
    const char *socket;        /* a path; NULL: none */
    const char *const *hosts;  /* beside those of this machine, NULL at the end; NULL: none */
    struct http_tls tls;       /* certificate NULL: none */
    uint32_t rate;             /* requests a second of a token, or CONFIG_UNLIMITED */
    struct http_limits limits;
#define CONFIG_LIMIT(name, type, otherwise, most, unit, about) type name;
#include "config/limits.def"
#undef CONFIG_LIMIT
    const struct det_datum *node, *listen_node, *tls_node; /* NULL: not said */
};
#define CONFIG_UNLIMITED   UINT32_MAX
#define CONFIG_HTTP_LISTEN "127.0.0.1:7788"
#define CONFIG_HTTP_SOCKET ".detent/http.sock"

struct config_address {
    char host[64]; /* without brackets */
    uint16_t port;
    bool is_v6;
    bool is_loopback; /* nobody on another machine reaches it */
};
/* "127.0.0.1:7788", "[::1]:7788", "localhost:7788". 0 or DET_ERR_MALFORMED with a sentence. */
DET_MUST_CHECK int config_parse_address(
    const char *text, struct config_address *ret, struct det_error *reterr);
/* What holds where there is no section 'http'. */
void config_http_init(struct config_http *http);
/* Whether others than this machine reach one of its addresses. */
bool config_http_is_open(const struct config_http *http);

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

/* Where spans are sent. */
struct config_traces {
    const char *endpoint; /* NULL: nowhere */
    struct config_headers headers;
    uint32_t sample; /* of CONFIG_SAMPLE_ALL */
};
#define CONFIG_SAMPLE_ALL 1000000

/* A file with kinds of workers in C. */
struct config_kinds {
    const char *path; /* as in the file, and whole once it is settled */
    bool is_isolated; /* a process of its own for each worker */
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

struct config {
    bool has_log_files;        /* a task has one */
    struct config_task *tasks; /* as in the file */
    size_t task_count;
    struct config_task **order; /* the same, but what a task depends on stands before it */
    struct config_group *groups;
    size_t group_count;
    struct config_group **group_order; /* parents first */
    struct config_slot *slots;
    size_t slot_count;
    const char *store;                  /* the URL; NULL: none is said, and there are no machines */
    const struct det_datum *store_node; /* NULL: none is said */
    struct config_machine *machines;
    size_t machine_count;
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
    uid_t owner;         /* of the file, who says what runs here; set before; 0: root, or unknown */
    bool may_be_bare;    /* set before: that there is nothing to run is no problem */
    bool is_bare;        /* there is none: tasks, machines, durable slots, workers */
    bool lists_machines; /* it says which, be it none */
};

/* Whether it can be a name in the file; and what is said when it cannot. */
bool config_is_name(const char *text);
#define CONFIG_NAME_RULE \
    "is no name: letters, digits, '.', '_' and '-', at most 127, the first one a letter or digit"

/* Effects of all machines that run at the same time: `limits.effects`. */
#define CONFIG_EFFECTS     64
#define CONFIG_EFFECTS_MAX DET_EFFECT_THREADS_MAX
uint32_t config_effects(const struct config *config);
/* Whether it has a durable slot. */
bool config_has_durable(const struct config *config);
/* Whether the tree looks like this kind of file: for those who do not go by its name. */
bool config_is_one(const struct det_datum *root);
/* Reads the tree; `ret` is zero but for what is set before. 0, DET_ERR_MALFORMED with all problems
 * that do not follow from others, in order of place, or DET_ERR_NO_MEMORY with that as the last
 * one. */
DET_MUST_CHECK int config_read(
    struct det_arena *arena, const struct det_datum *root, struct config *ret,
    struct cli_problems *reterr);

/* What the computer is asked with. */
struct config_site {
    const char *folder; /* of the file; "." for the one we are in */
    const char *path;   /* the variable PATH; NULL: what the C library takes then */
    /* det_cron_parse(), or NULL: expressions are not looked at. */
    int (*parse_cron)(const char *text, struct det_cron *ret, struct det_error *reterr);
};
/* Programs, folders, users, cron expressions, the URL of the store. Adds to the problems. 0 or
 * DET_ERR_MALFORMED. */
DET_MUST_CHECK int config_check(
    const struct config *config, const struct config_site *site, struct cli_problems *problems);
/* What a definition has, and what the file says of it: effects, their events, functions that only C
 * can have. Adds to the problems. 0 or DET_ERR_MALFORMED. */
DET_MUST_CHECK int config_check_machine(
    const struct config_machine *machine, const struct det_machine *definition,
    struct cli_problems *problems);
/* workers_section.c: whether workers are of kinds that there are (NULL at the end), in states that
 * these have, and whether their configs can be derived. Adds to the problems. 0, DET_ERR_MALFORMED
 * or DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int config_check_workers(
    const struct config_workers *workers, const struct det_worker_kind *const *kinds,
    const struct det_allocator *allocator, struct cli_problems *problems);
/* Puts every task and every command of an effect into its folder, seen from `folder`, and completes
 * its environment with `base`, NULL-terminated: the file wins. Specs and secrets get their whole
 * paths. Once. 0, DET_ERR_LIMIT, DET_ERR_NO_MEMORY, or what a file of variables failed with. */
DET_MUST_CHECK int config_settle(
    struct config *config, struct det_arena *arena, const char *folder, const char *const *base);

#endif
