//! State transitions of client paths: every event in every state.

use std::time::Duration;

use ib_rtrs::{AdapterId, PathState};

use crate::lab::{Lab, quick_client, small_server};

/// An event that happens to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathEvent {
    Disconnect,
    Remove,
    Reconnect,
    LinkDown,
    LinkUp,
    /// The server disconnects the path, if the path exists at the server.
    ServerDisconnect,
    Timeout,
}

use PathEvent::{Disconnect, LinkDown, LinkUp, Reconnect, Remove, ServerDisconnect, Timeout};
use PathState::{Closing, Connected, Connecting, Disconnected, Waiting};

/// A state, and the state that follows each event; `None` if the path is then removed.
type Row = (PathState, [(PathEvent, Option<PathState>); 7]);

/// For each state of a path, the state that follows each event.
const TABLE: [Row; 5] = [
    (
        Connecting,
        [
            (Disconnect, Some(Disconnected)),
            (Remove, None),
            (Reconnect, Some(Connecting)),
            (LinkDown, Some(Waiting)),
            (LinkUp, Some(Connecting)),
            (ServerDisconnect, Some(Connecting)),
            (Timeout, Some(Waiting)),
        ],
    ),
    (
        Connected,
        [
            (Disconnect, Some(Closing)),
            (Remove, Some(Closing)),
            (Reconnect, Some(Connecting)),
            (LinkDown, Some(Waiting)),
            (LinkUp, Some(Connected)),
            (ServerDisconnect, Some(Waiting)),
            (Timeout, Some(Connected)),
        ],
    ),
    (
        Waiting,
        [
            (Disconnect, Some(Disconnected)),
            (Remove, None),
            (Reconnect, Some(Connecting)),
            (LinkDown, Some(Waiting)),
            (LinkUp, Some(Connecting)),
            (ServerDisconnect, Some(Waiting)),
            (Timeout, Some(Connecting)),
        ],
    ),
    (
        Disconnected,
        [
            (Disconnect, Some(Disconnected)),
            (Remove, None),
            (Reconnect, Some(Connecting)),
            (LinkDown, Some(Disconnected)),
            (LinkUp, Some(Disconnected)),
            (ServerDisconnect, Some(Disconnected)),
            (Timeout, Some(Disconnected)),
        ],
    ),
    (
        Closing,
        [
            (Disconnect, Some(Closing)),
            (Remove, Some(Closing)),
            (Reconnect, Some(Closing)),
            (LinkDown, Some(Closing)),
            (LinkUp, Some(Closing)),
            (ServerDisconnect, Some(Closing)),
            (Timeout, Some(Disconnected)),
        ],
    ),
];

/// Returns a lab whose first path is in the given state.
fn in_state(state: PathState) -> Lab {
    if state == Connecting {
        let mut lab = Lab::new(1, 1, quick_client(), small_server());
        lab.links[0].is_cut = true;
        lab.add_path(0);
        return lab;
    }
    let mut lab = Lab::connected(1, 1, quick_client(), small_server());
    let path = lab.paths[0];
    match state {
        Waiting => lab.client.link_down(lab.now, &mut lab.sides[0], AdapterId(0)),
        Closing | Disconnected => {
            lab.client.disconnect_path(lab.now, &mut lab.sides[0], path);
            if state == Disconnected {
                lab.run_for(Duration::from_secs(1));
            } else {
                lab.links[0].is_cut = true;
            }
        }
        Connecting | Connected => {}
    }
    lab
}

#[test]
fn every_path_state_and_event_has_its_next_state() {
    for (state, row) in TABLE {
        for (event, expected) in row {
            let mut lab = in_state(state);
            let path = lab.paths[0];
            assert_eq!(lab.client.path_state(path), Some(state));
            let (now, id) = (lab.now, AdapterId(0));
            let near = &mut lab.sides[0];
            match event {
                Disconnect => drop(lab.client.disconnect_path(now, near, path)),
                Remove => drop(lab.client.remove_path(now, near, path)),
                Reconnect => drop(lab.client.reconnect_path(now, near, path)),
                LinkDown => lab.client.link_down(now, near, id),
                LinkUp => lab.client.link_up(now, near, id),
                ServerDisconnect => {
                    let far = lab.server.paths().next();
                    if let Some(far) = far {
                        lab.server.disconnect_path(now, &mut lab.sides[1], far);
                        lab.run_for(Duration::from_millis(1));
                    }
                }
                Timeout => {
                    // Only the next timer of the client expires. The lab does not run, so no packet is delivered.
                    let later = now + Duration::from_secs(40);
                    let at = lab.client.poll_timeout().unwrap_or(later);
                    lab.client.handle_timeout(at, near);
                }
            }
            let found = lab.client.path_state(path);
            assert_eq!(found, expected, "{event:?} in state {state:?}");
        }
    }
}
