//! One call of a plugin: an instance under limits, and a typed outcome whatever the plugin does. The instance is a new one, unless the
//! plugin's manifest lets one answer several calls; one that did not answer is never called again, and the call is made with a new one.

use std::{
    future::poll_fn,
    hash::{DefaultHasher, Hash, Hasher},
    pin::pin,
    sync::{Arc, Mutex},
    task::Poll,
    time::{Duration, Instant},
};

use futures::{FutureExt, future::BoxFuture};
use jiff::Timestamp;
use wasmtime::{Store, UpdateDeadline, component::Instance};

use crate::{
    ContractSeries, Limits, Lookups, Manifest, NoLookups, Plugin, Reconciler, Recorded,
    budget::Reservation,
    contract::{Request, Response, v0_1},
    engine::Code,
    state::CallState,
    warm::WarmInstance,
};

/// Which of a plugin's functions is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// `reconciler.reconcile`.
    Reconcile,
    /// `finalizer.finalize`.
    Finalize,
}

/// What a call receives besides its request.
#[derive(Clone)]
pub struct CallContext {
    /// Answers lookups.
    pub lookups: Arc<dyn Lookups>,
    /// The time that the plugin reads from its clock.
    pub now: Timestamp,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The plugin answered.
    Response(Response),
    /// The plugin trapped; the message has the plugin's own explanation, or else the place.
    Trap(String),
    /// The plugin exceeded this limit of computing time or wall-clock time.
    Deadline(Duration),
    /// The plugin needed more memory than this number of bytes.
    MemoryLimit(usize),
    /// The plugin needed memory that other calls have. The next call waits for it. The number is what all calls may have.
    HostMemory(usize),
    /// The plugin returned more than this number of bytes.
    OutputLimit(usize),
    /// The plugin violated the contract, for example with text that is not UTF-8.
    Contract(String),
}

/// The resources that a call used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// From the start of the call to its end.
    pub duration: Duration,
    /// The peak of its linear memory, in bytes.
    pub memory_peak: usize,
    /// The log lines that were not written, for the call or its plugin wrote too many.
    pub log_lines_dropped: usize,
}

/// A finished call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// How it ended.
    pub outcome: Outcome,
    /// The resources that it used.
    pub usage: Usage,
    /// What it read beyond its request.
    pub recorded: Recorded,
}

impl Call {
    /// Whether it may have failed because of what the calls before left in the instance. More time would not help a plugin that loops.
    fn may_be_of_calls_before(&self) -> bool {
        !matches!(self.outcome, Outcome::Response(_) | Outcome::Deadline(_))
    }

    /// The same call, made after another one that counts for nothing but what it used.
    fn after(mut self, before: &Usage) -> Self {
        self.usage.duration += before.duration;
        self.usage.memory_peak = self.usage.memory_peak.max(before.memory_peak);
        self.usage.log_lines_dropped += before.log_lines_dropped;
        self
    }
}

impl Reconciler for Plugin {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn digest(&self) -> &str {
        &self.digest
    }

    fn call(&self, verb: Verb, request: Request, context: CallContext) -> BoxFuture<'_, Call> {
        let code = self.code.clone();
        let call = async move { code.call(verb, request, context).await }.boxed();
        self.code.shared.slow.run(call).boxed()
    }
}

impl Plugin {
    /// Whether its kinds come from its configuration.
    pub fn takes_kinds_from_config(&self) -> bool {
        self.template.is_some()
    }

    /// Creates an instance and drops it, to measure the fixed cost of a call.
    ///
    /// # Errors
    /// If the instance cannot be created within the limits.
    pub async fn instantiate(&self) -> wasmtime::Result<()> {
        let code = &self.code;
        let reservation = code.shared.budget.begin_call(&code.share, code.need.bytes()).await;
        let context = CallContext { lookups: Arc::new(NoLookups), now: Timestamp::UNIX_EPOCH };
        let mut home = Home::new(code, reservation, context, None);
        let _running = code.shared.ticker.enter()?;
        code.pre.instantiate_async(&mut home.store).await.map(drop)
    }
}

/// What a call is asked.
struct Asked {
    verb: Verb,
    request: Request,
    /// The bytes of the request.
    size: usize,
    context: CallContext,
    /// The seed of random numbers; none if there is no way to read any.
    seed: Option<u64>,
}

