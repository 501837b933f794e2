//! The black-box tests: one binary, one control plane, a namespace and a host per test, run in parallel.
fn main() {}
