//! Forms: how the captures of a page spell their links, beside the links.
//!
//! A form is a code below [`FORMS`] that says how a reference depends on the URL of its page; 0 says that it does not.
//! Here a code is a number; what the codes mean is said where references are read. A page has forms where a capture
//! with another URL may have its payload, see [`crate::format`].
//!
//! Jobs that add captures to a store, or put rows together, work with *formed* pages: a [`Page`] whose links are pairs
//! of a UID and a form, in one number each ([`formed`]). A link that captures spell in two ways stands there twice,
//! each with its own presence; so what joins links and captures joins pairs and captures, and need not know of forms.
//! A page all of whose links have the form 0 is its own formed page. [`plain`] gives the page without forms, [`encode`]
//! the forms as the layer rv has them, and [`restore`] the formed page of both.
//!
//! Coded: first, for all links of the plain page in order, runs of links that have the same code: the code, then how
//! many links, in LEB128. A link with one form has the code of this form, one with several [`SEVERAL`]. Then, for each
//! of the latter, how many forms it has, and for each of these, rising, the form, how many changes it has, and the
//! captures of these changes: the first, then the gap to the one before, less 1. All numbers but codes are LEB128.
//! Nothing where all links have the form 0.
//!
//! Cost: links and changes of the page.

use std::borrow::Cow;

use crate::record::page::Page;
use crate::record::presence::{self, Change};
use crate::record::uid::Uid;

/// Forms are below this.
pub const FORMS: u8 = 128;
/// The code of a link with several forms.
const SEVERAL: u8 = 128;
/// Where the form stands in a number; a store has fewer URLs than this leaves room for.
const SHIFT: u32 = 56;
const MASK: u64 = (FORMS as u64 - 1) << SHIFT;

/// A link and its form as one number.
pub fn formed(link: Uid, form: u8) -> Uid {
    Uid(link.0 | (u64::from(form) << SHIFT & MASK))
}

/// The link of such a number.
pub fn link_of(formed: Uid) -> Uid {
    Uid(formed.0 & !MASK)
}

/// The form of such a number.
pub fn form_of(formed: Uid) -> u8 {
    u8::try_from((formed.0 & MASK) >> SHIFT).unwrap_or(0)
}

/// Whether some link has another form than 0.
fn has_forms(page: &Page) -> bool {
    // Forms stand above the UIDs, so the last number has the greatest.
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

/// What a formed page has, link by link, the forms of a link rising.
fn by_link(page: &Page) -> Vec<(Uid, &[Change])> {
    let mut each = each_link(page);
    each.sort_by_key(|&(number, _)| (link_of(number), number));
    each
}

/// A formed page without its forms: a link is where any of its forms is.
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

/// Where the presence of a link changes that is where any of these is.
fn union(forms: &[(Uid, &[Change])], captures: u32) -> Vec<u32> {
    let mut all: Vec<(u32, u32)> = forms.iter().flat_map(|(_, own)| presence::intervals(own, captures)).collect();
    all.sort_unstable();
    // Captures from which on it is there, and from which on it is not, in turns; before the first it is.
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

/// The forms of a formed page as the layer rv has them; empty where all are 0.
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

/// The formed page of a page and of its forms, as [`encode`] wrote them; `None` where these are not sound.
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
                // Whatever comes of it, it is no panic.
                let _ = restore(without.clone(), &damaged);
                prop_assert_eq!(restore(without.clone(), &coded[..at.max(1)]), None);
            }
        }
    }
}
