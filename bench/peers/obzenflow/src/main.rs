// SPDX-License-Identifier: MIT
// Copyright the detent authors

//! Peer of flow.c: rows of 256 bytes through a source, a transform and a sink of ObzenFlow.
//!
//! `peer-obzenflow memory|disk COUNT FOLDER` prints `{"nanoseconds": N}`: the time from the first
//! call of the source until the sink has got COUNT rows. Starting and draining the flow is not in it.
//! The source emits as many rows at once as that of flow.c. Nothing reads the metrics, so they are
//! switched off.

use async_trait::async_trait;
use obzenflow_core::event::chain_event::{ChainEvent, ChainEventFactory};
use obzenflow_core::event::payloads::delivery_payload::{DeliveryMethod, DeliveryPayload};
use obzenflow_core::{StageId, WriterId};
use obzenflow_dsl::{flow, sink, source, transform};
use obzenflow_infra::journal::{disk_journals, memory_journals};
use obzenflow_runtime::stages::common::handler_error::HandlerError;
use obzenflow_runtime::stages::common::handlers::source::traits::SourceError;
use obzenflow_runtime::stages::common::handlers::{
    FiniteSourceHandler, SinkHandler, TransformHandler,
};
use serde_json::json;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

const BATCH: usize = 64;
const PAYLOAD: usize = 248;

/// When the source was called first, and when the sink got the last row.
#[derive(Debug, Default)]
struct Times {
    begin: OnceLock<Instant>,
    end: OnceLock<Instant>,
}

#[derive(Clone, Debug)]
struct Rows {
    count: usize,
    emitted: usize,
    text: String,
    writer: WriterId,
    times: Arc<Times>,
}

impl FiniteSourceHandler for Rows {
    fn next(&mut self) -> Result<Option<Vec<ChainEvent>>, SourceError> {
        self.times.begin.get_or_init(Instant::now);
        let size = BATCH.min(self.count - self.emitted);
        if size == 0 {
            return Ok(None);
        }
        let first = self.emitted;
        self.emitted += size;
        Ok(Some(
            (first..first + size)
                .map(|number| {
                    let payload = json!({ "number": number, "text": self.text });
                    ChainEventFactory::data_event(self.writer, "row", payload)
                })
                .collect(),
        ))
    }
}

#[derive(Clone, Debug)]
struct Add;

#[async_trait]
impl TransformHandler for Add {
    fn process(&self, event: ChainEvent) -> Result<Vec<ChainEvent>, HandlerError> {
        let mut payload = event.payload();
        payload["number"] = json!(payload["number"].as_u64().unwrap_or(0) + 1);
        Ok(vec![ChainEventFactory::derived_data_event(event.writer_id, &event, "row", payload)])
    }

    async fn drain(&mut self) -> Result<(), HandlerError> {
        Ok(())
    }
}

#[derive(Clone, Debug)]
struct Count {
    left: usize,
    times: Arc<Times>,
}

#[async_trait]
impl SinkHandler for Count {
    async fn consume(&mut self, event: ChainEvent) -> Result<DeliveryPayload, HandlerError> {
        if event.is_data() {
            self.left -= 1;
            if self.left == 0 {
                self.times.end.get_or_init(Instant::now);
            }
        }
        Ok(DeliveryPayload::success("count", DeliveryMethod::Custom("count".into()), None))
    }
}

async fn run(store: String, count: usize, folder: PathBuf) -> Duration {
    let times = Arc::new(Times::default());
    let rows = Rows {
        count,
        emitted: 0,
        text: "x".repeat(PAYLOAD),
        writer: WriterId::from(StageId::new()),
        times: Arc::clone(&times),
    };
    let sink = Count { left: count, times: Arc::clone(&times) };
    let flow = if store == "disk" {
        flow! {
            name: "rows",
            journals: disk_journals(folder.clone()),
            middleware: [],
            stages: {
                read = source!("read" => rows);
                add = transform!("add" => Add);
                write = sink!("write" => sink);
            },
            topology: {
                read |> add;
                add |> write;
            }
        }
        .await
    } else {
        flow! {
            name: "rows",
            journals: memory_journals(),
            middleware: [],
            stages: {
                read = source!("read" => rows);
                add = transform!("add" => Add);
                write = sink!("write" => sink);
            },
            topology: {
                read |> add;
                add |> write;
            }
        }
        .await
    };
    flow.expect("flow").run().await.expect("run");
    let begin = *times.begin.get().expect("the source was not called");
    *times.end.get().expect("the sink did not get all rows") - begin
}

fn main() {
    let mut words = std::env::args().skip(1);
    let store = words.next().expect("memory|disk COUNT FOLDER");
    let count = words.next().and_then(|text| text.parse().ok()).expect("COUNT");
    let folder = words.next().expect("FOLDER");
    // Safe: there is no other thread yet.
    std::env::set_var("OBZENFLOW_METRICS_ENABLED", "false");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("runtime");
    let run = run(store, count, folder.into());
    let time = runtime.block_on(async { tokio::spawn(run).await.expect("run") });
    println!("{{\"nanoseconds\": {}}}", time.as_nanos());
    std::process::exit(0);
}
