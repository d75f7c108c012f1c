use super::*;

fn normalized(line: &str, output: &str, errors: &str) -> String {
    let (output, errors) = (output.to_owned(), errors.to_owned());
    normal(&Question::new(line), &Answer { code: Some(0), output, errors }, false)
}

#[test]
fn counters_are_compared_as_zero_or_non_zero() {
    let line = "PortXmitData:....................257112\nPortRcvPkts:.....................0\n";
    let expected = "exit status 0\nPortXmitData:....................N\n\
                    PortRcvPkts:.....................0\n";
    assert_eq!(normalized("perfquery 1 1", line, ""), expected);
    let line = "[PortXmitData == 3960 (15.469KB)] [PortXmitWait == 7 (7.000)]\n";
    let expected = "exit status 0\n[PortXmitData == N (N)] [PortXmitWait == 7 (7.000)]\n";
    assert_eq!(normalized("ibqueryerrors --counters", line, ""), expected);
}

#[test]
fn masks_apply_to_their_programs_only() {
    let text = "sminfo: activity count 538 priority 0\n";
    assert_eq!(
        normalized("sminfo 1", text, ""),
        "exit status 0\nsminfo: activity count N priority 0\n"
    );
    assert_eq!(normalized("ibaddr", text, ""), format!("exit status 0\n{text}"));
}

#[test]
fn pids_and_times_are_masked() {
    let expected = "exit status 0\nstderr: ibwarn: [N] mad_rpc: failed\n";
    assert_eq!(normalized("ibaddr 9", "", "ibwarn: [28137] mad_rpc: failed\n"), expected);
    let text = "# Topology file: generated on Sat Nov 21\nvendid=0x0\n";
    assert_eq!(normalized("ibnetdiscover", text, ""), "exit status 0\nvendid=0x0\n");
}

#[test]
fn differences_contain_their_lines() {
    assert_eq!(difference("a\nb\n", "a\nb\n"), None);
    let text = difference("a\nb\nc\n", "a\nx\ny\nc\n").unwrap();
    assert_eq!(text, "first difference at line 2\n- b\n+ x\n+ y");
    assert_eq!(difference("a\n", "a\nb\n").unwrap(), "first difference at line 2\n+ b");
}

#[test]
fn library_masks_need_two_libraries() {
    let question = Question::new("ibstat");
    let output = "\t\tRate: 104\n\t\tLMC: 0\n\t\tLink layer: IB\n".to_owned();
    let answer = Answer { code: Some(0), output, errors: String::new() };
    let status = "exit status 0\n";
    assert_eq!(normal(&question, &answer, false), format!("{status}{}", answer.output));
    let expected = format!("{status}\t\tLMC: 0\n\t\tLink layer: …\n");
    assert_eq!(normal(&question, &answer, true), expected);
}
