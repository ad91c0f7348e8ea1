//! Percent-encoding in URLs.

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

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn codes_become_what_they_stand_for() {
        assert_eq!(decoded("a%20b%2Fc%"), Ok("a b/c%".to_string()));
        assert_eq!(decoded("%zz%c3%a4"), Ok("%zzä".to_string()));
        assert_eq!(decoded("%ff"), Err(()));
    }
}
