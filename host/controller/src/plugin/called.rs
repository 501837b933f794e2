//! What tells calls of one version of a plugin from those of others. Values only.

use pilothouse_engine::ContractSeries;

/// The version of a plugin that is called.
#[derive(Clone, Copy, Debug)]
pub struct Called<'a> {
    /// Its digest.
    pub digest: &'a str,
    /// The version of the contract that it speaks.
    pub contract: ContractSeries,
    /// Its configuration.
    pub config: &'a str,
}
