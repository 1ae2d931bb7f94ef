#!/usr/bin/env escript
%% SPDX-License-Identifier: MIT
%% Copyright the detent authors

%% gen_statem.escript - peer of step.c: the order machine in Erlang's gen_statem, driven by casts.
%%
%% gen_statem.escript EVENTS COUNT prints {"nanoseconds": N}. The clock stops when the last event
%% has been taken, which a call behind the casts makes sure of.
-module(order_peer).
-behaviour(gen_statem).
-mode(compile).
-export([main/1, init/1, callback_mode/0, handle_event/4]).

callback_mode() -> handle_event_function.
init(_) -> {ok, pending, 0}.

handle_event({call, From}, count, _, Untaken) -> {keep_state_and_data, [{reply, From, Untaken}]};
handle_event(cast, anew, _, Untaken) -> {next_state, pending, Untaken};
handle_event(cast, Event, State, Untaken) ->
    case {State, Event} of
        {pending, pay} -> {next_state, charging, Untaken};
        {pending, charged} -> {next_state, paid, Untaken};
        {pending, cancel} -> {next_state, cancelled, Untaken};
        {pending, expired} -> {next_state, cancelled, Untaken};
        {pending, move} -> keep_state_and_data;
        {charging, charged} -> {next_state, paid, Untaken};
        {charging, declined} -> {next_state, pending, Untaken};
        {charging, move} -> keep_state_and_data;
        {paid, ship} -> {next_state, shipped, Untaken};
        {paid, cancel} -> {next_state, refunding, Untaken};
        {paid, move} -> keep_state_and_data;
        {paid, late} -> keep_state_and_data;
        {shipped, deliver} -> {next_state, delivered, Untaken};
        {shipped, late} -> keep_state_and_data;
        {refunding, refunded} -> {next_state, cancelled, Untaken};
        {cancelled, charged} -> {next_state, refunding, Untaken};
        _ -> {keep_state, Untaken + 1}
    end.

walk(_, _, _, Count, Count) -> ok;
walk(Machine, Names, Events, I, Count) ->
    case I rem 16 of
        0 -> gen_statem:cast(Machine, anew);
        _ -> ok
    end,
    Event = binary:at(Events, I rem byte_size(Events)),
    gen_statem:cast(Machine, element(Event + 1, Names)),
    walk(Machine, Names, Events, I + 1, Count).

main([Path, Text]) ->
    {ok, Events} = file:read_file(Path),
    Count = list_to_integer(Text),
    Names = {pay, ship, deliver, cancel, move, charged, declined, refunded, expired, late},
    {ok, Machine} = gen_statem:start(?MODULE, [], []),
    walk(Machine, Names, Events, 0, Count div 2),
    gen_statem:call(Machine, count, infinity),
    Started = erlang:monotonic_time(nanosecond),
    walk(Machine, Names, Events, 0, Count),
    Untaken = gen_statem:call(Machine, count, infinity),
    Spent = erlang:monotonic_time(nanosecond) - Started,
    io:format("{\"nanoseconds\": ~B, \"untaken\": ~B}~n", [Spent, Untaken]).
