// SPDX-License-Identifier: MIT
// Copyright the detent authors

//! Peer of threads.c: the same work with taskvisor on a multi-threaded Tokio runtime.
//!
//! `peer-taskvisor CASE COUNT` prints `{"nanoseconds": N}`, the time of COUNT operations. The caller
//! is a task that was spawned on the runtime, which is faster than a thread outside of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use taskvisor::{
    BackoffPolicy, ControllerConfig, ControllerSpec, RestartPolicy, Supervisor, SupervisorConfig,
    SupervisorHandle, TaskContext, TaskError, TaskFn, TaskRef, TaskSpec,
};
use tokio::sync::Notify;

const BATCH: usize = 256;

fn instant(name: String) -> TaskSpec {
    let task: TaskRef = TaskFn::arc(|_: TaskContext| async { Ok(()) });
    TaskSpec::new(name, task, RestartPolicy::Never, BackoffPolicy::default(), None)
}

async fn complete(handle: &SupervisorHandle, specs: Vec<TaskSpec>) {
    let mut waiters = Vec::with_capacity(specs.len());
    for spec in specs {
        waiters.push(handle.add(spec).watch().execute().await.expect("add"));
    }
    for waiter in waiters {
        waiter.wait().await.expect("end");
    }
}

/// `size` tasks at a time: added, and then waited for.
async fn lives(handle: SupervisorHandle, count: usize, size: usize) -> Duration {
    let start = Instant::now();
    for first in (0..count).step_by(size) {
        let specs = (first..first + size).map(|i| instant(format!("task-{i}"))).collect();
        complete(&handle, specs).await;
    }
    start.elapsed()
}

/// Added, and cancelled as soon as that is known.
async fn cancel(handle: SupervisorHandle, count: usize) -> Duration {
    let start = Instant::now();
    for i in 0..count {
        let task: TaskRef = TaskFn::arc(|context: TaskContext| async move {
            context.cancelled().await;
            Ok(())
        });
        let spec = TaskSpec::once(format!("task-{i}"), task);
        let id = handle.add(spec).execute().await.expect("add");
        handle.cancel(id).execute().await.expect("cancel");
    }
    start.elapsed()
}

fn submission(i: usize, slots: usize) -> ControllerSpec {
    ControllerSpec::queue(instant(format!("task-{i}"))).with_slot(format!("slot-{}", i % slots))
}

/// Each into a slot of its own, and only until it was taken.
async fn submit(handle: SupervisorHandle, count: usize) -> Duration {
    let start = Instant::now();
    for i in 0..count {
        handle.submit(submission(i, count)).execute().await.expect("submit");
    }
    start.elapsed()
}

/// `size` at a time into eight slots, until all have come to their end.
async fn slots(handle: SupervisorHandle, count: usize, size: usize) -> Duration {
    let start = Instant::now();
    for first in (0..count).step_by(size) {
        let mut waiters = Vec::with_capacity(size);
        for i in first..first + size {
            let submit = handle.submit(submission(i, 8));
            waiters.push(submit.watch().execute().await.expect("submit"));
        }
        for waiter in waiters {
            waiter.wait().await.expect("end");
        }
    }
    start.elapsed()
}

/// A function that blocks a thread of its own, and fails: from its first call to its last.
async fn restart(handle: SupervisorHandle, count: usize) -> Duration {
    let calls = Arc::new(AtomicU64::new(0));
    let over = Arc::new(Notify::new());
    let task: TaskRef = TaskFn::arc({
        let (calls, over) = (Arc::clone(&calls), Arc::clone(&over));
        move |_: TaskContext| {
            let (calls, over) = (Arc::clone(&calls), Arc::clone(&over));
            async move {
                let call = tokio::task::spawn_blocking(move || {
                    calls.fetch_add(1, Ordering::Relaxed) + 1
                });
                if call.await.expect("join") as usize > count {
                    over.notify_one();
                    return Ok(());
                }
                Err(TaskError::fail("no"))
            }
        }
    });
    let spec = TaskSpec::restartable("task", task)
        .with_backoff(BackoffPolicy::constant(Duration::ZERO));
    let start = Instant::now();
    handle.add(spec).execute().await.expect("add");
    over.notified().await;
    start.elapsed()
}

async fn run(case: String, count: usize) -> Duration {
    let config = SupervisorConfig::default()
        .with_max_registered_tasks(None)
        .with_ownership_capacity(None);
    let handle = Supervisor::builder(config)
        .with_controller(ControllerConfig::default())
        .build()
        .serve()
        .expect("serve");
    complete(&handle, vec![instant("warm".into())]).await;
    match case.as_str() {
        "life" => lives(handle, count, 1).await,
        "lives" => lives(handle, count, BATCH).await,
        "cancel" => cancel(handle, count).await,
        "submit" => submit(handle, count).await,
        "slot" => slots(handle, count, 1).await,
        "slots" => slots(handle, count, BATCH).await,
        "restart" => restart(handle, count).await,
        _ => panic!("no case {case}"),
    }
}

fn main() {
    let mut words = std::env::args().skip(1);
    let case = words.next().expect("CASE COUNT");
    let count = words.next().and_then(|text| text.parse().ok()).expect("CASE COUNT");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("runtime");
    let time = runtime.block_on(async { tokio::spawn(run(case, count)).await.expect("run") });
    println!("{{\"nanoseconds\": {}}}", time.as_nanos());
    std::process::exit(0);
}
