/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* config_internal.h - shared by the readers of detent.yaml: a mapping is read by a table with one
 * row for each key: how to read its value, and where to store it. */
#ifndef DET_CONFIG_CONFIG_INTERNAL_H
#define DET_CONFIG_CONFIG_INTERNAL_H

#include "config/config.h"

#define CONFIG_KEYS_MAX 32

struct config_key;

/* Reads a value into `target`; its type is in the name of the function. Returns 0,
 * DET_ERR_MALFORMED with a problem, or DET_ERR_NO_MEMORY. */
typedef int config_take_fn(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target);

struct config_key {
    const char *name;
    config_take_fn *take;
    size_t offset;            /* offset of the target in the filled struct */
    uint64_t least, most;     /* bounds of a number, a size, a duration in nanoseconds; most 0: no
                               * limit */
    const char *word;         /* a word for `value` of a number or a duration */
    int64_t value;            /* of a choice: the value of its first word */
    const char *const *words; /* of a choice, NULL at the end */
};

/* Rows of a table; the last two have bounds. */
#define CONFIG_KEY(key, reads, at)                     \
    {                                                  \
        .name = (key), .take = (reads), .offset = (at) \
    }
#define CONFIG_CHOICE(key, at, first, choices)                                       \
    {                                                                                \
        .name = (key), .take = config_take_choice, .offset = (at), .value = (first), \
        .words = (choices)                                                           \
    }
#define CONFIG_RANGE(key, reads, at, from, to)                                     \
    {                                                                              \
        .name = (key), .take = (reads), .offset = (at), .least = (uint64_t)(from), \
        .most = (uint64_t)(to)                                                     \
    }
/* `text` is a word for `number`. */
#define CONFIG_RANGE_OR(key, reads, at, from, to, text, number)                    \
    {                                                                              \
        .name = (key), .take = (reads), .offset = (at), .least = (uint64_t)(from), \
        .most = (uint64_t)(to), .word = (text), .value = (number)                  \
    }

struct config_table {
    const char *what; /* for messages: "a task" */
    const struct config_key *keys;
    size_t count;
};
#define CONFIG_TABLE(what, keys) \
    (&(const struct config_table){ what, keys, sizeof(keys) / sizeof *(keys) })

/* Fills `target` by the table. `nodes`, which may be NULL, receives the values by key, NULL for
 * absent keys. */
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
/* Examples of every mapping of detent.yaml, by its name in messages; ends with a NULL. In
 * config.c. */
extern const struct reader_example config_examples[];
config_take_fn config_take_argv; /* const char *const *, NULL at the end: command_words.c */

/* 0 or DET_ERR_MALFORMED, at the key of the node. */
DET_MUST_CHECK int config_check_name(struct cli_reader *reader, const struct det_datum *node);

/* policy_section.c: the six keys of a policy, and its target. */
#define CONFIG_POLICY_KEYS 6
void config_policy_keys(struct config_key *keys, size_t offset);
/* Checks which of those keys may be combined, given their nodes. */
DET_MUST_CHECK int config_check_policy(
    struct cli_reader *reader, const struct det_datum *const *nodes,
    const struct det_policy *policy, const struct det_policy *defaults);

/* task_section.c: the keys of every schedule, and its target; and their combinations. */
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

/* Reads "NAME=value" of a mapping: const char *const *, NULL at the end. */
config_take_fn config_take_environment;
/* Returns true if the text is a valid name of a variable. */
bool config_is_variable(const char *name);

/* slot_section.c */
DET_MUST_CHECK int config_take_slot(
    struct cli_reader *reader, const struct det_datum *node, struct config_slot *slot);
/* A durable slot needs a store, and accepts no tasks of the file. */
DET_MUST_CHECK int config_check_durable(
    struct cli_reader *reader, const struct config *config, bool has_store);

/* effect_section.c */
DET_MUST_CHECK int config_take_effect(
    struct cli_reader *reader, const struct det_datum *node, struct config_effect *effect);

/* `headers` and `secret` add to one list: struct config_headers. */
config_take_fn config_take_headers;
/* A syntactic check only; the HTTP client validates the URL. */
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

/* flow_section.c */
DET_MUST_CHECK int config_take_flow(
    struct cli_reader *reader, const struct det_datum *node, struct config_flow *flow);

/* name_graph.c: references, cycles, orders. */
DET_MUST_CHECK int config_link(struct cli_reader *reader, struct config *config);

#endif
