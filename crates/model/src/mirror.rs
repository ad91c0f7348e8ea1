//! Several equal drives that hold the same bytes: what a RAID-1 presents.
//!
//! Only the profile is made here; [`crate::Store`] keeps the copies. Unlike a stripe set a mirror is not approximated:
//! each drive is modelled, so that writes wait for the slowest of them and one of them may be lost.

use crate::profile::DeviceProfile;

/// The device that so many mirrored drives of this profile present; none for numbers outside 1 to
/// [`DeviceProfile::COPIES_MAX`], and for a profile that is a mirror already.
pub fn mirror(member: &DeviceProfile, members: u32) -> Option<DeviceProfile> {
    if members == 1 {
        return Some(member.clone());
    }
    if !(1..=DeviceProfile::COPIES_MAX).contains(&members) || member.copies != 1 {
        return None;
    }
    let description = format!("{members} x {}, mirrored", member.description);
    Some(DeviceProfile { description, copies: members, ..member.clone() })
}

#[cfg(test)]
mod tests {
    use super::mirror;
    use crate::builtin;

    #[test]
    fn a_mirror_holds_as_much_as_one_drive() {
        let one = builtin::find("flashtec-nv1616").expect("built in");
        let pair = mirror(&one, 2).expect("two");
        assert_eq!((pair.copies, pair.capacity, pair.problems()), (2, one.capacity, vec![]));
        assert_eq!(mirror(&one, 1), Some(one.clone()));
        assert!(mirror(&one, 0).is_none() && mirror(&one, 5).is_none());
        assert!(mirror(&pair, 2).is_none());
    }
}
