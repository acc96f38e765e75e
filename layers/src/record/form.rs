//! Forms: how the captures of a page spell its links. Forms are stored beside the links.
//!
//! A form is a code below [`FORMS`] that says how a reference depends on the URL of its page; 0 means that it does not
//! depend. Here a code is only a number. The code that reads references gives it a meaning, see [`crate::format`]. A
//! page has forms if a capture with another URL may have the same payload.
//!
//! Jobs that add captures to a store, or merge rows, work with *formed* pages. The links of such a [`Page`] are pairs
//! of a UID and a form, each pair in one number ([`formed`]). If captures spell a link in two ways, the page has two
//! pairs, each with its own presence. Code that joins links and captures therefore joins pairs, and need not know about
//! forms. A page in which all links have the form 0 equals its formed page. [`plain`] returns the page without forms.
//! [`encode`] returns the forms as the layer rv stores them, and [`restore`] makes the formed page from both.
//!
//! Coding: first, for all links of the plain page in order, runs of links with the same code. A run is the code and the
//! number of links in LEB128. The code of a link with one form is the form, and the code of a link with several forms
//! is `SEVERAL`. Then, for each link with several forms: the number of its forms and, for each form, rising: the
//! form, the number of its changes, and the captures of these changes. The first capture is stored as it is, and the
//! others as the gap to the one before, less 1. All numbers but codes are in LEB128. If all links have the form 0,
//! there are no bytes.
//!
//! Cost: linear in the links and changes of the page.

use std::borrow::Cow;

use crate::record::page::Page;
use crate::record::presence::{self, Change};
use crate::record::uid::Uid;

/// The number of forms: all forms are below this.
pub const FORMS: u8 = 128;
/// The code of a link with several forms.
const SEVERAL: u8 = 128;
/// The position of the form in a number, in bits. UIDs of a store are below this bit.
const SHIFT: u32 = 56;
const MASK: u64 = (FORMS as u64 - 1) << SHIFT;

/// A link and its form as one number.
pub fn formed(link: Uid, form: u8) -> Uid {
    Uid(link.0 | (u64::from(form) << SHIFT & MASK))
}

/// The link of a number that [`formed`] made.
pub fn link_of(formed: Uid) -> Uid {
    Uid(formed.0 & !MASK)
}

/// The form of a number that [`formed`] made.
pub fn form_of(formed: Uid) -> u8 {
    u8::try_from((formed.0 & MASK) >> SHIFT).unwrap_or(0)
}

/// Whether any link has a form other than 0.
fn has_forms(page: &Page) -> bool {
    // The form is in the highest bits, so the last number has the greatest form.
    page.links.last().is_some_and(|&last| form_of(last) > 0)
}

/// The links of a page, formed or not, each with its changes.
pub fn each_link(page: &Page) -> Vec<(Uid, &[Change])> {
    let mut rest = &page.changes[..];
    let each = (0u32..).zip(&page.links).map(|(at, &link)| {
        let (own, after) = rest.split_at(rest.iter().take_while(|change| change.link == at).count());
        rest = after;
        (link, own)
    });
    each.collect()
}

/// The links of a formed page with their changes, sorted by link, then by form.
fn by_link(page: &Page) -> Vec<(Uid, &[Change])> {
    let mut each = each_link(page);
    each.sort_by_key(|&(number, _)| (link_of(number), number));
    each
}

/// The plain page of a formed page. A capture has a link if it has the link in any form.
pub fn plain(page: &Page) -> Cow<'_, Page> {
    if !has_forms(page) {
        return Cow::Borrowed(page);
    }
    let captures = u32::try_from(page.timestamps.len()).unwrap_or(u32::MAX);
    let (mut links, mut changes) = (Vec::new(), Vec::new());
    for forms in by_link(page).chunk_by(|(one, _), (other, _)| link_of(*one) == link_of(*other)) {
        let link = u32::try_from(links.len()).unwrap_or(u32::MAX);
        links.push(link_of(forms[0].0));
        match forms {
            [(_, own)] => changes.extend(own.iter().map(|change| Change { link, ..*change })),
            forms => changes.extend(union(forms, captures).into_iter().map(|capture| Change { link, capture })),
        }
    }
    let Page { uid, timestamps, blank, statuses, .. } = page.clone();
    Cow::Owned(Page { uid, timestamps, blank, links, changes, statuses })
}

/// The captures at which the presence of a link changes. The link is present where any of its forms is.
fn union(forms: &[(Uid, &[Change])], captures: u32) -> Vec<u32> {
    let mut all: Vec<(u32, u32)> = forms.iter().flat_map(|(_, own)| presence::intervals(own, captures)).collect();
    all.sort_unstable();
    // The captures at which the link goes and comes, in turns. Before the first one the link counts as present.
    let (mut bounds, mut end) = (Vec::new(), 0);
    for (first, last) in all {
        if first > end {
            bounds.extend([end, first]);
        }
        end = end.max(last + 1);
    }
    if end < captures {
        bounds.push(end);
    }
    bounds
}

