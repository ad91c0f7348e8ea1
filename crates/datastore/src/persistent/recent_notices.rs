//! Recent events of a datastore: all of them for each reader, and new ones once for a reader that follows.
//!
//! Bounded: the oldest entries go. What is only here is lost when the supervisor ends.

use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

use super::protocol::RecentNotice;
use crate::fault::DatastoreNotice;

/// Entries kept.
const KEPT_MAX: usize = 200;

/// The latest entries.
#[derive(Debug, Default)]
pub(super) struct RecentNotices {
    kept: VecDeque<RecentNotice>,
    /// How many of the newest were not told as news yet.
    news: usize,
}

impl RecentNotices {
    /// Adds what the server says, in order.
    pub(super) fn add(&mut self, notices: Vec<DatastoreNotice>) {
        let now =
            SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        for notice in notices {
            if self.kept.len() == KEPT_MAX {
                self.kept.pop_front();
            }
            self.kept.push_back(RecentNotice {
                at_unix_ns: now.saturating_sub(notice.ago_ns),
                kind: notice.kind,
                text: notice.text,
            });
            self.news = (self.news + 1).min(KEPT_MAX);
        }
    }

    /// Adds what the supervisor itself has done.
    pub(super) fn note(&mut self, kind: &str, text: String) {
        self.add(vec![DatastoreNotice { ago_ns: 0, kind: kind.to_string(), text }]);
    }

    /// Everything kept, oldest first.
    pub(super) fn recent(&self) -> Vec<RecentNotice> {
        self.kept.iter().cloned().collect()
    }

    /// What was not taken yet.
    pub(super) fn take_news(&mut self) -> Vec<DatastoreNotice> {
        let now =
            SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        let news =
            self.kept.iter().skip(self.kept.len() - self.news).map(|notice| DatastoreNotice {
                ago_ns: now.saturating_sub(notice.at_unix_ns),
                kind: notice.kind.clone(),
                text: notice.text.clone(),
            });
        let news = news.collect();
        self.news = 0;
        news
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT_MAX, RecentNotices};
    use crate::fault::DatastoreNotice;

    fn notice(number: usize) -> DatastoreNotice {
        DatastoreNotice { ago_ns: 0, kind: "fault".to_string(), text: number.to_string() }
    }

    #[test]
    fn news_are_told_once_and_the_oldest_go() {
        let mut recent_notices = RecentNotices::default();
        recent_notices.add(vec![notice(0), notice(1)]);
        assert_eq!(recent_notices.recent().len(), 2);
        assert_eq!(recent_notices.take_news().len(), 2);
        assert_eq!(recent_notices.take_news(), []);
        recent_notices.add((2..KEPT_MAX + 3).map(notice).collect());
        let recent = recent_notices.recent();
        assert_eq!((recent.len(), &*recent[0].text), (KEPT_MAX, "3"));
        let news = recent_notices.take_news();
        assert_eq!((news.len(), &*news[0].text), (KEPT_MAX, "3"));
    }
}
