//! From hand-made records to what a report says.

mod analysis;
mod brief;
mod capacity;
mod catch_up;
mod claims;
mod clocks;
mod compare;
mod constraint;
mod csv;
mod delivery;
mod expressions;
mod figures;
mod html;
mod lab;
mod languages;
mod last_will;
mod page;
mod promise;
mod questions;
mod ranking;
mod records;
mod recovery;
mod reference;
mod rendering;
mod settings;
