//! Turns a key into its URL inside the buffer that holds the key.
//!
//! The key of a usual URL is one or two bytes shorter than the URL. When the host is reversed, label by label, its last
//! two bytes `,` and `)` come first, where the `//` goes: `com,example,)/a` becomes `),example,com/a`, and `http:` goes
//! before it. Source: the form of `webstrata_layers::record::key`, which also turns the keys of odd URLs: they are
//! rare.

use webstrata_layers::record::key::url_of_key;

/// The number of free bytes before the key.
pub(super) const ROOM: usize = 6;
const MARK: u8 = 0x04;
const ODD: u8 = 0x03;

/// Turns the key after [`ROOM`] free bytes into its URL. Returns whether it has the form of a key; if not, the contents
/// of the buffer are undefined.
pub(super) fn url_in_place(buffer: &mut Vec<u8>) -> bool {
    let (Some(end), true) = (buffer.pop(), buffer.len() >= ROOM) else { return false };
    if end == ODD {
        return odd(buffer);
    }
    let key = &mut buffer[ROOM..];
    let Some(bracket) = key.iter().position(|&byte| byte == b')') else { return false };
    if bracket == 0 || key[bracket - 1] != b',' {
        return false;
    }
    let host = &mut key[..=bracket];
    if is_ipv4(&host[..bracket - 1]) {
        host.rotate_right(2);
        host[2..].iter_mut().filter(|byte| **byte == b',').for_each(|byte| *byte = b'.');
    } else {
        host.reverse();
        let mut label = 2;
        for at in 2..host.len() {
            if host[at] == b',' {
                host[at] = b'.';
                host[label..at].reverse();
                label = at + 1;
            }
        }
        host[label..].reverse();
    }
    host[..2].copy_from_slice(b"//");
    let path = &mut key[bracket + 1..];
    // A port consists of digits, so its mark is a few bytes from the end.
    if let Some(mark) = memchr_back(path) {
        let port = path.len() - mark;
        path.rotate_right(port);
        path[0] = b':';
    }
    match end {
        0x01 => {
            buffer[1..ROOM].copy_from_slice(b"http:");
            buffer.remove(0);
        }
        0x02 => buffer[..ROOM].copy_from_slice(b"https:"),
        _ => return false,
    }
    true
}

/// The place of the mark of the port.
fn memchr_back(path: &[u8]) -> Option<usize> {
    let digits = path.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let mark = path.len().checked_sub(digits + 1)?;
    (path[mark] == MARK).then_some(mark)
}

/// Whether a host is four numbers, whose order is not reversed.
fn is_ipv4(host: &[u8]) -> bool {
    host.first().is_some_and(u8::is_ascii_digit)
        && host.len() <= 15
        && host.split(|&byte| byte == b',').count() == 4
        && host
            .split(|&byte| byte == b',')
            .all(|label| (1..=3).contains(&label.len()) && label.iter().all(u8::is_ascii_digit))
}

/// As [`url_in_place`], for a key that ended with [`ODD`].
fn odd(buffer: &mut Vec<u8>) -> bool {
    buffer.push(ODD);
    let Some(url) = url_of_key(&buffer[ROOM..]) else { return false };
    buffer.clear();
    buffer.extend_from_slice(url.as_bytes());
    true
}
