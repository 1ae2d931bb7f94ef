/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* spec.h - the YAML of det_workers_apply() (docs/formats/workers.md), read into specs.
 *
 *     variables: {IP: 10.0.0.7}
 *     location: {enterprise: acme, site: north}
 *     children:
 *       - name: press
 *         kind: machine
 *         config: {address: "{{ .IP }}"}      a map, or text
 *         variables: {PORT: 502}
 *         location: {line: "4"}
 *         run_in: [running]                   states of the parent
 *         disabled: false
 *         children: [...] */
#ifndef DET_WORKER_SPEC_H
#define DET_WORKER_SPEC_H

#include "worker/derive.h"

#define DET_SPEC_ROOT UINT32_MAX

struct det_spec_child {
    const char *name, *kind;
    const char *const *run_in; /* names of states of the parent, each once */
    uint32_t run_in_count;     /* 0: in all of them */
    uint32_t parent;           /* index of its parent child; DET_SPEC_ROOT */
    uint32_t line, column;     /* its place in the text */
    struct det_user_spec spec;
    uint64_t hash; /* covers everything except its children */
    bool is_disabled;
};

/* Owns all of it. All zero is an empty one. */
struct det_spec {
    struct det_arena arena;
    struct det_user_spec root;       /* without a config */
    struct det_spec_child *children; /* parents before children, siblings in their order */
    uint32_t count;
};

/* Reads a tree. An empty text has no children. Kinds, states and configs are not checked.
 * DET_ERR_MALFORMED: not YAML; DET_ERR_INVALID: unknown keys, invalid or duplicate names, no kind,
 * wrong types, too deep; each with place, reason and remedy. DET_ERR_LIMIT, DET_ERR_NO_MEMORY.
 * `ret` is then all zero. */
DET_MUST_CHECK int det_workers_spec_read(
    struct det_spec *ret, const struct det_allocator *allocator, const char *yaml, size_t size,
    struct det_error *reterr);
/* Like det_workers_spec_read(), from a parsed tree, which is not kept. */
DET_MUST_CHECK int det_workers_spec_read_data(
    struct det_spec *ret, const struct det_allocator *allocator, const struct det_datum *root,
    struct det_error *reterr);
/* det_workers_apply() and det_workers_set_globals() for parsed trees, which are not kept. */
struct det_workers;
DET_MUST_CHECK int det_workers_apply_data(
    struct det_workers *workers, const struct det_datum *root, struct det_error *reterr);
DET_MUST_CHECK int det_workers_set_globals_data(
    struct det_workers *workers, const struct det_datum *globals, struct det_error *reterr);
/* All zero afterwards. */
void det_spec_deinit(struct det_spec *spec);
/* DET_IN() of its `run_in` among the states of the parent's kind; 0: all. DET_ERR_INVALID with the
 * nearest name. */
DET_MUST_CHECK int det_spec_run_in(
    const struct det_spec_child *child, const struct det_worker_kind *parent, uint64_t *ret,
    struct det_error *reterr);

#endif
