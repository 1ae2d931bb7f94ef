/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* room.h - the world that the thermostat observes and changes: a room with a heater and a window.
 * From any thread. */
#ifndef ROOM_H
#define ROOM_H

#include <detent/base.h>

#include <pthread.h>
#include <stdbool.h>

struct room {
    pthread_mutex_t mutex;
    double degrees; /* at `at` */
    det_time at;
    bool is_heating, is_window_open;
};

void room_init(struct room *room, det_time now, double degrees);
double room_degrees(struct room *room, det_time now);
bool room_is_heating(struct room *room);
void room_set_heating(struct room *room, det_time now, bool is_heating);
void room_set_window(struct room *room, det_time now, bool is_open);

#endif
