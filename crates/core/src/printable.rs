//! Text that others wrote, made safe to print: no control character of it reaches a terminal, a page or a file unescaped,
//! and a message that quotes it has a bounded length.
//!
//! What it deliberately does not do: quote for a format (CSV, HTML, JSON). Writers of a format do that.

use std::borrow::Cow;

/// The text with each control character replaced by a visible one. Line breaks and tabs stay.
///
/// Also replaced are the characters that change the direction of text: they make a line read as something else.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unprintable) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(visible).collect())
}

/// The printable text, cut after `characters_max` characters; what was cut is counted.
pub fn excerpt(text: &str, characters_max: usize) -> String {
    let printable = printable(text);
    let mut characters = printable.char_indices();
    let Some((end, _)) = characters.nth(characters_max) else {
        return printable.into_owned();
    };
    let cut = 1 + characters.count();
    format!("{}... ({cut} more characters)", &printable[..end])
}

/// Whether a terminal would act on the character instead of showing it.
pub fn is_unprintable(character: char) -> bool {
    let is_direction = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (character.is_control() && !matches!(character, '\n' | '\t')) || is_direction
}

/// What is shown in place of a character that is not printable.
fn visible(character: char) -> char {
    const PICTURES: u32 = 0x2400;
    match u32::from(character) {
        _ if !is_unprintable(character) => character,
        code @ 0..=0x1f => char::from_u32(PICTURES + code).unwrap_or(char::REPLACEMENT_CHARACTER),
        0x7f => '\u{2421}',
        _ => char::REPLACEMENT_CHARACTER,
    }
}

#[cfg(test)]
mod tests {
    use super::{excerpt, printable};
    use std::borrow::Cow;

    #[test]
    fn what_a_terminal_would_act_on_becomes_visible() {
        assert_eq!(printable("a\x1b[2J\x07\x7f\u{9b}31m\rb"), "a␛[2J␇␡\u{fffd}31m␍b");
        assert_eq!(printable("one\n\ttwo"), "one\n\ttwo");
        assert_eq!(printable("\u{202e}live"), "\u{fffd}live");
        assert!(matches!(printable("é, 漢字, 🙂"), Cow::Borrowed(_)));
    }

    #[test]
    fn an_excerpt_says_how_much_it_leaves_out() {
        assert_eq!(excerpt("äbc", 3), "äbc");
        assert_eq!(excerpt("äbcd", 3), "äbc... (1 more characters)");
        assert_eq!(excerpt(&"x".repeat(100_000), 10), "xxxxxxxxxx... (99990 more characters)");
    }
}
