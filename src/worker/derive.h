/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* derive.h - from the user's spec of a worker to its desired state.
 *
 *     spec (config, variables, location) --+
 *     scope of the parent (the same, merged +--> template --> YAML --> config --derive--> desired
 *       from the root down, and globals) --+                  record
 *
 * det_derive_hash() decides whether a new derivation is needed: it covers config, variables,
 * globals and location, and no internals. */
#ifndef DET_WORKER_DERIVE_H
#define DET_WORKER_DERIVE_H

#include "worker/location.h"
#include "worker/variables.h"

struct det_child_spec;
struct det_worker_kind;
struct det_worker_identity;

/* The spec of one worker; owns all of it. All zero is an empty one of the default allocator, which
 * needs no deinit. */
struct det_user_spec {
    struct det_arena arena;            /* memory of the following fields */
    const char *config;                /* a template of YAML; NULL: none */
    const struct det_datum *variables; /* a map; NULL: none */
    struct det_location location;
    bool is_config_data;  /* `config_hash` is that of a map, whatever the order of its keys */
    uint64_t config_hash; /* 0: no config */
    uint64_t hash;
};

/* Reads the config, the variables and the location of a child's spec. The config is not checked:
 * the derivation finds its problems. DET_ERR_MALFORMED, DET_ERR_INVALID, DET_ERR_LIMIT with place,
 * reason and remedy; DET_ERR_NO_MEMORY. `ret` is then all zero. */
DET_MUST_CHECK int det_user_spec_init(
    struct det_user_spec *ret, const struct det_allocator *allocator,
    const struct det_child_spec *child, struct det_error *reterr);
/* Like det_user_spec_init(), from trees, which are copied: `config` is text, or a map that becomes
 * YAML; each may be NULL. */
DET_MUST_CHECK int det_user_spec_init_data(
    struct det_user_spec *ret, const struct det_allocator *allocator,
    const struct det_datum *config, const struct det_datum *variables,
    const struct det_datum *location, struct det_error *reterr);
/* Hashes a config text without templates as the map that it contains, so that the order of its keys
 * does not count; an unreadable one stays a text. DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_user_spec_parse_config(struct det_user_spec *spec);
/* All zero afterwards. */
void det_user_spec_deinit(struct det_user_spec *spec);
bool det_user_spec_equal(const struct det_user_spec *a, const struct det_user_spec *b);

/* The scope that a worker passes to its children; owns all of it. All zero: the empty scope above
 * the root. */
struct det_scope_values {
    struct det_arena arena;
    const struct det_datum *variables; /* a map, merged from the root down; NULL: none */
    const struct det_datum *globals;   /* a map; NULL: none */
    struct det_location location;
    uint64_t hash;
};

/* The scope of the root: globals alone (YAML, a map; NULL: none). Errors as
 * det_variables_read(). */
DET_MUST_CHECK int det_scope_values_init(
    struct det_scope_values *ret, const struct det_allocator *allocator, const char *globals,
    struct det_error *reterr);
/* Like det_scope_values_init(), from a parsed tree, which is copied. */
DET_MUST_CHECK int det_scope_values_init_data(
    struct det_scope_values *ret, const struct det_allocator *allocator,
    const struct det_datum *globals, struct det_error *reterr);
/* The scope of the children of the worker with this spec, whose own scope is `parent`. A spec
 * without variables and location (det_user_spec_is_plain()) passes on the scope of its parent and
 * needs no second one. DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_scope_values_below(
    struct det_scope_values *ret, const struct det_allocator *allocator,
    const struct det_scope_values *parent, const struct det_user_spec *spec);
void det_scope_values_deinit(struct det_scope_values *scope);
bool det_user_spec_is_plain(const struct det_user_spec *spec);

/* The step at which a derivation ended. */
enum det_derive_step {
    DET_DERIVE_TEMPLATE, /* the config cannot be rendered: DET_WORKER_EVENT_TEMPLATE_FAILED */
    DET_DERIVE_CONFIG,   /* not valid YAML, or not a valid config record */
    DET_DERIVE_REFUSED,  /* the kind's derive() refused */
    DET_DERIVE_INVALID,  /* the result of derive() is not a valid record */
    DET_DERIVE_DONE,
};
struct det_derivation {
    const struct det_worker_kind *kind;
    const struct det_worker_identity *identity;
    const struct det_user_spec *spec;
    const struct det_scope_values *scope; /* of the parent; NULL: empty */
    const char *parent_id;                /* NULL: the root */
    det_time created_at;                  /* wall */
};
/* Changes if and only if the inputs of the derivation may have changed. `scope` may be NULL. */
uint64_t det_derive_hash(const struct det_user_spec *spec, const struct det_scope_values *scope);
/* Fills `desired`, a struct of the kind's desired record (det_empty if it has none): padding,
 * absent values and bytes after the end of a text are zero. On failure it is unchanged. The code of
 * a refusal is the return value of derive(), otherwise DET_ERR_MALFORMED, DET_ERR_NOT_FOUND (a
 * variable), DET_ERR_UNKNOWN_FIELD, DET_ERR_TYPE, DET_ERR_RANGE, DET_ERR_LIMIT, DET_ERR_NO_MEMORY;
 * `ret_step` is always written, and may be NULL. */
DET_MUST_CHECK int det_derive_desired(
    const struct det_allocator *allocator, const struct det_derivation *what, void *desired,
    enum det_derive_step *ret_step, struct det_error *reterr);

#endif
