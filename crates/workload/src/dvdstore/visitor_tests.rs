//! Visits: their steps, how often decisions fall, what answers change.

use std::collections::BTreeSet;
use underlay_core::{Nanos, RootSeed};

use super::Visitor;
use crate::dvdstore::{
    Behaviour, DvdStore, DvdStoreAccounting, Outcome, Parameters, SHAPE, Size, Step, Transaction,
    tax_cents,
};
use crate::transactional::{Mix, Weights, Workload};

const BASE: Parameters = Parameters {
    size: Size::SMALL,
    seed: RootSeed(1),
    behaviour: Behaviour {
        pct_newcustomers: 20,
        pct_newmember: 1,
        n_searches: 3,
        search_batch_size: 5,
        search_depth: 500,
        n_reviews: 3,
        pct_newreviews: 5,
        pct_newhelpfulness: 10,
        n_line_items: 5,
        ds2_mode: false,
    },
};

fn visitor(parameters: Parameters, user: u64) -> Visitor {
    DvdStore::new(parameters).user(user, RootSeed(9))
}

/// The next visit, every step answered as a working shop would.
fn visit(visitor: &mut Visitor) -> Vec<Transaction> {
    let mut steps = Vec::new();
    loop {
        let transaction = visitor.next_of(&Mix::Prescribed);
        visitor.on_outcome(&transaction, Some(&DvdStore::imagined(&transaction)));
        let step = transaction.step();
        steps.push(transaction);
        if step == Step::Purchase {
            return steps;
        }
    }
}

#[test]
fn the_default_behaviour_is_the_kits() {
    assert_eq!(BASE.behaviour, Behaviour::default());
}

#[test]
fn visits_are_repeatable_and_their_steps_in_order() {
    let all = |user| {
        let mut visitor = visitor(BASE, user);
        (0..30).map(|_| visit(&mut visitor)).collect::<Vec<_>>()
    };
    assert_eq!(all(3), all(3));
    assert_ne!(all(3), all(4));
    for visit in all(3) {
        let steps: Vec<Step> = visit.iter().map(Transaction::step).collect();
        assert!(matches!(steps[0], Step::Login | Step::NewCustomer), "{steps:?}");
        let stage = |step: &Step| match step {
            Step::Login | Step::NewCustomer => 0,
            Step::NewMember => 1,
            Step::BrowseCategory | Step::BrowseActor | Step::BrowseTitle => 2,
            Step::ReviewsByActor | Step::ReviewsByTitle => 3,
            Step::ProductReviews | Step::ProductReviewsByStars | Step::ProductReviewsByDate => 4,
            Step::NewReview => 5,
            Step::RateReview => 6,
            Step::Prices => 7,
            Step::Purchase => 8,
        };
        assert!(steps.is_sorted_by_key(stage), "{steps:?}");
        for (stage_wanted, most) in [(0, 1), (2, 5), (3, 5), (4, 5), (7, 1), (8, 1)] {
            let count = steps.iter().filter(|step| stage(step) == stage_wanted).count();
            assert!((1..=most).contains(&count), "{steps:?}");
        }
    }
}

