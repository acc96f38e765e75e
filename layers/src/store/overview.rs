//! Overviews: the contents of an epoch by year and by host, for people. An overview is a note beside the layers.
//!
//! ```text
//! STORE/overviews/000004.json     the overview of epoch 4
//! ```
//!
//! An overview depends on its epoch alone. Computing an overview takes a scan of all links, so it is computed once and
//! then read as often as a server is asked. An overview names the identity of its epoch: an overview of another store's
//! epoch with the same number does not count. The file has its digest (`sealed`). A file that does not match its digest
//! is an error, and never an answer.
//!
//! Years are in UTC. All columns of a [`Numbers`] have one entry for each year, from [`Overview::first_year`] on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::identity::EpochId;
use crate::location::Location;
use crate::store::Store;
use crate::store::sealed::Sealed;

/// The name of the overview of an epoch, in the store.
pub(crate) fn overview_name(epoch: u64) -> String {
    format!("{}/{epoch:06}.json", Sealed::Overviews.directory())
}

/// The contents of an epoch in numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "OverviewByYear")]
pub struct Overview {
    /// The epoch.
    pub of: EpochId,
    /// The year of the first capture; 0 without captures.
    pub first_year: i32,
    /// The numbers of all pages.
    pub all: Numbers,
    /// How long links live, for all pages.
    pub lives: Lives,
    /// The number of hosts that were captured.
    pub hosts_captured: u64,
    /// The hosts with the most captures, in descending order.
    pub hosts: Vec<HostOverview>,
    /// The domains with the most links to their URLs, in descending order.
    pub domains: Vec<Linked>,
}

/// A host of an [`Overview`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "HostByYear")]
pub struct HostOverview {
    /// The name of the host.
    pub host: String,
    /// The number of pairs of a page of the host and a link.
    pub links: u64,
    /// The number of pages of the host with a capture.
    pub pages: u64,
    /// The captures of the host by year, and the changes that they show.
    pub numbers: Numbers,
    /// How long links of pages of the host live.
    pub lives: Lives,
}

/// A domain that is linked to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "LinkedDomain")]
pub struct Linked {
    /// The registrable domain.
    pub domain: String,
    /// The number of pairs of a page and a link to a URL of the domain.
    pub links: u64,
}

/// Numbers by year.
///
/// A *link* is a pair of a page and a URL. It was *found* if the first capture of its page with known links has it,
/// else it was *gained* at the first capture that has it. It was *lost* at the first capture that lacks it, if no later
/// capture has it. So each link was found or gained once, and lost at most once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "NumbersByYear")]
pub struct Numbers {
    /// Captures.
    pub captures: Vec<u64>,
    /// Captures with a status of 400 or above.
    pub failed_captures: Vec<u64>,
    /// Pages that were captured.
    pub pages: Vec<u64>,
    /// URLs that were captured or linked to for the first time.
    pub urls: Vec<u64>,
    /// Links that were found.
    pub links_found: Vec<u64>,
    /// Links that were gained.
    pub links_gained: Vec<u64>,
    /// Links that were lost for good.
    pub links_lost: Vec<u64>,
    /// Pages that died: a failure ended them.
    pub pages_died: Vec<u64>,
    /// Pages that returned.
    pub pages_returned: Vec<u64>,
}

impl Numbers {
    /// Each column with its name, in order.
    pub fn columns(&self) -> [(&'static str, &[u64]); 9] {
        [
            ("captures", &self.captures),
            ("failed_captures", &self.failed_captures),
            ("pages", &self.pages),
            ("urls", &self.urls),
            ("links_found", &self.links_found),
            ("links_gained", &self.links_gained),
            ("links_lost", &self.links_lost),
            ("pages_died", &self.pages_died),
            ("pages_returned", &self.pages_returned),
        ]
    }

    /// Numbers for this many years, all zero.
    pub fn of_years(years: usize) -> Self {
        let mut numbers = Self::default();
        numbers.columns_mut().into_iter().for_each(|column| column.resize(years, 0));
        numbers
    }

    /// Adds numbers to a year, in the order of [`columns`](Self::columns).
    pub fn add(&mut self, year: usize, row: [u64; 9]) {
        self.columns_mut().into_iter().zip(row).for_each(|(column, number)| column[year] += number);
    }

    fn columns_mut(&mut self) -> [&mut Vec<u64>; 9] {
        [
            &mut self.captures,
            &mut self.failed_captures,
            &mut self.pages,
            &mut self.urls,
            &mut self.links_found,
            &mut self.links_gained,
            &mut self.links_lost,
            &mut self.pages_died,
            &mut self.pages_returned,
        ]
    }
}

/// Links by age: the Kaplan-Meier estimate of how long a link lives. Only links count that are first seen in a later
/// capture than the first one of their page. A link that returns counts as a new link. A link that is still there
/// counts for as long as it was watched.
///
/// Three columns with an entry for each age at which links went. The last entry is for the greatest age, also if no
/// link went then, and shows how long links were watched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lives {
    /// Ages in months of 30 days, rising.
    pub age: Vec<u64>,
    /// Links that reach the age.
    pub at_risk: Vec<u64>,
    /// The share of links that outlive the age.
    pub surviving: Vec<f64>,
}

