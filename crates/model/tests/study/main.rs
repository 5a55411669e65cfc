//! The study file: valid content, and the error for each mistake.

mod claims;
mod overrides;
mod planning;
mod reading;
mod reference;
mod secrets;
mod sizes;
mod support;
mod traces;
