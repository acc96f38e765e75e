//! The approximate memory of a question or an answer: the message, and the values that a clerk makes from the message.

use super::proto::answer::Answer;
use super::proto::question::Question;
use super::proto::{HostList, LinkLists};

/// The bytes of a page without its lists.
const PAGE: usize = 128;

/// The bytes of memory for an answer.
pub(crate) fn memory_of(answer: &Answer) -> usize {
    match answer {
        Answer::Uids(list) | Answer::Listing(list) => 16 * list.uids.len(),
        Answer::Urls(list) => list.urls.iter().map(|url| size_of::<String>() + url.len()).sum(),
        Answer::Links(lists) | Answer::Sources(lists) => links(lists),
        Answer::Captures(lists) => 32 * lists.times.len() + 16 * lists.counts.len(),
        Answer::Lifespans(lists) => 48 * lists.links.len() + 16 * lists.counts.len(),
        Answer::Pages(list) => {
            let page = |page: &super::proto::Page| page.timestamps.len() + page.links.len() + page.change_links.len();
            list.pages.iter().map(|found| PAGE + 16 * page(found)).sum()
        }
        Answer::InRecords(list) => {
            let record = |record: &super::proto::InRecord| record.sources.len() + record.change_sources.len();
            list.records.iter().map(|found| PAGE + 16 * (record(found) + found.ranges.len())).sum()
        }
        Answer::Truths(list) => list.truths.len(),
        Answer::Hosts(list) | Answer::Stretches(list) => hosts(list),
        Answer::Backlinks(lists) => {
            PAGE * lists.stay_counts.len() + 80 * lists.firsts.len() + 32 * lists.unknown_pages.len()
        }
        Answer::Range(_) | Answer::Counts(_) => 0,
    }
}

/// The bytes of the lists, the values, and the copy of the values in the answer of the call.
fn links(lists: &LinkLists) -> usize {
    let count: usize = lists.counts.iter().map(|&count| count as usize).sum();
    lists.links.len() + 24 * count + 16 * lists.counts.len() + 4 * lists.unsure.len()
}

fn hosts(list: &HostList) -> usize {
    list.hosts.iter().map(|host| size_of::<String>() + 8 + host.host.len()).sum()
}

/// The bytes of memory for a question, in the form that is kept and in the form that is sent.
pub(crate) fn memory_of_question(question: &Question) -> usize {
    let items = match question {
        Question::Find(find) => find.keys.iter().map(|key| 4 + key.len() / size_of::<u64>()).sum::<usize>(),
        Question::Links(links) => links.uids.len(),
        Question::Urls(list)
        | Question::Captures(list)
        | Question::Lifespans(list)
        | Question::Runs(list)
        | Question::Pages(list)
        | Question::InRecords(list)
        | Question::HostsOf(list) => list.uids.len(),
        Question::HasLinks(pairs) => 2 * pairs.pages.len(),
        Question::Backlinks(backlinks) => backlinks.pages.len(),
        Question::Listing(_)
        | Question::Failing(_)
        | Question::Prefix(_)
        | Question::Counts(_)
        | Question::Spellings(_)
        | Question::Hosts(_)
        | Question::Busiest(_)
        | Question::Sources(_) => 0,
    };
    2 * items * size_of::<u64>()
}
