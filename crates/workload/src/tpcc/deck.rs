//! The deck of cards that fixes the mix of transactions (clause 5.2.4.2).
//!
//! Each terminal plays a deck of 23 cards in random order and shuffles it again when it is used up. The
//! mix is therefore exact over every full deck: 10 New-Order, 10 Payment, and one each of
//! Order-Status, Delivery and Stock-Level.

use rand_pcg::Pcg64;

use super::TransactionType;
use crate::draw::shuffle;

/// Cards of one deck.
pub const CARDS: usize = 23;

/// Cards per type, by [`TransactionType::index`].
pub const CARDS_PER_TYPE: [usize; 5] = [10, 10, 1, 1, 1];

/// A deck in random order.
pub(crate) fn shuffled(random: &mut Pcg64) -> [TransactionType; CARDS] {
    let mut deck = sorted();
    shuffle(random, &mut deck);
    deck
}

const fn sorted() -> [TransactionType; CARDS] {
    let mut deck = [TransactionType::NewOrder; CARDS];
    let mut card = 0;
    let mut kind = 0;
    while kind < CARDS_PER_TYPE.len() {
        let end = card + CARDS_PER_TYPE[kind];
        while card < end {
            deck[card] = TransactionType::ALL[kind];
            card += 1;
        }
        kind += 1;
    }
    assert!(card == CARDS, "the cards per type add up to one deck");
    deck
}
