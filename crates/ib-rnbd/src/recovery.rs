//! Decides what the client does with a message that was not sent, was lost with its path, or was refused.
//!
//! [`decide`] contains all the rules. Its callers describe the message and its outcome, and carry out the [`Recovery`].

use ib_block::Errno;
use ib_rtrs::Outcome;

/// The client's action after the outcome of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recovery {
    /// The message is not sent again. This status is its result.
    End(Errno),
    /// The message is sent again. A command waits until its device is open.
    Resend,
    /// All devices are opened again before the message is sent again, because the server has lost its session state.
    Reopen,
    /// The open request is sent again after a pause, because the cause of the refusal may be temporary.
    ResendLater,
    /// The message is dropped, because its session is lost, and the next session starts with messages of its own.
    Drop,
}

/// A message that the client has sent or tried to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// The message with the protocol version of the client.
    Session,
    /// A request to open a device.
    Open(OpenRequest),
    /// A request to close a device.
    Close,
    /// A command for a device.
    Command {
        /// True if the command changes the device, so that a late second execution could overwrite newer data.
        is_change: bool,
        /// The state of the device, compared with its state when the command was sent.
        device: DeviceState,
    },
}

/// The circumstances of a request to open a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenRequest {
    /// True if a path was connected after the request was sent. This path may lead to a session in which the client
    /// has not sent its version.
    pub(crate) is_outdated: bool,
    /// True if the client had the device open at any time before this request.
    pub(crate) was_open: bool,
    /// Number of consecutive refusals of the server to open the device, before this request.
    pub(crate) refusals: u32,
}

/// The state of a device, compared with its state when a command for the device was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceState {
    /// The user has closed the device.
    Closed,
    /// The device is still open. The value tells whether the server may have lost its session state.
    Open(SessionLoss),
    /// The device was opened again, and no other client has written to it.
    Reopened,
    /// The device was opened again after a restart of the server, and other clients may have written to it.
    ReopenedAfterRestart,
}

/// Tells whether the server may have lost the session state, although the session has a connected path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionLoss {
    /// The server cannot have lost the session state, because no path was connected since the device was opened.
    Excluded,
    /// The server may have lost the session state.
    Possible,
    /// The server may have lost the session state. All devices were already reopened [`MAX_REOPENINGS`] times, and no
    /// command has succeeded since.
    Repeated,
    /// The server has lost the session state, and devices are being reopened.
    Known,
}

/// Maximum number of times that all devices are reopened without a successful command in between.
pub(crate) const MAX_REOPENINGS: u32 = 3;

/// Maximum number of consecutive times that the client sends an open request again because the server has refused it.
/// Applies to devices that were open before.
const MAX_REFUSALS: u32 = 30;

/// Returns the client's action after the outcome of a message. `outcome` is `None` if the message was not sent.
pub(crate) fn decide(message: Message, outcome: Option<Outcome>) -> Recovery {
    match message {
        Message::Session | Message::Close => decide_control(outcome),
        Message::Open(request) => decide_open(request, outcome),
        Message::Command { is_change, device } => decide_command(is_change, device, outcome),
    }
}

/// Returns the client's action after the outcome of a session, open or close message. The server can receive such a
/// message twice without harm, so the client sends it again while the session lasts. If the session is lost, the client
/// drops the message, because the next session starts with messages of its own.
const fn decide_control(outcome: Option<Outcome>) -> Recovery {
    match outcome {
        Some(Outcome::Answered(errno)) => Recovery::End(errno),
        Some(Outcome::Fenced | Outcome::Unknown) => Recovery::Drop,
        Some(Outcome::TimedOut) | None => Recovery::Resend,
    }
}

fn decide_open(request: OpenRequest, outcome: Option<Outcome>) -> Recovery {
    match outcome {
        Some(Outcome::Answered(_)) if request.is_outdated => Recovery::Resend,
        Some(Outcome::Answered(errno))
            if request.was_open && is_temporary(errno) && request.refusals < MAX_REFUSALS =>
        {
            Recovery::ResendLater
        }
        outcome => decide_control(outcome),
    }
}

fn decide_command(is_change: bool, device: DeviceState, outcome: Option<Outcome>) -> Recovery {
    let outcome = match outcome {
        // A server of ibfabric or Linux responds with `ENOTCONN` if the device is not open, for example because the
        // server has lost the session state.
        Some(Outcome::Answered(errno @ Errno::ENOTCONN)) => match device {
            DeviceState::Open(SessionLoss::Excluded | SessionLoss::Repeated) => {
                return Recovery::End(errno);
            }
            DeviceState::Open(SessionLoss::Possible) => return Recovery::Reopen,
            DeviceState::Open(SessionLoss::Known)
            | DeviceState::Closed
            | DeviceState::Reopened
            | DeviceState::ReopenedAfterRestart => Some(Outcome::Fenced),
        },
        outcome => outcome,
    };
    match outcome {
        Some(Outcome::Answered(errno)) => Recovery::End(errno),
        Some(Outcome::TimedOut) => Recovery::End(Errno::ETIMEDOUT),
        Some(Outcome::Unknown) if is_change => Recovery::End(Errno::ECONNABORTED),
        // The change is not sent again, because it may be older than the data that other clients have written.
        Some(Outcome::Fenced) | None
            if is_change && device == DeviceState::ReopenedAfterRestart =>
        {
            Recovery::End(Errno::EIO)
        }
        Some(Outcome::Fenced | Outcome::Unknown) | None => Recovery::Resend,
    }
}

/// Returns true if the server refused a device for a temporary reason: another client has the device open, or the
/// server lacks memory.
pub(crate) const fn is_temporary(errno: Errno) -> bool {
    matches!(errno, Errno::EPERM | Errno::EBUSY | Errno::ENOMEM)
}

#[cfg(test)]
mod tests;
