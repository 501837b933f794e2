//! The children of a `PyTorchJob`, one file for each kind or part of a Pod. They say what the children look like, and never decide when
//! they exist.

pub mod environment;
pub mod hpa;
mod init_container;
pub mod labels;
pub mod pod;
pub mod service;