#[test]
fn decisions_fall_as_often_as_the_parameters_say_and_independently() {
    const VISITS: usize = 20_000;
    let mut visitor = visitor(BASE, 0);
    let mut counts = [0usize; Step::ALL.len()];
    let (mut reviews_of_known, mut lines) = (0, [0usize; 10]);
    for _ in 0..VISITS {
        let visit = visit(&mut visitor);
        visit.iter().for_each(|transaction| counts[transaction.step().index()] += 1);
        let is_known = visit[0].step() == Step::Login;
        reviews_of_known += usize::from(
            is_known && visit.iter().any(|transaction| transaction.step() == Step::NewReview),
        );
        let Some(Transaction::Purchase { lines: bought, .. }) = visit.last() else { panic!() };
        assert!(bought.is_sorted(), "{bought:?}");
        lines[bought.len()] += 1;
    }
    let check = |what: &str, count: usize, share: f64, trials: usize| {
        let expected = share * trials as f64;
        // Five standard deviations of a binomial.
        let margin = 5.0 * (expected * (1.0 - share)).sqrt();
        assert!((count as f64 - expected).abs() < margin, "{what}: {count}, expected {expected}");
    };
    let count = |step: Step| counts[step.index()];
    check("new customers", count(Step::NewCustomer), 0.20, VISITS);
    check("new members", count(Step::NewMember), 0.01, VISITS);
    check("new reviews", count(Step::NewReview), 0.05, VISITS);
    check("ratings", count(Step::RateReview), 0.10, VISITS);
    // The kit draws one number for all: there no known customer ever writes a review.
    check("reviews of known customers", reviews_of_known, 0.05 * 0.80, VISITS);
    let browses = count(Step::BrowseCategory) + count(Step::BrowseActor) + count(Step::BrowseTitle);
    check("category", count(Step::BrowseCategory), 1.0 / 3.0, browses);
    check("actor", count(Step::BrowseActor), 1.0 / 3.0, browses);
    assert!((browses as f64 / VISITS as f64 - 3.0).abs() < 0.05, "{browses}");
    check("reviews by actor", count(Step::ReviewsByActor), 0.5, {
        count(Step::ReviewsByActor) + count(Step::ReviewsByTitle)
    });
    assert_eq!(lines[0], 0);
    (1..=9).for_each(|number| check("lines", lines[number], 1.0 / 9.0, VISITS));
}

#[test]
fn answers_flow_into_later_steps() {
    let known = Behaviour { pct_newcustomers: 100, pct_newreviews: 100, ..BASE.behaviour };
    let mut user = visitor(Parameters { behaviour: known, ..BASE }, 0);
    let mut answered = BTreeSet::new();
    for _ in 0..20 {
        loop {
            let transaction = user.next_of(&Mix::Prescribed);
            let outcome = match &transaction {
                Transaction::NewCustomer { .. } => Outcome::wrote(77_777),
                Transaction::Prices { .. } => Outcome { net_cents: 4_321, ..Outcome::read(2) },
                other => DvdStore::imagined(other),
            };
            user.on_outcome(&transaction, Some(&outcome));
            answered.insert(transaction.step());
            match transaction {
                Transaction::NewReview { customer, .. } => assert_eq!(customer, 77_777),
                Transaction::Purchase { customer, net_cents, tax_cents: tax, .. } => {
                    assert_eq!((customer, net_cents, tax), (77_777, 4_321, tax_cents(4_321)));
                    break;
                }
                _ => {}
            }
        }
    }
    assert!(answered.contains(&Step::NewReview));
}

#[test]
fn refusals_repeat_and_losses_end_a_visit() {
    let behaviour = Behaviour { pct_newcustomers: 100, pct_newmember: 100, ..BASE.behaviour };
    let mut user = visitor(Parameters { behaviour, ..BASE }, 0);
    let mut names = BTreeSet::new();
    for _ in 0..30 {
        let transaction = user.next_of(&Mix::Prescribed);
        let Transaction::NewCustomer { username, .. } = &transaction else { panic!() };
        assert!(names.insert(username.clone()), "{username} again");
        user.on_outcome(&transaction, Some(&Outcome::REFUSED));
    }
    let transaction = user.next_of(&Mix::Prescribed);
    user.on_outcome(&transaction, Some(&Outcome::wrote(20_001)));
    for _ in 0..10 {
        let transaction = user.next_of(&Mix::Prescribed);
        assert_eq!(transaction.step(), Step::NewMember);
        user.on_outcome(&transaction, Some(&Outcome::REFUSED));
    }
    // A customer who was refused ten times shops all the same.
    let transaction = user.next_of(&Mix::Prescribed);
    assert!(!matches!(transaction.step(), Step::NewMember | Step::NewCustomer));
    user.on_outcome(&transaction, None);
    // A lost search is only a lost search; a lost registration ends the visit.
    assert_ne!(user.next_of(&Mix::Prescribed).step(), Step::NewCustomer);
    let mut user = visitor(Parameters { behaviour, ..BASE }, 1);
    let transaction = user.next_of(&Mix::Prescribed);
    user.on_outcome(&transaction, None);
    let next = user.next_of(&Mix::Prescribed);
    assert_eq!(next.step(), Step::NewCustomer);
    assert_ne!(next, transaction);
}

