use super::*;

#[test]
fn set_writes_the_selected_counters() {
    for bit in 0..16 {
        let mut counters = PortCounters::parse(&[0xff; 44]);
        let mut request = PortCounters::zeroed();
        request.counter_select = CounterSelect(1 << bit);
        counters.write_selected(&request);
        let zeros: u32 = counters.to_bytes()[4..].iter().map(|byte| byte.count_zeros()).sum();
        // The Set clears only the selected counter, so `zeros` is the width of this counter in bits. The counted bytes
        // include `counter_select2`, so the test fails if the Set changes it.
        let expected = match bit {
            1 | 2 | 7 | 8 => 8,
            9 | 10 => 4,
            12..=15 => 32,
            _ => 16,
        };
        assert_eq!(zeros, expected, "bit {bit} of `counter_select`");
    }
    let mut counters = PortCounters::parse(&[0xff; 44]);
    counters.write_selected(&PortCounters { counter_select2: 1, ..PortCounters::zeroed() });
    assert_eq!((counters.xmit_wait, counters.xmit_data), (0, u32::MAX));
}

#[test]
fn set_writes_the_selected_extended_counters() {
    for bit in 0..22 {
        let mut counters = PortCountersExtended::parse(&[0xff; 184]);
        let mut request = PortCountersExtended::zeroed();
        request.counter_select = ExtendedSelect(if bit < 8 { 1 << bit } else { 0 });
        request.counter_select2 = if bit < 8 { 0 } else { 1 << (bit - 8) };
        counters.write_selected(&request);
        let bytes = counters.to_bytes();
        let zeros: Vec<_> = (0..22).filter(|at| bytes[8 + at * 8] == 0).collect();
        assert_eq!(zeros, [bit]);
    }
}
