use std::thread;
use std::time::Duration;

use ib_wire::acm::ClientStatus;
use tokio::task::JoinSet;

use super::super::{AsyncClient, ClientError, ClientOptions, PerfOf, ResolveOptions};
use super::server::{SOON, Server};
use super::{counters, endpoint, path, resolved};
use crate::Address;

const NOW: ResolveOptions = ResolveOptions { no_delay: false, query_sa: false };

/// The length of a request for the path to one address.
const REQUEST: usize = 88;

fn lid(lid: u16) -> Address {
    Address::Lid(lid)
}

/// Ends the connection, and sees the script through while the task of the connection runs on.
async fn end(client: AsyncClient, server: Server) {
    drop(client);
    tokio::task::spawn_blocking(|| drop(server)).await.unwrap();
}

/// Returns the LID that a path is asked for to.
fn asked_for(request: &[u8]) -> u16 {
    u16::from_be_bytes([request[16 + 8 + 40], request[16 + 8 + 41]])
}

#[tokio::test]
async fn many_callers_share_a_connection_and_answers_come_in_any_order() {
    let server = Server::tcp(|peer| {
        let all = peer.take(100 * REQUEST);
        for request in all.chunks(REQUEST).rev() {
            peer.answer(request, ClientStatus::SUCCESS, &resolved(asked_for(request), None));
        }
    });
    let options = ClientOptions { in_flight: 100, ..ClientOptions::default() };
    let client = AsyncClient::connect(&server.address, options).await.unwrap();
    let mut callers = JoinSet::new();
    for to in 1..=100 {
        let client = client.clone();
        callers.spawn(async move {
            let found = client.resolve(None, &lid(to), NOW).await.unwrap();
            assert_eq!(found.path, path(to));
        });
    }
    assert_eq!(callers.join_all().await.len(), 100);
}

#[tokio::test]
async fn one_request_at_a_time_is_under_way_unless_told() {
    // The service fails when one call brings two requests.
    let server = Server::tcp(|peer| {
        while let Some(request) = peer.request() {
            thread::sleep(Duration::from_millis(2));
            peer.answer(&request, ClientStatus::SUCCESS, &resolved(asked_for(&request), None));
        }
    });
    let client = AsyncClient::connect(&server.address, ClientOptions::default()).await.unwrap();
    let mut callers = JoinSet::new();
    for to in 1..=50 {
        let client = client.clone();
        callers.spawn(async move {
            let found = client.resolve(None, &lid(to), NOW).await.unwrap();
            assert_eq!(found.path, path(to));
        });
    }
    callers.join_all().await;
    end(client, server).await;
}

#[tokio::test]
async fn counters_and_endpoints_are_read_too() {
    let server = Server::tcp(|peer| {
        while let Some(request) = peer.request() {
            match (request[1], request[3]) {
                (2, _) => peer.answer(&request, ClientStatus::SUCCESS, &counters(&[9])),
                (_, 1..=3) => peer.answer(&request, ClientStatus::SUCCESS, &endpoint(1, &["a"])),
                _ => peer.answer(&request, ClientStatus::EINVAL, &[]),
            }
        }
    });
    let client = AsyncClient::connect(&server.address, ClientOptions::default()).await.unwrap();
    assert_eq!(client.perf(&PerfOf::Service).await.unwrap().known().errors, 9);
    assert_eq!(client.endpoints(0).await.unwrap().len(), 3);
    end(client, server).await;
}

#[tokio::test]
async fn a_dropped_request_keeps_its_place_until_it_is_answered() {
    let server = Server::tcp(|peer| {
        let request = peer.request().unwrap();
        // Were the next request on its way already, it would have come by then.
        thread::sleep(Duration::from_millis(400));
        peer.answer(&request, ClientStatus::SUCCESS, &resolved(1, None));
        let request = peer.request().unwrap();
        peer.answer(&request, ClientStatus::SUCCESS, &resolved(2, None));
    });
    let client = AsyncClient::connect(&server.address, ClientOptions::default()).await.unwrap();
    let first = lid(1);
    let dropped = client.resolve(None, &first, NOW);
    assert!(tokio::time::timeout(Duration::from_millis(30), dropped).await.is_err());
    assert_eq!(client.resolve(None, &lid(2), NOW).await.unwrap().path, path(2));
}

#[tokio::test]
async fn a_request_whose_time_is_over_makes_room_for_the_next() {
    let server = Server::tcp(|peer| {
        let (_, second) = (peer.request().unwrap(), peer.request().unwrap());
        peer.answer(&second, ClientStatus::SUCCESS, &resolved(2, None));
    });
    let client = AsyncClient::connect(&server.address, SOON).await.unwrap();
    let error = client.resolve(None, &lid(1), NOW).await.unwrap_err();
    assert!(matches!(error, ClientError::Timeout { .. }), "{error}");
    assert_eq!(client.resolve(None, &lid(2), NOW).await.unwrap().path, path(2));
}

#[tokio::test]
async fn a_connection_that_ends_fails_every_caller() {
    let server = Server::tcp(|peer| {
        peer.take(8 * REQUEST);
        peer.send(&[9; 16]);
    });
    let options = ClientOptions { in_flight: 8, ..ClientOptions::default() };
    let client = AsyncClient::connect(&server.address, options).await.unwrap();
    let mut callers = JoinSet::new();
    // Those who are not under way yet fail as well.
    for to in 1..=20 {
        let client = client.clone();
        callers.spawn(async move { client.resolve(None, &lid(to), NOW).await.unwrap_err() });
    }
    for error in callers.join_all().await {
        assert!(matches!(error, ClientError::Reply { .. }), "{error}");
    }
    let error = client.perf(&PerfOf::Service).await.unwrap_err();
    assert!(matches!(error, ClientError::Reply { .. }), "{error}");
}

#[tokio::test]
#[cfg(unix)]
async fn the_connection_ends_with_the_last_clone() {
    let server = Server::unix(|peer| {
        let request = peer.request().unwrap();
        peer.answer(&request, ClientStatus::ENODATA, &[]);
        assert_eq!(peer.request(), None);
    });
    let client = AsyncClient::connect(&server.address, SOON).await.unwrap();
    let clone = client.clone();
    drop(client);
    let error = clone.resolve(None, &lid(1), NOW).await.unwrap_err();
    assert_eq!(error.status(), Some(ClientStatus::ENODATA));
    end(clone, server).await;
}

#[tokio::test]
#[cfg(unix)]
async fn a_service_that_is_not_there_is_an_error() {
    let missing = super::super::ServiceAddress::Unix("/nowhere/acm".into());
    let error = AsyncClient::connect(&missing, SOON).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}
