/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* room.c - a room that gets warmer and colder at fixed rates. */
#include "room.h"

#define OUTSIDE 8.0

/* Applies the time since the last call. */
static void pass(struct room *room, det_time now)
{
    double minutes = (double)(now - room->at) / (double)DET_MINUTE;
    double change = (room->is_heating ? 1.5 : 0.0) - 0.3 - (room->is_window_open ? 2.0 : 0.0);

    room->degrees += change * minutes;
    if (room->degrees < OUTSIDE)
        room->degrees = OUTSIDE;
    room->at = now;
}

void room_init(struct room *room, det_time now, double degrees)
{
    *room = (struct room){ .degrees = degrees, .at = now };
    pthread_mutex_init(&room->mutex, NULL);
}

double room_degrees(struct room *room, det_time now)
{
    double degrees;

    pthread_mutex_lock(&room->mutex);
    pass(room, now);
    degrees = room->degrees;
    pthread_mutex_unlock(&room->mutex);
    return degrees;
}

bool room_is_heating(struct room *room)
{
    bool is_heating;

    pthread_mutex_lock(&room->mutex);
    is_heating = room->is_heating;
    pthread_mutex_unlock(&room->mutex);
    return is_heating;
}

void room_set_heating(struct room *room, det_time now, bool is_heating)
{
    pthread_mutex_lock(&room->mutex);
    pass(room, now);
    room->is_heating = is_heating;
    pthread_mutex_unlock(&room->mutex);
}

void room_set_window(struct room *room, det_time now, bool is_open)
{
    pthread_mutex_lock(&room->mutex);
    pass(room, now);
    room->is_window_open = is_open;
    pthread_mutex_unlock(&room->mutex);
}
