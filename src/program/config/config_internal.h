/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* config_internal.h - what the readers of the parts of detent.yaml share: a mapping is read by a
 * table with one line for each key, which says how its value is taken and where it goes. */
#ifndef DET_CONFIG_CONFIG_INTERNAL_H
#define DET_CONFIG_CONFIG_INTERNAL_H

#include "config/config.h"

#define CONFIG_KEYS_MAX 32

struct config_key;

/* Reads a value into `target`, of the type that its name says. 0, DET_ERR_MALFORMED with a problem,
 * or DET_ERR_NO_MEMORY. */
typedef int config_take_fn(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target);

struct config_key {
    const char *name;
    config_take_fn *take;
    size_t offset;            /* of the target in what the table fills */
    uint64_t least, most;     /* of a number, a size, a span in nanoseconds; most 0: no limit */
    const char *word;         /* of a number or a span: stands for `value` */
    int64_t value;            /* of a choice: what its first word stands for */
    const char *const *words; /* of a choice, NULL at the end */
};

struct config_table {
    const char *what; /* for messages: "a task" */
    const struct config_key *keys;
    size_t count;
};
#define CONFIG_TABLE(what, keys) \
    (&(const struct config_table){ what, keys, sizeof(keys) / sizeof *(keys) })

/* Fills `target` by the table. `nodes`, which may be NULL, gets the values by key, NULL where there
 * is none. */
DET_MUST_CHECK int config_take_mapping(
    struct cli_reader *reader, const struct det_datum *mapping, const struct config_table *table,
    void *target, const struct det_datum **nodes);

config_take_fn config_take_text;      /* const char *; not empty */
config_take_fn config_take_number;    /* uint32_t */
config_take_fn config_take_size;      /* uint64_t, bytes */
config_take_fn config_take_bytes;     /* the same, uint32_t */
config_take_fn config_take_span;      /* det_time; 0s is 1 ns, since a field that is 0 inherits */
config_take_fn config_take_choice;    /* an enum */
config_take_fn config_take_bool;      /* bool */
config_take_fn config_take_backoff;   /* struct det_backoff: policy_section.c */
config_take_fn config_take_intensity; /* struct det_intensity: config.c */
/* Of every mapping of detent.yaml, by what the messages call it; ends with a NULL. In config.c. */
extern const struct reader_example config_examples[];
config_take_fn config_take_argv; /* const char *const *, NULL at the end: command_words.c */

/* 0 or DET_ERR_MALFORMED, at the key of the node. */
DET_MUST_CHECK int config_check_name(struct cli_reader *reader, const struct det_datum *node);

/* policy_section.c: the six keys of a policy, and its target. */
#define CONFIG_POLICY_KEYS 6
void config_policy_keys(struct config_key *keys, size_t offset);
/* What goes with what, given the nodes of those keys. */
DET_MUST_CHECK int config_check_policy(
    struct cli_reader *reader, const struct det_datum *const *nodes,
    const struct det_policy *policy, const struct det_policy *defaults);

/* task_section.c: the keys that every schedule has, and its target; what goes with what. */
enum {
    CONFIG_SCHEDULE_EVERY,
    CONFIG_SCHEDULE_CRON,
    CONFIG_SCHEDULE_MISSED,
    CONFIG_SCHEDULE_ZONE,
    CONFIG_SCHEDULE_KEYS
};
void config_schedule_keys(struct config_key *keys, size_t offset);
DET_MUST_CHECK int config_check_schedule(
    struct cli_reader *reader, const struct det_datum *node, const struct det_datum *const *nodes);

DET_MUST_CHECK int config_take_task(
    struct cli_reader *reader, const struct det_datum *node, const struct config *config,
    struct config_task *task);

/* process_section.c */
config_take_fn config_take_zone;     /* const struct det_zone *, read from this machine's files */
config_take_fn config_take_limits;   /* struct det_process_spec */
config_take_fn config_take_paths;    /* const char *const *, NULL at the end */
config_take_fn config_take_log_file; /* struct config_log_file */
/* The variables of a file of lines "NAME=value", NULL at the end. A variable such as LD_PRELOAD
 * decides what runs: DET_ERR_REFUSED where trust.h does not trust the file; it may be of `owner`,
 * too. DET_ERR_NOT_FOUND, DET_ERR_MALFORMED, DET_ERR_NO_MEMORY, ... */
DET_MUST_CHECK int config_read_variables(
    const char *path, uid_t owner, struct det_arena *arena, const char *const **ret,
    struct det_error *reterr);

/* "NAME=value" of a mapping: const char *const *, NULL at the end. */
config_take_fn config_take_environment;
/* Whether it can be the name of a variable. */
bool config_is_variable(const char *name);

/* slot_section.c */
DET_MUST_CHECK int config_take_slot(
    struct cli_reader *reader, const struct det_datum *node, struct config_slot *slot);
/* A durable slot has a store, and nobody beside what that keeps. */
DET_MUST_CHECK int config_check_durable(
    struct cli_reader *reader, const struct config *config, bool has_store);

/* effect_section.c */
DET_MUST_CHECK int config_take_effect(
    struct cli_reader *reader, const struct det_datum *node, struct config_effect *effect);

/* `headers` and `secret` add to one list: struct config_headers. */
config_take_fn config_take_headers;
/* What a URL is made of is judged by who calls it; here it only cannot be mistaken. */
bool config_is_url(const char *text);
bool config_has_password(const char *url);
#define CONFIG_PASSWORD_RULE \
    "a URL with a password is seen by many; write secret: {Authorization: file:...}"

/* http_section.c, observe_sections.c */
DET_MUST_CHECK int config_take_http(
    struct cli_reader *reader, const struct det_datum *node, struct config_http *http);
DET_MUST_CHECK int config_take_log(
    struct cli_reader *reader, const struct det_datum *node, struct config_log *log);
DET_MUST_CHECK int config_take_traces(
    struct cli_reader *reader, const struct det_datum *node, struct config_traces *traces);

/* machine_section.c */
DET_MUST_CHECK int config_take_machine(
    struct cli_reader *reader, const struct det_datum *node, struct config_machine *machine);

/* workers_section.c */
DET_MUST_CHECK int config_take_workers(
    struct cli_reader *reader, const struct det_datum *node, struct config_workers *workers);

/* name_graph.c: names that lead to others, circles, orders. */
DET_MUST_CHECK int config_link(struct cli_reader *reader, struct config *config);

#endif
