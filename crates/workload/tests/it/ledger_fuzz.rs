//! Ledgers and histograms from damaged bytes: an error or something whole, never a panic.

use underlay_core::Histogram;
use underlay_fuzz::fuzz;
use underlay_workload::tpcc::Ledger;

#[test]
fn ledgers_and_histograms() {
    let mut ledger = Ledger::new();
    for order in [3001, 3002, 3004, 9000, 3003] {
        ledger.acknowledge(1, 4, order);
        ledger.acknowledge(2, 10, order * 2);
    }
    ledger.unknown(1, 4);
    let mut histogram = Histogram::new();
    (1..400u64).for_each(|value| histogram.record(value * value * 997));
    let corpus =
        [ledger.encode(), Ledger::new().encode(), histogram.encode(), Histogram::new().encode()];
    fuzz(&corpus, |bytes| {
        if let Ok(found) = Ledger::decode(bytes) {
            let again = Ledger::decode(&found.encode()).expect("its own encoding");
            assert_eq!(again.acknowledged_count(), found.acknowledged_count());
            for (_, district) in found.districts() {
                assert_eq!(
                    district.ids().take(1000).count() as u64,
                    district.acknowledged_count().min(1000)
                );
            }
        }
        if let Ok(found) = Histogram::decode(bytes) {
            assert_eq!(Histogram::decode(&found.encode()), Ok(found.clone()));
            if let (Some(low), Some(high), Some(middle)) =
                (found.min(), found.max(), found.quantile(0.5))
            {
                assert!(low <= middle && middle <= high, "{low} {middle} {high}");
            }
        }
    });
}