/// The forms of a formed page as the layer rv stores them; empty if all forms are 0.
pub fn encode(page: &Page) -> Vec<u8> {
    let mut out = Vec::new();
    if !has_forms(page) {
        return out;
    }
    let each = by_link(page);
    let links: Vec<_> = each.chunk_by(|(one, _), (other, _)| link_of(*one) == link_of(*other)).collect();
    let code = |forms: &[(Uid, &[Change])]| if let [(number, _)] = forms { form_of(*number) } else { SEVERAL };
    for run in links.chunk_by(|one, other| code(one) == code(other)) {
        out.push(code(run[0]));
        put(&mut out, run.len() as u64);
    }
    for forms in links.into_iter().filter(|forms| forms.len() > 1) {
        put(&mut out, forms.len() as u64);
        for (number, own) in forms {
            out.push(form_of(*number));
            put(&mut out, own.len() as u64);
            let mut next = 0;
            for change in *own {
                put(&mut out, u64::from(change.capture - next));
                next = change.capture + 1;
            }
        }
    }
    out
}

/// Makes the formed page from a page and the forms that [`encode`] wrote; `None` if the forms are not valid.
pub fn restore(page: Page, mut coded: &[u8]) -> Option<Page> {
    if coded.is_empty() {
        return Some(page);
    }
    let mut codes = Vec::with_capacity(page.links.len());
    while codes.len() < page.links.len() {
        let (code, count) = (byte(&mut coded)?, usize::try_from(take(&mut coded)?).ok()?);
        if code > SEVERAL || count == 0 || count > page.links.len() - codes.len() {
            return None;
        }
        codes.resize(codes.len() + count, code);
    }
    let mut numbers: Vec<(Uid, Cow<'_, [Change]>)> = Vec::with_capacity(page.links.len());
    for ((link, own), code) in each_link(&page).into_iter().zip(codes) {
        if code != SEVERAL {
            numbers.push((formed(link, code), own.into()));
            continue;
        }
        let mut last = None;
        for _ in 0..take(&mut coded)? {
            let (form, count) = (byte(&mut coded)?, take(&mut coded)?);
            if form >= FORMS || last.is_some_and(|last| last >= form) {
                return None;
            }
            last = Some(form);
            let (mut changes, mut next) = (Vec::new(), 0u32);
            for _ in 0..count {
                let capture = next.checked_add(u32::try_from(take(&mut coded)?).ok()?)?;
                if capture as usize >= page.timestamps.len() {
                    return None;
                }
                changes.push(Change { link: 0, capture });
                next = capture + 1;
            }
            numbers.push((formed(link, form), changes.into()));
        }
    }
    if !coded.is_empty() {
        return None;
    }
    numbers.sort_by_key(|&(number, _)| number);
    let (mut links, mut changes) = (Vec::with_capacity(numbers.len()), Vec::new());
    for (at, (number, own)) in (0u32..).zip(&numbers) {
        links.push(*number);
        changes.extend(own.iter().map(|change| Change { link: at, ..*change }));
    }
    drop(numbers);
    Some(Page { links, changes, ..page })
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push((number & 0x7f) as u8);
}

fn byte(bytes: &mut &[u8]) -> Option<u8> {
    let (&first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(first)
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0u64, 0);
    loop {
        let byte = byte(bytes)?;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(number);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::join::tests::{page_named, page_of};
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    type Captures = BTreeMap<i64, Option<BTreeSet<(u64, u8)>>>;

    fn captures() -> impl Strategy<Value = Captures> {
        let links = prop::collection::btree_set((0u64..5, prop::sample::select(vec![0, 0, 2, 6, 127])), 0..6);
        prop::collection::btree_map(0i64..30, prop::option::weighted(0.9, links), 1..8)
    }

    proptest! {
        #[test]
        fn pages_and_forms_come_apart_and_together(captures in captures()) {
            let pair = |&(link, form): &(u64, u8)| formed(Uid(link), form);
            let named = |links: &BTreeSet<(u64, u8)>| links.iter().map(pair).collect();
            let page = page_of(&captures.iter().map(|(&time, links)| (time, links.as_ref().map(named))).collect());
            let unnamed = |links: &BTreeSet<(u64, u8)>| links.iter().map(|&(link, _)| Uid(link)).collect();
            let expected = captures.iter().map(|(&time, links)| (time, links.as_ref().map(unnamed))).collect();
            let without = plain(&page).into_owned();
            prop_assert_eq!(&without, &page_named(&expected, |link| link));
            let coded = encode(&page);
            prop_assert_eq!(coded.is_empty(), page == without);
            prop_assert_eq!(restore(without.clone(), &coded), Some(page));
            for at in 0..coded.len() {
                let mut damaged = coded.clone();
                damaged[at] ^= 1;
                // Damaged forms may give another page or `None`, but never a panic.
                let _ = restore(without.clone(), &damaged);
                prop_assert_eq!(restore(without.clone(), &coded[..at.max(1)]), None);
            }
        }
    }
}
