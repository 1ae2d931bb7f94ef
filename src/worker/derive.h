/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* derive.h - from what a user says about a worker to its desired state.
 *
 *     spec (config, variables, location) --+
 *     scope of the parent (the same, merged +--> template --> YAML --> config --derive--> desired
 *       from the root down, and globals) --+                  record
 *
 * Whether it must be derived again is a comparison of det_derive_hash(): it covers config,
 * variables, globals and location, and none of the internals. */
#ifndef DET_WORKER_DERIVE_H
#define DET_WORKER_DERIVE_H

#include "worker/location.h"
#include "worker/variables.h"

struct det_child_spec;
struct det_worker_kind;
struct det_worker_identity;

/* What is said about one worker; owns all of it. All zero is an empty one of the default allocator,
 * which needs no deinit. */
struct det_user_spec {
    struct det_arena arena;            /* of what follows */
    const char *config;                /* a template of YAML; NULL: none */
    const struct det_datum *variables; /* a map; NULL: none */
    struct det_location location;
    bool is_config_data;  /* `config_hash` is that of a map, whatever the order of its keys */
    uint64_t config_hash; /* 0: there is none */
    uint64_t hash;
};

/* Reads the config, the variables and the location of a child's spec. The config is not looked at:
 * what is wrong with it is found when it is derived. DET_ERR_MALFORMED, DET_ERR_INVALID,
 * DET_ERR_LIMIT with place, reason and remedy; DET_ERR_NO_MEMORY. `ret` is then all zero. */
DET_MUST_CHECK int det_user_spec_init(
    struct det_user_spec *ret, const struct det_allocator *allocator,
    const struct det_child_spec *child, struct det_error *reterr);
/* The same from trees, which are copied: `config` is text, or a map that becomes YAML; each may be
 * NULL. */
DET_MUST_CHECK int det_user_spec_init_data(
    struct det_user_spec *ret, const struct det_allocator *allocator,
    const struct det_datum *config, const struct det_datum *variables,
    const struct det_datum *location, struct det_error *reterr);
/* Hashes a config that is a text without templates as the map that it says, so that the order of
 * its keys does not count; one that cannot be read stays a text. DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_user_spec_parse_config(struct det_user_spec *spec);
/* All zero afterwards. */
void det_user_spec_deinit(struct det_user_spec *spec);
bool det_user_spec_equal(const struct det_user_spec *a, const struct det_user_spec *b);

/* What a worker hands down to its children; owns all of it. All zero is that of the root's own
 * parent: nothing. */
struct det_scope_values {
    struct det_arena arena;
    const struct det_datum *variables; /* a map, merged from the root down; NULL: none */
    const struct det_datum *globals;   /* a map; NULL: none */
    struct det_location location;
    uint64_t hash;
};

/* That in which the root is derived: globals alone (YAML, a map; NULL: none). Errors as
 * det_variables_read(). */
DET_MUST_CHECK int det_scope_values_init(
    struct det_scope_values *ret, const struct det_allocator *allocator, const char *globals,
    struct det_error *reterr);
/* The same of a tree that was read, which is not kept. */
DET_MUST_CHECK int det_scope_values_init_data(
    struct det_scope_values *ret, const struct det_allocator *allocator,
    const struct det_datum *globals, struct det_error *reterr);
/* That of the children of the worker with this spec, which itself is in the scope `parent`. A spec
 * that says neither variables nor a location (det_user_spec_is_plain()) has the scope of its
 * parent: no second one is needed for it. DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_scope_values_below(
    struct det_scope_values *ret, const struct det_allocator *allocator,
    const struct det_scope_values *parent, const struct det_user_spec *spec);
void det_scope_values_deinit(struct det_scope_values *scope);
bool det_user_spec_is_plain(const struct det_user_spec *spec);

/* Where a derivation ended. */
enum det_derive_step {
    DET_DERIVE_TEMPLATE, /* the config cannot be rendered: DET_WORKER_EVENT_TEMPLATE_FAILED */
    DET_DERIVE_CONFIG,   /* it is no YAML, or not what the config record wants */
    DET_DERIVE_REFUSED,  /* the kind's derive() said no */
    DET_DERIVE_INVALID,  /* what derive() has made is no valid record */
    DET_DERIVE_DONE,
};
struct det_derivation {
    const struct det_worker_kind *kind;
    const struct det_worker_identity *identity;
    const struct det_user_spec *spec;
    const struct det_scope_values *scope; /* of the parent; NULL: nothing */
    const char *parent_id;                /* NULL: it is the root */
    det_time created_at;                  /* wall */
};
/* Changes when, and only when, what is derived from may have changed. `scope` may be NULL. */
uint64_t det_derive_hash(const struct det_user_spec *spec, const struct det_scope_values *scope);
/* Fills `desired`, a struct of the kind's desired record (det_empty when it has none): memory that
 * is absent, behind the end of a text or padding is zero. On failure it is as it was. The code of
 * a refusal is what derive() returned, of others DET_ERR_MALFORMED, DET_ERR_NOT_FOUND (a variable),
 * DET_ERR_UNKNOWN_FIELD, DET_ERR_TYPE, DET_ERR_RANGE, DET_ERR_LIMIT, DET_ERR_NO_MEMORY; `ret_step`
 * is written in any case, and may be NULL. */
DET_MUST_CHECK int det_derive_desired(
    const struct det_allocator *allocator, const struct det_derivation *what, void *desired,
    enum det_derive_step *ret_step, struct det_error *reterr);

#endif
