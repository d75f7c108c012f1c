use super::*;
use ib_os::alarm::Alarm;

#[test]
fn responses_come_at_once_later_or_never() {
    let alarm = Alarm::new().expect("file descriptors are available");
    let (sender, mut queue) = request_queue(alarm.bell());
    assert!(!queue.has_request() && queue.take().is_none());
    let client = sender.clone();
    let thread = std::thread::spawn(move || client.request("one"));
    let request = loop {
        if let Some(request) = queue.take() {
            break request;
        }
        std::thread::yield_now();
    };
    assert_eq!(request.line(), "one");
    let (done, receiver) = channel();
    sender.send("two".to_owned(), move |it| done.send(it).expect("the receiver exists"));
    assert!(queue.has_request() && queue.has_request());
    drop(queue.take().expect("the request is queued"));
    assert_eq!(receiver.recv(), Ok(None));
    request.respond("1".to_owned());
    assert_eq!(thread.join().expect("no panic"), Some("1".to_owned()));
    // After the event loop has ended, no request gets a response.
    drop(queue);
    assert_eq!(sender.request("three"), None);
}
