//! The identity of a job: distinguishes it, or its population, from any other.

use sha2::{Digest, Sha256};

/// SHA-256 over texts that say everything results depend on, each with its length; in hexadecimal.
pub fn identity_of(texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::identity_of;

    #[test]
    fn borders_between_texts_count() {
        assert_eq!(identity_of(&["ab", "c"]).len(), 64);
        assert_ne!(identity_of(&["ab", "c"]), identity_of(&["a", "bc"]));
        assert_eq!(identity_of(&["ab", "c"]), identity_of(&["ab", "c"]));
    }
}
