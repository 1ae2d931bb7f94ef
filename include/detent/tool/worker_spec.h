/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tool/worker_spec.h - reads the spec file of a kind of worker (.worker) without a compiler.
 *
 * The text is the one that the C templates of worker/define.h include: rows, comments, #define of
 * WORKER_* words, #include of fragments, and no other C. The verdict equals the compiler's. */
#ifndef DETENT_TOOL_WORKER_SPEC_H
#define DETENT_TOOL_WORKER_SPEC_H

#include <detent/machine.h>
#include <detent/tool/spec.h>
#include <detent/worker.h>

DET_BEGIN

struct det_worker_spec;

#define DET_WORKER_NO_STOP UINT16_MAX

/* The states in the order of the rows: the index is the value of the enumerator in C. */
struct det_worker_spec_state {
    const char *name, *wire; /* CONNECTING, connecting */
    enum det_phase phase;
    uint16_t on_stop; /* a state; DET_WORKER_NO_STOP: the state belongs to a stop */
    struct det_place place;
};
struct det_worker_spec_action {
    const char *name, *wire;
    det_time timeout; /* 0: that of the supervisor */
    struct det_place place;
};

/* The contents of the file. A missing name or record is NULL. */
struct det_worker_spec_summary {
    const char *name, *prefix;
    const char *deps; /* the struct of WORKER_DEPS */
    const struct det_record *config, *desired, *observed;
    bool has_derive, has_children;
    det_time every;       /* 0: that of the supervisor */
    det_time timeout;     /* limit of one observation; 0: that of the supervisor */
    bool observes_errors; /* a failed collect counts as an observation */
    bool is_blind;        /* the kind has no collect */
    const struct det_worker_spec_state *states;
    const struct det_worker_spec_action *actions;
    uint16_t state_count, action_count;
};

/* Reads a spec from text, like det_spec_read(): 0 and a spec even if it is broken; fails only with
 * DET_ERR_NO_MEMORY. `options` may be NULL; `report_unhandled` is ignored. */
DET_API int det_worker_spec_read(
    const char *path, const char *text, size_t size, const struct det_spec_options *options,
    struct det_worker_spec **ret) DET_MUST_CHECK;
DET_API void det_worker_spec_close(struct det_worker_spec *spec);
DET_SCOPED_CLOSE(worker_spec)

/* Owned by the spec. Broken parts are missing, or read as far as possible. */
DET_API const struct det_worker_spec_summary *det_worker_spec_summary(
    const struct det_worker_spec *spec);
DET_API const struct det_diagnostics *det_worker_spec_diagnostics(
    const struct det_worker_spec *spec);
/* True if no rule is broken. */
DET_API bool det_worker_spec_is_valid(const struct det_worker_spec *spec);
/* Each file of the spec, the spec itself first; NULL at the end. */
DET_API const char *det_worker_spec_file(const struct det_worker_spec *spec, size_t index);
/* Each record of the spec, in order; NULL at the end. */
DET_API const struct det_record *det_worker_spec_record(
    const struct det_worker_spec *spec, size_t index);

/* A transition found in next(), with its reason. */
struct det_worker_transition {
    uint16_t from, to;
    const char *reason;
};
/* Makes a machine for draw.h: the states in groups by phase, an event `stop` for the STOP rows, and
 * one event for each given transition. For drawings only; owned by the spec. Returns 0 or
 * DET_ERR_NO_MEMORY; DET_ERR_INVALID: the spec is invalid, or a transition has an unknown state. */
DET_API int det_worker_spec_machine(
    struct det_worker_spec *spec, const struct det_worker_transition *transitions,
    size_t transition_count, const struct det_machine **ret) DET_MUST_CHECK;

DET_END
#endif
