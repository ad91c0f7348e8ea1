//! Text in URLs: percent-encoding, and which parts may be shown.

/// Percent-decoded; a percent sign that begins no code stands for itself.
///
/// # Errors
/// The result is not UTF-8.
pub(crate) fn decoded(text: &str) -> Result<String, ()> {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = text
            .get(at + 1..at + 3)
            .filter(|_| bytes[at] == b'%')
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code {
            Some(byte) => {
                plain.push(byte);
                at += 3;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(plain).map_err(|_| ())
}

/// The name of an option of a URL with this `query`, if an error may show it: where no `@` follows, nothing of it can belong to
/// a password.
pub(crate) fn quotable(name: &str, query: &str) -> Option<String> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let is_name = (1..=40).contains(&name.len()) && name.bytes().all(is_word);
    (is_name && !query.contains('@')).then(|| name.to_string())
}

#[cfg(test)]
mod tests {
    use super::{decoded, quotable};

    #[test]
    fn what_may_be_a_part_of_a_password_is_not_shown() {
        assert_eq!(quotable("ssl-mood", "ssl-mood=1&x=2"), Some("ssl-mood".to_string()));
        assert_eq!(quotable("word", "word=1@h/db"), None);
        assert_eq!(quotable("a b", "a b=1"), None);
    }

    #[test]
    fn codes_become_what_they_stand_for() {
        assert_eq!(decoded("a%20b%2Fc%"), Ok("a b/c%".to_string()));
        assert_eq!(decoded("%zz%c3%a4"), Ok("%zzä".to_string()));
        assert_eq!(decoded("%ff"), Err(()));
    }
}