#[test]
fn the_old_flow_has_neither_members_nor_reviews() {
    let behaviour = Behaviour { ds2_mode: true, pct_newmember: 100, ..BASE.behaviour };
    let mut user = visitor(Parameters { behaviour, ..BASE }, 0);
    for _ in 0..100 {
        for transaction in visit(&mut user) {
            let step = transaction.step();
            assert!(
                matches!(
                    step,
                    Step::Login
                        | Step::NewCustomer
                        | Step::BrowseCategory
                        | Step::BrowseActor
                        | Step::BrowseTitle
                        | Step::Prices
                        | Step::Purchase
                ),
                "{step:?}"
            );
        }
    }
}

#[test]
fn weights_choose_steps_with_all_their_inputs() {
    let mix = Mix::Weighted(Weights::parse("purchase=3,rate_review=1", &SHAPE).unwrap());
    let mut user = visitor(BASE, 0);
    let mut purchases = 0;
    for _ in 0..4_000 {
        let transaction = user.next_of(&mix);
        match &transaction {
            Transaction::Purchase { customer, lines, net_cents, .. } => {
                assert!((1..=20_000).contains(customer));
                assert!((999..=3 * 9 * 2_999).contains(net_cents) && !lines.is_empty());
                purchases += 1;
            }
            Transaction::RateReview { customer, review, .. } => {
                assert!((1..=20_000).contains(customer) && (1..=200_000).contains(review));
            }
            other => panic!("{other:?}"),
        }
        user.on_outcome(&transaction, Some(&Outcome::REFUSED));
    }
    assert!((2_800..3_200).contains(&purchases), "{purchases}");
}

#[test]
fn think_time_is_uniform_around_its_mean() {
    let mut user = visitor(BASE, 0);
    let times: Vec<u64> = (0..20_000).map(|_| user.think_time(Step::Login).0).collect();
    let mean = times.iter().sum::<u64>() as f64 / times.len() as f64;
    assert!((mean / 1e9 - 1.0).abs() < 0.02, "{mean}");
    assert!(times.iter().all(|time| *time <= 2_000_000_000));
    assert!(times.iter().any(|time| *time > 1_990_000_000));
    assert_eq!(user.think_time(Step::Prices), Nanos::ZERO);
}

#[test]
fn everything_that_was_answered_is_booked() {
    let workload = DvdStore::new(BASE);
    let mut accounting = DvdStoreAccounting::default();
    let mut user = visitor(BASE, 0);
    let mut pieces = 0;
    for transaction in (0..50).flat_map(|_| visit(&mut user)) {
        workload.book(&mut accounting, &transaction, &DvdStore::imagined(&transaction));
        if let Transaction::Purchase { lines, .. } = &transaction {
            pieces += lines.iter().map(|line| u64::from(line.quantity)).sum::<u64>();
            workload.book(&mut accounting, &transaction, &Outcome::REFUSED);
            workload.book_unknown(&mut accounting, &transaction);
        }
    }
    assert_eq!(
        (accounting.acknowledged.orders, accounting.shortages, accounting.perhaps.orders),
        (50, 50, 50)
    );
    assert_eq!((accounting.acknowledged.pieces, accounting.perhaps.pieces), (pieces, pieces));
    assert_eq!(accounting.acknowledged.net_cents, 50 * 10_000);
    assert!(accounting.acknowledged.customers > 0 && accounting.perhaps.customers == 0);
}
