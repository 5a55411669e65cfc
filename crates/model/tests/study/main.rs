//! The study file: what it may say, and what each mistake is answered with.

mod claims;
mod overrides;
mod planning;
mod reading;
mod reference;
mod secrets;
mod support;