impl Code {
    async fn call(&self, verb: Verb, request: Request, context: CallContext) -> Call {
        self.in_use.note_call();
        // Only with WASI can a plugin read random numbers. For all others the request need not be hashed.
        let seed = self.imports_wasi.then(|| seed(&request));
        let asked = Asked { verb, size: size_of_request(&request), request, context, seed };
        match self.call_warm(&asked).await {
            None => self.call_new(&asked).await,
            Some(call) if !call.may_be_of_calls_before() => call,
            Some(failed) => {
                tracing::debug!(
                    "an instance that had answered before failed, a new one is asked: {:?}",
                    failed.outcome
                );
                self.call_new(&asked).await.after(&failed.usage)
            }
        }
    }

    /// A call of an instance that waits; none if there is none, or no memory for the request.
    async fn call_warm(&self, asked: &Asked) -> Option<Call> {
        let mut instance = self.warm.as_ref()?.take()?;
        if !instance.begin(&self.limits, asked.size, asked.context.clone(), asked.seed) {
            return None;
        }
        let started = Instant::now();
        let (store, of_code) = instance.parts();
        let answer = in_time(self.limits.wall, async {
            let _running = self.shared.ticker.enter()?;
            self.answer(store, of_code, asked).await
        })
        .await;
        let call = self.end(store, answer, started);
        if matches!(call.outcome, Outcome::Response(_)) {
            self.keep(instance);
        }
        Some(call)
    }

    async fn call_new(&self, asked: &Asked) -> Call {
        // Before the clock of the call starts: the plugin is not to blame for the wait. The pool refuses an instance without a place.
        let needed = self.need.bytes().saturating_add(asked.size);
        let reservation = self.shared.budget.begin_call(&self.share, needed).await;
        let started = Instant::now();
        let mut home = Home::new(self, reservation, asked.context.clone(), asked.seed);
        let mut instance = None;
        let answer = in_time(self.limits.wall, async {
            let _running = self.shared.ticker.enter()?;
            let created = self.pre.instantiate_async(&mut home.store).await?;
            instance = Some(created);
            self.answer(&mut home.store, created, asked).await
        })
        .await;
        let call = self.end(&mut home.store, answer, started);
        if let (Outcome::Response(_), Some(instance)) = (&call.outcome, instance)
            && self.warm.is_some()
        {
            self.keep(WarmInstance::new(home, instance));
        }
        call
    }

    /// Keeps an instance for the next call, unless somebody waits for what it has.
    fn keep(&self, instance: WarmInstance) {
        let Some(warm) = &self.warm else { return };
        warm.put(instance);
        // After that: who began to wait before takes what is there, and who does so later gives it back.
        if self.shared.budget.is_awaited() {
            self.shared.warm.give_back();
        }
    }

    /// How a call ended, and what it used and read.
    fn end(&self, store: &mut Store<CallState>, answer: Option<wasmtime::Result<Response>>, started: Instant) -> Call {
        let outcome = match answer {
            Some(Ok(response)) => Outcome::Response(response),
            Some(Err(error)) => self.classify(&error, store.data()),
            None => Outcome::Deadline(self.limits.wall),
        };
        let state = store.data_mut();
        match outcome {
            Outcome::HostMemory(_) => self.need.reserve_all(self.limits.memory_bytes),
            _ => self.need.learn(state.meter.memory_peak),
        }
        let recorded = state.end();
        let usage = Usage {
            duration: started.elapsed(),
            memory_peak: state.meter.memory_peak,
            log_lines_dropped: state.logs.dropped(),
        };
        Call { outcome, usage, recorded }
    }

    /// Classifies a failed call by wasmtime's error and the meter.
    pub(crate) fn classify(&self, error: &wasmtime::Error, state: &CallState) -> Outcome {
        let limits = &self.limits;
        match error.downcast_ref::<wasmtime::Trap>() {
            Some(wasmtime::Trap::Interrupt) => Outcome::Deadline(limits.cpu),
            // A plugin usually traps when it gets no memory. The refusal is then the cause to report.
            _ if state.meter.host_is_full => Outcome::HostMemory(self.shared.budget.bytes()),
            Some(_) if state.meter.memory_refused => Outcome::MemoryLimit(limits.memory_bytes),
            Some(trap) => Outcome::Trap(state.explanation.line().unwrap_or_else(|| describe(*trap, error))),
            None if format!("{error:#}").contains(HOSTCALL_FUEL) => Outcome::OutputLimit(limits.output_bytes),
            // It began with more than it may have.
            None if state.meter.memory_refused => Outcome::MemoryLimit(limits.memory_bytes),
            None => Outcome::Contract(format!("{error:#}")),
        }
    }

