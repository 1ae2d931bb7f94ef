/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* driver/sim.h - programs of the simulated world, for tests that start processes. */
#ifndef DETENT_DRIVER_SIM_H
#define DETENT_DRIVER_SIM_H

#include <detent/sim.h>

DET_BEGIN

/* A simulated program for process_start() and thus for process tasks. `run` is its main function,
 * on its own thread. `name` is argv[0]; environment, folder, user and groups are not simulated. The
 * program writes with det_sim_print(). A signal kills it at its current operation (its threads end
 * and its files are closed; its memory is not freed), unless it catches the signal or the default
 * action of the signal is none, such as SIGCONT; stopping is not simulated. DET_ERR_EXISTS: there
 * is a program with this name. */
typedef int det_sim_program_fn(struct det_world *world, int argc, const char *const *argv);
DET_API int det_sim_program(struct det_sim *sim, const char *name, det_sim_program_fn *run)
    DET_MUST_CHECK;

/* The following functions are for simulated programs, on any of their threads. */

/* Catches the signal from now on instead of ending the program. Not SIGKILL, not SIGSTOP. */
DET_API void det_sim_catch(struct det_world *world, int signal);
/* Takes the lowest pending caught signal; 0: none. Two of the same number may arrive as one. */
DET_API int det_sim_caught(struct det_world *world);
/* Waits for a caught signal: its number, or DET_ERR_TIMEOUT. */
DET_API int det_sim_wait_caught(struct det_world *world, det_time deadline) DET_MUST_CHECK;
/* Writes to the program's output (1) or error (2) without adding a newline; waits while the pipe is
 * full, as on Linux at 64 KiB. Discards the text if there is no reader. DET_ERR_NO_MEMORY. */
DET_API int det_sim_print(struct det_world *world, int descriptor, const char *text) DET_MUST_CHECK;
/* Sends a notification such as "READY=1", like sd_notify(); no effect if the process was started
 * without has_notify. DET_ERR_NO_MEMORY, DET_ERR_LIMIT (32 KiB). */
DET_API int det_sim_notify(struct det_world *world, const char *message) DET_MUST_CHECK;

DET_END
#endif
