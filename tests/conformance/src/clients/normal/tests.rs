use super::*;

fn said(line: &str, output: &str, errors: &str) -> String {
    let (output, errors) = (output.to_owned(), errors.to_owned());
    normal(&Question::new(line), &Answer { code: Some(0), output, errors }, false)
}

#[test]
fn counters_are_only_zero_or_not() {
    let line = "PortXmitData:....................257112\nPortRcvPkts:.....................0\n";
    let expected = "exit status 0\nPortXmitData:....................N\n\
                    PortRcvPkts:.....................0\n";
    assert_eq!(said("perfquery 1 1", line, ""), expected);
    let line = "[PortXmitData == 3960 (15.469KB)] [PortXmitWait == 7 (7.000)]\n";
    let expected = "exit status 0\n[PortXmitData == N (N)] [PortXmitWait == 7 (7.000)]\n";
    assert_eq!(said("ibqueryerrors --counters", line, ""), expected);
}

#[test]
fn a_mask_is_for_its_programs_only() {
    let text = "sminfo: activity count 538 priority 0\n";
    assert_eq!(said("sminfo 1", text, ""), "exit status 0\nsminfo: activity count N priority 0\n");
    assert_eq!(said("ibaddr", text, ""), format!("exit status 0\n{text}"));
}

#[test]
fn process_ids_and_times_are_left_out() {
    let expected = "exit status 0\nstderr: ibwarn: [N] mad_rpc: failed\n";
    assert_eq!(said("ibaddr 9", "", "ibwarn: [28137] mad_rpc: failed\n"), expected);
    let text = "# Topology file: generated on Sat Nov 21\nvendid=0x0\n";
    assert_eq!(said("ibnetdiscover", text, ""), "exit status 0\nvendid=0x0\n");
}

#[test]
fn a_difference_names_its_lines() {
    assert_eq!(difference("a\nb\n", "a\nb\n"), None);
    let text = difference("a\nb\nc\n", "a\nx\ny\nc\n").unwrap();
    assert_eq!(text, "from line 2 on\n- b\n+ x\n+ y");
    assert_eq!(difference("a\n", "a\nb\n").unwrap(), "from line 2 on\n+ b");
}

#[test]
fn libraries_may_differ_only_where_both_are_at_work() {
    let question = Question::new("ibstat");
    let output = "\t\tRate: 104\n\t\tLMC: 0\n\t\tLink layer: IB\n".to_owned();
    let answer = Answer { code: Some(0), output, errors: String::new() };
    let status = "exit status 0\n";
    assert_eq!(normal(&question, &answer, false), format!("{status}{}", answer.output));
    let expected = format!("{status}\t\tLMC: 0\n\t\tLink layer: …\n");
    assert_eq!(normal(&question, &answer, true), expected);
}