impl Lives {
    /// Makes the estimate from pairs of an age and two numbers of links: those that went at this age, and those that
    /// were watched no longer. Ages must rise.
    pub fn of(ages: impl IntoIterator<Item = (u64, [u64; 2])>) -> Self {
        let ages: Vec<(u64, [u64; 2])> = ages.into_iter().collect();
        let mut at_risk: u64 = ages.iter().map(|(_, [went, watched])| went + watched).sum();
        let (mut lives, mut share) = (Self::default(), 1.0);
        for (at, (age, [went, watched])) in ages.iter().enumerate() {
            // At least the links that went are at risk.
            if *went > 0 {
                share *= 1.0 - *went as f64 / at_risk as f64;
            }
            if *went > 0 || at + 1 == ages.len() {
                lives.age.push(*age);
                lives.at_risk.push(at_risk);
                lives.surviving.push(share);
            }
            at_risk -= went + watched;
        }
        lives
    }

    /// The age at which half of the links are gone, in months of 30 days; `None` if more than half outlive all ages.
    pub fn median(&self) -> Option<u64> {
        self.surviving.iter().position(|&share| share <= 0.5).map(|at| self.age[at])
    }
}

impl Overview {
    /// Reads the overview of an epoch; `None` if none was written for the epoch.
    ///
    /// # Errors
    /// An error of the disk or of the server, and a file that does not match its digest ([`Error::Unsealed`]).
    pub fn read(store: &Store) -> Result<Option<Self>, Error> {
        let (name, kind) = (overview_name(store.manifest().epoch), Sealed::Overviews);
        let Some(bytes) = kind.read(store.location(), &name)? else { return Ok(None) };
        let damaged = |flaw: String| kind.damaged(store.location(), &name, flaw);
        let overview: Self = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        let years = overview.all.captures.len();
        let all = overview.hosts.iter().map(|host| &host.numbers).chain([&overview.all]);
        let is_even =
            |lives: &Lives| lives.age.len() == lives.at_risk.len() && lives.age.len() == lives.surviving.len();
        let lives = overview.hosts.iter().map(|host| &host.lives).chain([&overview.lives]).all(is_even);
        if !lives || all.flat_map(Numbers::columns).any(|(_, column)| column.len() != years) {
            return Err(damaged("columns are not of one length".to_owned()));
        }
        Ok((overview.of == store.id()).then_some(overview))
    }

    /// Writes the overview into the store of its epoch, and replaces an existing one.
    ///
    /// # Errors
    /// An error of the disk or of the server.
    pub fn write(&self, store: &Location) -> Result<(), Error> {
        let (name, kind) = (overview_name(self.of.epoch), Sealed::Overviews);
        let mut bytes = serde_json::to_vec(self).map_err(|error| kind.damaged(store, &name, error.to_string()))?;
        bytes.push(b'\n');
        kind.write(store, &name, &bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survival_is_the_product_of_shares() {
        let lives = Lives::of([(0, [1, 1]), (3, [0, 2]), (5, [1, 1])]);
        assert_eq!(lives.age, [0, 5]);
        assert_eq!(lives.at_risk, [6, 2]);
        assert_eq!(lives.surviving, [1.0 - 1.0 / 6.0, (1.0 - 1.0 / 6.0) * 0.5]);
        assert_eq!(lives.median(), Some(5));
        let still = Lives::of([(2, [0, 4])]);
        assert_eq!((still.age, still.at_risk, still.surviving), (vec![2], vec![4], vec![1.0]));
        assert_eq!(Lives::of([]).median(), None);
    }
}
