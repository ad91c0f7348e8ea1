//! Closed sets of words: enums whose values are written in files, options and pages.
//!
//! [`words!`](crate::words!) declares the enum and the spelling of each value once; printing, parsing and the list of
//! values follow from it. What a value means for the program does not belong here.

use std::fmt;

/// One of a closed set of words.
pub trait Words: Copy + 'static {
    /// What the words are, for messages: `order`.
    const NAME: &'static str;

    /// All of them, in the order of their declaration.
    fn all() -> &'static [Self];

    /// The word used in files and pages.
    fn word(self) -> &'static str;

    /// The value that `text` stands for; other accepted spellings included.
    fn from_word(text: &str) -> Option<Self> {
        Self::all().iter().copied().find(|value| value.word() == text)
    }
}

/// A text that is none of the words of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownWord {
    text: String,
    name: &'static str,
    words: Vec<&'static str>,
}

impl UnknownWord {
    /// `text` is no word of `W`.
    pub fn of<W: Words>(text: &str) -> UnknownWord {
        let words = W::all().iter().map(|value| value.word()).collect();
        UnknownWord { text: text.to_string(), name: W::NAME, words }
    }
}

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a known {}; use ", self.text, self.name)?;
        let last = self.words.len().saturating_sub(1);
        for (index, word) in self.words.iter().enumerate() {
            let separator = match index {
                0 => "",
                index if index == last => " or ",
                _ => ", ",
            };
            write!(f, "{separator}`{word}`")?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownWord {}

/// Declares an enum with the word of each value; further spellings that are accepted follow after `|`.
///
/// ```text
/// words! {
///     /// How runs are interleaved.
///     pub enum Order: "order" {
///         /// A B, B A.
///         Abba = "abba" | "reversing",
///         /// A B, A B.
///         Rotating = "rotating",
///     }
/// }
/// ```
#[macro_export]
macro_rules! words {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident: $noun:literal {
            $($(#[$doc:meta])* $value:ident = $word:literal $(| $other:literal)*),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name {
            $($(#[$doc])* $value),+
        }

        impl $name {
            /// All values, in the order of their declaration.
            $vis const ALL: [$name; [$($word),+].len()] = [$($name::$value),+];

            /// The word used in files and pages.
            $vis const fn as_str(self) -> &'static str {
                match self {
                    $($name::$value => $word),+
                }
            }

            /// The value that `text` stands for; other accepted spellings included.
            $vis fn from_word(text: &str) -> Option<$name> {
                match text {
                    $($word $(| $other)* => Some($name::$value),)+
                    _ => None,
                }
            }
        }

        impl $crate::Words for $name {
            const NAME: &'static str = $noun;

            fn all() -> &'static [$name] {
                &$name::ALL
            }

            fn word(self) -> &'static str {
                self.as_str()
            }

            fn from_word(text: &str) -> Option<$name> {
                $name::from_word(text)
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::words::UnknownWord;

            fn from_str(text: &str) -> Result<$name, $crate::words::UnknownWord> {
                $name::from_word(text)
                    .ok_or_else(|| $crate::words::UnknownWord::of::<$name>(text))
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::shared::{CallMode, Durability};

    crate::words! {
        /// That of the macro's description.
        enum Order: "order" {
            /// A B, B A.
            Abba = "abba" | "reversing",
            /// A B, A B.
            Rotating = "rotating",
        }
    }

    #[test]
    fn the_example_is_as_described() {
        assert_eq!("reversing".parse(), Ok(Order::Abba));
        assert_eq!(Order::ALL.map(Order::as_str), ["abba", "rotating"]);
    }

    #[test]
    fn what_is_printed_can_be_parsed() {
        for durability in Durability::ALL {
            assert_eq!(durability.to_string().parse(), Ok(durability));
        }
        assert_eq!(CallMode::from_word("procedure"), None);
        let error = "procedure".parse::<CallMode>().expect_err("not a word");
        let text = "`procedure` is not a known mode; use `procedures` or `statements`";
        assert_eq!(error.to_string(), text);
    }
}
