/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* run.h - struct up, the parts of a run, for the files that open and close them. Other files use
 * the functions of daemon.h and of the headers of the parts. */
#ifndef DET_DAEMON_RUN_H
#define DET_DAEMON_RUN_H

#include "base/list.h"
#include "config/project_file.h"
#include "daemon/daemon.h"
#include "daemon/host.h"
#include "daemon/output_queue.h"

/* Versions of the file that reloads have replaced. */
struct up_earlier_files {
    struct up_retired *retired;
    const struct reload_item *standing; /* differences that need a restart: reload_plan.h */
};

/* The parts of a run. */
struct up {
    struct cli *cli; /* that of `output` once it is open */
    struct up_output output;
    const struct up_options *options;
    struct det_loop *loop;
    struct serve_notify notify; /* the service manager */
    struct up_life *life;       /* NULL: not open yet */
    struct up_project *project;
    struct up_run_sockets *run_sockets; /* NULL: not open; so for the parts below */
    struct up_signals *signals;
    struct up_deadline *deadline;
    struct up_guard *guard;
    struct up_log *log; /* NULL: not open; so for the parts below */
    struct up_audit *audit;
    struct up_tasks *tasks;
    struct up_slots *slots;
    struct up_store_watch *watch;
    struct up_earlier_files earlier;
    struct up_reload *reload; /* NULL: not open yet */
    struct up_api_place front;
    struct up_observe *observe;
    struct det_store *shared;     /* the store of workers, shared by all parts; NULL: no workers */
    struct up_machines *machines; /* NULL: not served */
    uint32_t effects_max;         /* `limits.effects` at the start; 0: no machines served yet */
    struct up_workers *workers;   /* NULL: no workers */
    struct up_flows *flows;       /* NULL: no flows */
    struct det_list requests;     /* open requests */
};

#endif
