/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* driver/sim.h - programs of the simulated world: for tests of what starts processes. */
#ifndef DETENT_DRIVER_SIM_H
#define DETENT_DRIVER_SIM_H

#include <detent/sim.h>

DET_BEGIN

/* A simulated program for process_start(), and so for a process task: `run` is its main, on a
 * thread of its own. `name` is argv[0]; environment, folder, user and groups are not simulated. It
 * writes with det_sim_print(). A signal kills it at the operation where it stands (its threads end
 * and its files are closed, its memory is not freed), unless it catches it, or it is one of those
 * that do nothing by themselves, such as SIGCONT; stopping is not simulated. DET_ERR_EXISTS when
 * there is such a program. */
typedef int det_sim_program_fn(struct det_world *world, int argc, const char *const *argv);
DET_API int det_sim_program(struct det_sim *sim, const char *name, det_sim_program_fn *run)
    DET_MUST_CHECK;

/* These are for a simulated program alone, on any of its threads. */

/* From here on the signal does not end the program, but waits for it. Not SIGKILL, not SIGSTOP. */
DET_API void det_sim_catch(struct det_world *world, int signal);
/* Takes the lowest of the signals that came and were caught; 0: none. Two of a kind may be one. */
DET_API int det_sim_caught(struct det_world *world);
/* Waits for one: its number, or DET_ERR_TIMEOUT. */
DET_API int det_sim_wait_caught(struct det_world *world, det_time deadline) DET_MUST_CHECK;
/* Writes to its output (1) or error (2), without adding the end of a line; waits while the pipe is
 * full, as on Linux at 64 KiB. Thrown away when nobody reads. DET_ERR_NO_MEMORY. */
DET_API int det_sim_print(struct det_world *world, int descriptor, const char *text) DET_MUST_CHECK;
/* Tells news, "READY=1" say, as sd_notify() does; nothing happens when nobody asked for them.
 * DET_ERR_NO_MEMORY, DET_ERR_LIMIT (32 KiB). */
DET_API int det_sim_notify(struct det_world *world, const char *message) DET_MUST_CHECK;

DET_END
#endif
