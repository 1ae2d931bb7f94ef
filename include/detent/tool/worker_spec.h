/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tool/worker_spec.h - reads the spec file of a kind of worker (.worker) without a compiler.
 *
 * The text is the same that the C templates of worker/define.h include: rows, comments, #define of
 * WORKER_* words, #include of fragments, and nothing else of C. The verdict is the compiler's. */
#ifndef DETENT_TOOL_WORKER_SPEC_H
#define DETENT_TOOL_WORKER_SPEC_H

#include <detent/machine.h>
#include <detent/tool/spec.h>
#include <detent/worker.h>

DET_BEGIN

struct det_worker_spec;

#define DET_WORKER_NO_STOP UINT16_MAX

/* In the order of the rows: their index is the value of the enumerator in C. */
struct det_worker_spec_state {
    const char *name, *wire; /* CONNECTING, connecting */
    enum det_phase phase;
    uint16_t on_stop; /* a state; DET_WORKER_NO_STOP: it stops already */
    struct det_place place;
};
struct det_worker_spec_action {
    const char *name, *wire;
    det_time timeout; /* 0: that of the supervisor */
    struct det_place place;
};

/* What the file says. A name or a record that it does not say is NULL. */
struct det_worker_spec_facts {
    const char *name, *prefix;
    const char *deps; /* the struct */
    const struct det_record *config, *desired, *observed;
    bool has_derive, has_children;
    det_time every;       /* 0: that of the supervisor */
    det_time timeout;     /* of one observation; 0: that of the supervisor */
    bool observes_errors; /* a collect that fails is an observation too */
    bool is_blind;        /* it has nothing to observe */
    const struct det_worker_spec_state *states;
    const struct det_worker_spec_action *actions;
    uint16_t state_count, action_count;
};

/* Reads a spec given as text, as det_spec_read() does: 0 and a spec also when it is broken; fails
 * only for memory. `options` may be NULL; its `report_unhandled` means nothing here. */
DET_API int det_worker_spec_read(
    const char *path, const char *text, size_t size, const struct det_spec_options *options,
    struct det_worker_spec **ret) DET_MUST_CHECK;
DET_API void det_worker_spec_close(struct det_worker_spec *spec);
DET_SCOPED_CLOSE(worker_spec)

/* Owned by the spec. What is broken is missing from the facts, or as good as it could be read. */
DET_API const struct det_worker_spec_facts *det_worker_spec_facts(
    const struct det_worker_spec *spec);
DET_API const struct det_diagnostics *det_worker_spec_diagnostics(
    const struct det_worker_spec *spec);
/* Whether no rule is broken. */
DET_API bool det_worker_spec_is_valid(const struct det_worker_spec *spec);
/* The files that were read, the spec itself first; NULL at the end. */
DET_API const char *det_worker_spec_file(const struct det_worker_spec *spec, size_t index);
/* Every record that was read, in order; NULL at the end. */
DET_API const struct det_record *det_worker_spec_record(
    const struct det_worker_spec *spec, size_t index);

/* A way from state to state that somebody has found in next(), with its reason. */
struct det_worker_way {
    uint16_t from, to;
    const char *reason;
};
/* A machine for draw.h: the states in groups by their phase, an event `stop` for where they stop,
 * and one event for each way that is given. It is for drawings only; owned by the spec. Returns 0
 * or DET_ERR_NO_MEMORY; DET_ERR_INVALID for a spec that is not valid, and for a way of a state that
 * there is not. */
DET_API int det_worker_spec_machine(
    struct det_worker_spec *spec, const struct det_worker_way *ways, size_t way_count,
    const struct det_machine **ret) DET_MUST_CHECK;

DET_END
#endif