    async fn answer(
        &self,
        store: &mut Store<CallState>,
        instance: Instance,
        Asked { verb, request, .. }: &Asked,
    ) -> wasmtime::Result<Response> {
        let index = match verb {
            Verb::Reconcile => &self.reconcile,
            Verb::Finalize => self.finalize.as_ref().ok_or_else(|| wasmtime::Error::msg("no finalizer is exported"))?,
        };
        match self.contract {
            ContractSeries::V0_1 => {
                use v0_1::types::{Request, Response};
                let function = instance.get_typed_func::<(Request,), (Response,)>(&mut *store, index)?;
                let (response,) = function.call_async(&mut *store, (request.clone().into(),)).await?;
                Ok(response.into())
            }
            ContractSeries::V0_2 => {
                let function = instance.get_typed_func::<(&Request,), (Response,)>(&mut *store, index)?;
                let (response,) = function.call_async(&mut *store, (request,)).await?;
                Ok(response)
            }
        }
    }
}

/// Cancels a call at the wall-clock limit and returns none. The timer starts only after the first time slice, because most calls end
/// within it.
pub(crate) async fn in_time<T>(wall: Duration, call: impl Future<Output = T>) -> Option<T> {
    let (mut call, mut timer) = (pin!(call), None);
    poll_fn(|context| match call.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => {
            let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(wall)));
            timer.as_mut().poll(context).map(|()| None)
        }
    })
    .await
}

/// What an instance lives in, with the limits of one call. What it has reserved is free for others once its store is gone, and not before: the
/// pool would have no room for them.
pub(crate) struct Home {
    pub(crate) store: Store<CallState>,
    // Dropped after the store, as fields are in their order.
    _reservation: Arc<Mutex<Reservation>>,
}

impl Home {
    pub(crate) fn new(code: &Code, reservation: Reservation, context: CallContext, wasi_seed: Option<u64>) -> Self {
        let reservation = Arc::new(Mutex::new(reservation));
        let state = CallState::new(code, reservation.clone(), context, wasi_seed);
        let mut store = Store::new(&code.shared.wasmtime, state);
        store.limiter(|state| &mut state.meter);
        store.set_hostcall_fuel(code.limits.output_bytes);
        store.set_max_component_handles(code.limits.handles);
        begin_slices(&mut store, &code.limits);
        Self { store, _reservation: reservation }
    }
}

/// Gives a call its computing time.
pub(crate) fn begin_slices(store: &mut Store<CallState>, limits: &Limits) {
    // A new store has the deadline 0, which has always passed: the call would yield at its start and move to the slow threads. That of one
    // whose instance has waited has passed as well.
    store.set_epoch_deadline(1);
    let mut slices = limits.slices();
    // Each epoch is one time slice: the call yields to other tasks until its slices are used up.
    store.epoch_deadline_callback(move |_| {
        slices = slices.saturating_sub(1);
        Ok(if slices == 0 {
            UpdateDeadline::Interrupt
        } else {
            // tokio's own yield lets other tasks and the I/O driver run before the call goes on.
            UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now()))
        })
    });
}

/// The bytes of a request, which the host has while the plugin has a copy.
fn size_of_request(request: &Request) -> usize {
    let children: usize = request.children.iter().map(|child| child.object.len()).sum();
    request.object.len() + children + request.config.len()
}

/// The seed for the plugin's random numbers. It is derived from the request, so that the same request has the same response.
fn seed(request: &Request) -> u64 {
    let mut hasher = DefaultHasher::new();
    let children: Vec<_> = request.children.iter().map(|child| &child.object).collect();
    (&request.object, children, &request.config).hash(&mut hasher);
    hasher.finish()
}

/// wasmtime's message when hostcall fuel runs out, which has no type of its own. A test with a guest that returns too much guards
/// the text.
const HOSTCALL_FUEL: &str = "fuel allocated for hostcalls has been exhausted";

/// The trap and the plugin's innermost frames.
fn describe(trap: wasmtime::Trap, error: &wasmtime::Error) -> String {
    let frames = error.downcast_ref::<wasmtime::WasmBacktrace>().map(|backtrace| {
        let names = backtrace.frames().iter().filter_map(wasmtime::FrameInfo::func_name).take(4);
        names.collect::<Vec<_>>().join(" < ")
    });
    match frames {
        Some(frames) if !frames.is_empty() => format!("{trap} in {frames}"),
        _ => trap.to_string(),
    }
}
