//! How many Pods one response may create. A response has a limited size, so a job of a thousand workers gets its Pods in waves: the host
//! asks again as soon as it has made one. It does not make Pods.

/// The most bytes of new Pods in one response, a quarter of what the host takes. The rest is for the status, for copies of ConfigMaps, and
/// for the names of Pods that stay.
const MAX_BYTES: usize = 256 << 10;

/// The room that is left in a response.
#[derive(Default)]
pub struct Wave {
    taken: usize,
    is_full: bool,
}

impl Wave {
    /// Whether no more Pods are created.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Takes the room of a new Pod of so many bytes, if there is any. The first Pod is always taken, or else none would ever be made.
    pub fn takes(&mut self, size: usize) -> bool {
        self.is_full = self.taken > 0 && self.taken + size > MAX_BYTES;
        if !self.is_full {
            self.taken += size;
        }
        !self.is_full
    }
}
