//! A value that tasks wait for. Like tokio's `watch`, but it wakes those who wait in the order in which they came, and not in one that
//! is drawn at random, so that a run can be reproduced.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// A value that tasks wait for.
#[derive(Debug, Default)]
pub struct Observable<T> {
    value: Mutex<T>,
    changed: Notify,
}

impl<T: Clone> Observable<T> {
    /// Begins with this value.
    pub fn new(value: T) -> Self {
        Self { value: Mutex::new(value), changed: Notify::new() }
    }

    /// The present value.
    pub fn get(&self) -> T {
        self.lock().clone()
    }

    /// Sets the value, and wakes those who wait if it is another.
    pub fn set(&self, value: T)
    where
        T: PartialEq,
    {
        let mut known = self.lock();
        if *known != value {
            *known = value;
            drop(known);
            self.changed.notify_waiters();
        }
    }

    /// Changes the value, and wakes those who wait.
    pub fn update(&self, change: impl FnOnce(&mut T)) {
        change(&mut self.lock());
        self.changed.notify_waiters();
    }

    /// Waits until the value satisfies a condition.
    pub async fn wait_for(&self, mut condition: impl FnMut(&T) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // From here on no change is missed.
            changed.as_mut().enable();
            if condition(&self.lock()) {
                return;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn those_who_wait_are_woken_in_their_order() {
        let (value, order) = (Arc::new(Observable::new(0)), Arc::new(Mutex::new(Vec::new())));
        let mut tasks = tokio::task::JoinSet::new();
        for waiter in 0..50 {
            let (value, order) = (value.clone(), order.clone());
            tasks.spawn(async move {
                value.wait_for(|value| *value == 2).await;
                order.lock().unwrap_or_else(PoisonError::into_inner).push(waiter);
            });
            tokio::task::yield_now().await;
        }
        value.set(1);
        tokio::task::yield_now().await;
        value.set(2);
        while tasks.join_next().await.is_some() {}
        let order = order.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(order.iter().copied().eq(0..50), "{order:?}");
        assert_eq!(value.get(), 2);
    }
}
