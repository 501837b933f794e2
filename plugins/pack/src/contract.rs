//! The contract's types, for modules whose compiler knows nothing of components: they export and import by the names of the canonical
//! ABI, and say nothing of the types.

use pilothouse_wit::{CONTRACT, CONTRACT_VERSION, ContractSeries};
use wit_component::{StringEncoding, embed_component_metadata};
use wit_parser::{PackageId, Resolve};

use crate::{Error, module::Module};

/// The contract in the version that a module was built for.
pub(crate) struct Contract {
    packages: Resolve,
    package: PackageId,
    version: String,
    world: &'static str,
}

impl Contract {
    /// The one that the module's exports name.
    ///
    /// # Errors
    /// [`Error::NoReconcile`] if they name none that is spoken, and [`Error::Encode`].
    pub(crate) fn of(module: &Module) -> Result<Self, Error> {
        let version = module.version_of("reconciler", "reconcile").ok_or(Error::NoReconcile)?;
        // Within a series nothing changes but the number.
        if ContractSeries::of(version) != Some(ContractSeries::default()) {
            return Err(Error::NoReconcile);
        }
        let finalizes = module.version_of("finalizer", "finalize").is_some();
        let world = if finalizes { "finalizing-plugin" } else { "plugin" };
        let name = |version| format!("package pilothouse:plugin@{version};");
        let text = CONTRACT.replace(&name(CONTRACT_VERSION), &name(version));
        let (packages, package) = parse(&text)?;
        Ok(Self { packages, package, version: version.to_owned(), world })
    }

    /// Says in the module what the types of its exports and imports are.
    ///
    /// # Errors
    /// [`Error::Encode`].
    pub(crate) fn embed(&self, module: &mut Vec<u8>) -> Result<(), Error> {
        let encode_error = |error| Error::Encode(format!("{error:#}"));
        let world = self.packages.select_world(&[self.package], Some(self.world)).map_err(encode_error)?;
        embed_component_metadata(module, &self.packages, world, StringEncoding::UTF8).map_err(encode_error)
    }

    /// The packages of the contract.
    pub(crate) fn packages(&self) -> &Resolve {
        &self.packages
    }

    /// Its version.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }
}

/// The packages of a text of the contract, and its own.
///
/// # Errors
/// [`Error::Encode`].
pub(crate) fn parse(text: &str) -> Result<(Resolve, PackageId), Error> {
    let mut packages = Resolve::default();
    let package =
        packages.push_str("plugin.wit", text).map_err(|error| Error::Encode(format!("the contract: {error:#}")))?;
    Ok((packages, package))
}
