//! Asks several servers for one answer: the next server when the one before failed or is late. The first answer counts.

use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::time::sleep;

/// The first answer of servers, which are asked in order.
///
/// # Errors
/// The failures of all servers, or those up to the first that is final.
pub(crate) async fn first_of<S, T, E, F>(
    servers: impl IntoIterator<Item = S>,
    late: Duration,
    ask: impl Fn(S) -> F,
    is_final: impl Fn(&E) -> bool,
) -> Result<T, Vec<E>>
where
    F: Future<Output = Result<T, E>>,
{
    let (mut rest, mut failed) = (servers.into_iter().peekable(), Vec::new());
    let mut open = FuturesUnordered::new();
    loop {
        open.extend(rest.next().map(&ask));
        tokio::select! {
            answer = open.next(), if !open.is_empty() => match answer {
                Some(Ok(answer)) => return Ok(answer),
                Some(Err(error)) => {
                    let is_final = is_final(&error);
                    failed.push(error);
                    if is_final || open.is_empty() && rest.peek().is_none() {
                        return Err(failed);
                    }
                }
                None => return Err(failed),
            },
            () = sleep(late), if rest.peek().is_some() => {}
            else => return Err(failed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    const LATE: Duration = Duration::from_millis(5);

    #[tokio::test]
    async fn one_that_is_silent_or_fails_keeps_nobody() {
        let ask = |server: u32| async move {
            match server {
                0 => pending().await,
                1 => Err(1),
                server => Ok(server),
            }
        };
        assert_eq!(first_of([0, 1, 7], LATE, ask, |_| false).await, Ok(7));
        assert_eq!(first_of([1, 0, 7], LATE, ask, |_| false).await, Ok(7));
        assert_eq!(first_of([1, 7], LATE, ask, |_| true).await, Err(vec![1]), "the first failure is final");
        assert_eq!(first_of([1, 1], LATE, ask, |_| false).await, Err(vec![1, 1]));
        assert_eq!(first_of([0; 0], LATE, ask, |_| false).await, Err(vec![]));
    }
}
