//! What the server hands out: UIDs, ends of generated names, addresses and ports. Counts instead of throwing dice, so that the same
//! requests get the same answers.

/// The characters of generated names.
const CHARACTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The first port for Services that are reached on every node.
const FIRST_NODE_PORT: u32 = 30_000;

/// Hands out what must be unique.
#[derive(Clone, Debug, Default)]
pub struct Allocator {
    uids: u64,
    names: u64,
    addresses: u32,
    ports: u32,
}

impl Allocator {
    /// A new UID.
    pub fn uid(&mut self) -> String {
        self.uids += 1;
        format!("00000000-0000-4000-8000-{:012x}", self.uids)
    }

    /// A name that begins so.
    pub fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        let cut = prefix.floor_char_boundary(58);
        let mut name = prefix[..cut].to_owned();
        // The last digits come first, so that two names in a row do not look alike.
        let mut rest = self.names.wrapping_mul(7_919);
        for _ in 0..5 {
            let index = usize::try_from(rest % 27).unwrap_or_default();
            name.push(char::from(CHARACTERS.get(index).copied().unwrap_or(b'b')));
            rest /= 27;
        }
        name
    }

    /// A new address in the cluster.
    pub fn address(&mut self) -> String {
        self.addresses += 1;
        format!("10.0.{}.{}", 64 + self.addresses / 250, 1 + self.addresses % 250)
    }

    /// A new port on every node.
    pub fn node_port(&mut self) -> u32 {
        self.ports += 1;
        FIRST_NODE_PORT + self.ports
    }
}
