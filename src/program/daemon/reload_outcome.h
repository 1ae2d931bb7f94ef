/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reload_outcome.h - outcomes of a reload, for the daemon, its log and its clients. */
#ifndef DET_DAEMON_RELOAD_OUTCOME_H
#define DET_DAEMON_RELOAD_OUTCOME_H

enum reload_outcome {
#define RELOAD_OUTCOME(id, name, error, sentence) RELOAD_##id,
#include "daemon/reload_outcome.def"
#undef RELOAD_OUTCOME
    RELOAD_OUTCOME_COUNT
};

/* The name in an answer: "done". */
const char *reload_outcome_name(enum reload_outcome outcome);
/* The outcome of this name; RELOAD_FAILED for an unknown name. */
enum reload_outcome reload_outcome_of(const char *name);
/* 0 for RELOAD_DONE, else a DET_ERR_* code. */
int reload_outcome_error(enum reload_outcome outcome);
/* A sentence without a period, such as "not all changes were applied"; "" for RELOAD_DONE. */
const char *reload_outcome_sentence(enum reload_outcome outcome);

#endif
