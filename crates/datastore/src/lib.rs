//! Where volumes live: a path, or an emulated device exported as a block device.
