#!/usr/bin/env escript
%% SPDX-License-Identifier: MIT
%% Copyright the detent authors

%% supervisor.escript - peer of tasks.c and window.c: children of an OTP supervisor that fail as soon
%% as they run, each restarted on its own.
%%
%% supervisor.escript CHILDREN BEFORE COUNT prints {"nanoseconds": N}, the time of COUNT restarts
%% after BEFORE others, all of which stay in the window of its restart intensity. Children are bare
%% processes and reports of their failures are off: nothing is measured but the supervisor.
-module(supervisor_peer).
-behaviour(supervisor).
-mode(compile).
-export([main/1, init/1, start_child/1]).

init({Children, Bench}) ->
    Limits = #{strategy => one_for_one, intensity => 100000000, period => 100000},
    Child = fun(Number) -> #{id => Number, start => {?MODULE, start_child, [Bench]}} end,
    {ok, {Limits, lists:map(Child, lists:seq(1, Children))}}.

start_child({Main, Starts, First, Last}) ->
    {ok, spawn_link(fun() -> run(Main, atomics:add_get(Starts, 1, 1), First, Last) end)}.

%% Those that start after the last one do not fail any more.
run(Main, Number, First, Last) ->
    case Number of
        First -> Main ! {first, erlang:monotonic_time(nanosecond)};
        Last -> Main ! {last, erlang:monotonic_time(nanosecond)};
        _ -> ok
    end,
    case Number < Last of
        true -> exit(failed);
        false -> receive stop -> ok end
    end.

main([Text, Before, Count]) ->
    logger:set_primary_config(level, none),
    Children = list_to_integer(Text),
    First = Children + list_to_integer(Before),
    Bench = {self(), atomics:new(1, []), First, First + list_to_integer(Count)},
    {ok, _} = supervisor:start_link(?MODULE, {Children, Bench}),
    Started = receive {first, Begin} -> Begin end,
    Ended = receive {last, End} -> End end,
    io:format("{\"nanoseconds\": ~B}~n", [Ended - Started]),
    halt(0).
