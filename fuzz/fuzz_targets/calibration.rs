//! A file of a calibration: what is understood is written and reads back to
//! the same figures.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubmark_judge::calibration::Calibration;
use pubmark_judge::verdict::quiet;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(calibration) = serde_json::from_slice::<Calibration>(bytes) {
        let written = serde_json::to_string(&calibration).unwrap();
        assert_eq!(serde_json::from_str::<Calibration>(&written).unwrap(), calibration, "{written}");
        let _ = quiet(&calibration.load);
    }
});
