use super::*;
use ib_os::alarm::Alarm;

#[test]
fn questions_are_answered_at_once_later_or_never() {
    let alarm = Alarm::new().expect("files");
    let (desk, mut questions) = desk(alarm.bell());
    assert!(!questions.has_one() && questions.take().is_none());
    let asker = desk.clone();
    let thread = std::thread::spawn(move || asker.ask("one"));
    let question = loop {
        if let Some(question) = questions.take() {
            break question;
        }
        std::thread::yield_now();
    };
    assert_eq!(question.line(), "one");
    let (sender, receiver) = channel();
    desk.leave("two".to_owned(), move |answer| sender.send(answer).expect("it is awaited"));
    assert!(questions.has_one() && questions.has_one());
    drop(questions.take().expect("it was left"));
    assert_eq!(receiver.recv(), Ok(None));
    question.answer("1".to_owned());
    assert_eq!(thread.join().expect("no panic"), Some("1".to_owned()));
    // A loop that has ended answers nobody.
    drop(questions);
    assert_eq!(desk.ask("three"), None);
}
