//! Bytes as text.

/// In hexadecimal.
pub(super) fn encode(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// What [`encode`] wrote; `None` when it is something else.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) {
        return None;
    }
    let value = |digit: &u8| char::from(*digit).to_digit(16).and_then(|v| u8::try_from(v).ok());
    let pairs = text.as_bytes().chunks_exact(2);
    pairs.map(|pair| Some(value(&pair[0])? << 4 | value(&pair[1])?)).collect()
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn bytes_survive_and_nonsense_is_refused() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&bytes)), Some(bytes));
        assert_eq!(decode("0"), None);
        assert_eq!(decode("0g"), None);
        assert_eq!(decode("é"), None);
    }
}
