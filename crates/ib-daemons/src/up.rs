//! Parts of `ibfabric up`.
//!
//! | module | holds |
//! |---|---|
//! | [`hosts`] | hosts of a simulated fabric in its process, with an ACM service and block devices |
//! | [`web`] | the HTTP server of the page and its API |

pub mod hosts;
pub mod web;
