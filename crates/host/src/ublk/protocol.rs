//! What the control device of ublk is told, byte by byte. Pure.
//!
//! ```text
//! command (32 bytes of an io_uring command):
//!   0 device:u32  4 queue:u16  6 length:u16  8 address:u64  16 data:u64  24 path-length:u16, reserved
//! device information (64 bytes):
//!   0 queues:u16  2 depth:u16  4 state:u16  8 io-buffer:u32  12 device:u32  16 pid:i32  24 flags:u64  32 private:u64
//! parameters (60 bytes): 0 length:u32  4 types:u32
//!   8 attributes:u32  12 logical, physical, optimal, minimal sizes as shifts:u8 each
//!   16 max-sectors:u32  20 chunk:u32  24 sectors:u64  32 boundary:u64
//!   40 discard alignment:u32  44 granularity:u32  48 max-discard:u32  52 max-zeroes:u32  56 segments:u16
//! ```

/// Bytes of a command.
pub(super) const COMMAND_BYTES: usize = 32;
/// Bytes of the description of a device.
pub(super) const INFO_BYTES: usize = 64;
/// Bytes of the parameters that are set.
pub(super) const PARAMETER_BYTES: usize = 60;

/// Commands carry their direction and size, as ioctls do.
const FLAG_IOCTL_ENCODED: u64 = 1 << 6;
const PARAMETERS_BASIC: u32 = 1 << 0;
const PARAMETERS_DISCARD: u32 = 1 << 1;
const ATTRIBUTE_VOLATILE_CACHE: u32 = 1 << 2;
const ATTRIBUTE_FUA: u32 = 1 << 3;
/// A command that concerns no queue.
const NO_QUEUE: u16 = u16::MAX;
const SECTOR_BYTES: u64 = 512;

/// What is asked of the control device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Describe,
    Add,
    Delete,
    Start,
    Stop,
    SetParameters,
}

impl Operation {
    /// The code of the io_uring command: `_IOR` or `_IOWR` of `'u'`, the number, and the command's size.
    pub(super) const fn code(self) -> u32 {
        const READ: u32 = 2 << 30;
        const READ_WRITE: u32 = 3 << 30;
        let (direction, number) = match self {
            Operation::Describe => (READ, 0x02),
            Operation::Add => (READ_WRITE, 0x04),
            Operation::Delete => (READ_WRITE, 0x05),
            Operation::Start => (READ_WRITE, 0x06),
            Operation::Stop => (READ_WRITE, 0x07),
            Operation::SetParameters => (READ_WRITE, 0x08),
        };
        direction | (COMMAND_BYTES as u32) << 16 | (b'u' as u32) << 8 | number
    }
}

/// A command; `address` and `length` are of the buffer that it brings or fills.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ControlCommand {
    pub device: u32,
    pub address: u64,
    pub length: u16,
    pub data: u64,
}

impl ControlCommand {
    /// As the 80 bytes of a large io_uring command have it.
    pub(super) fn encode(&self) -> [u8; 80] {
        let mut bytes = [0; 80];
        put(&mut bytes, 0, &self.device.to_ne_bytes());
        put(&mut bytes, 4, &NO_QUEUE.to_ne_bytes());
        put(&mut bytes, 6, &self.length.to_ne_bytes());
        put(&mut bytes, 8, &self.address.to_ne_bytes());
        put(&mut bytes, 16, &self.data.to_ne_bytes());
        bytes
    }
}

/// A device as it is asked for, and as the driver describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeviceInfo {
    pub device: u32,
    pub queues: u16,
    pub depth: u16,
    pub io_buffer_bytes: u32,
    /// Kept by the driver for us: tells our device from another one that got its number.
    pub token: u64,
}

impl DeviceInfo {
    pub(super) fn encode(&self) -> [u8; INFO_BYTES] {
        let mut bytes = [0; INFO_BYTES];
        put(&mut bytes, 0, &self.queues.to_ne_bytes());
        put(&mut bytes, 2, &self.depth.to_ne_bytes());
        put(&mut bytes, 8, &self.io_buffer_bytes.to_ne_bytes());
        put(&mut bytes, 12, &self.device.to_ne_bytes());
        put(&mut bytes, 24, &FLAG_IOCTL_ENCODED.to_ne_bytes());
        put(&mut bytes, 32, &self.token.to_ne_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8; INFO_BYTES]) -> DeviceInfo {
        DeviceInfo {
            device: u32::from_ne_bytes(at(bytes, 12)),
            queues: u16::from_ne_bytes(at(bytes, 0)),
            depth: u16::from_ne_bytes(at(bytes, 2)),
            io_buffer_bytes: u32::from_ne_bytes(at(bytes, 8)),
            token: u64::from_ne_bytes(at(bytes, 32)),
        }
    }
}

/// What the block layer is told of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parameters {
    pub capacity_bytes: u64,
    /// A power of two.
    pub sector_bytes: u32,
    pub request_bytes_max: u32,
}

impl Parameters {
    /// A device with a volatile cache, which flushes and honours FUA; whole sectors can be discarded.
    pub(super) fn encode(&self) -> [u8; PARAMETER_BYTES] {
        let shift = self.sector_bytes.trailing_zeros() as u8;
        let most_sectors = u32::MAX / SECTOR_BYTES as u32;
        let mut bytes = [0; PARAMETER_BYTES];
        put(&mut bytes, 0, &(PARAMETER_BYTES as u32).to_ne_bytes());
        put(&mut bytes, 4, &(PARAMETERS_BASIC | PARAMETERS_DISCARD).to_ne_bytes());
        put(&mut bytes, 8, &(ATTRIBUTE_VOLATILE_CACHE | ATTRIBUTE_FUA).to_ne_bytes());
        put(&mut bytes, 12, &[shift; 4]);
        let request_sectors = self.request_bytes_max / SECTOR_BYTES as u32;
        put(&mut bytes, 16, &request_sectors.to_ne_bytes());
        put(&mut bytes, 24, &(self.capacity_bytes / SECTOR_BYTES).to_ne_bytes());
        put(&mut bytes, 44, &self.sector_bytes.to_ne_bytes());
        put(&mut bytes, 48, &most_sectors.to_ne_bytes());
        put(&mut bytes, 52, &most_sectors.to_ne_bytes());
        put(&mut bytes, 56, &1u16.to_ne_bytes());
        bytes
    }
}

fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    bytes[at..at + field.len()].copy_from_slice(field);
}

fn at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..].first_chunk().copied().expect("the field lies within the structure")
}

#[cfg(test)]
mod tests {
    use super::{
        COMMAND_BYTES, ControlCommand, DeviceInfo, INFO_BYTES, Operation, PARAMETER_BYTES,
        Parameters,
    };
    use crate::{find_program, run_program, skip};
    use std::path::Path;

    #[test]
    fn codes_are_those_of_the_interface() {
        // _IOR('u', 0x02, 32 bytes), _IOWR('u', 0x04, 32 bytes), ...
        assert_eq!(Operation::Describe.code(), 0x8020_7502);
        assert_eq!(Operation::Add.code(), 0xc020_7504);
        assert_eq!(Operation::Delete.code(), 0xc020_7505);
        assert_eq!(Operation::Start.code(), 0xc020_7506);
        assert_eq!(Operation::Stop.code(), 0xc020_7507);
        assert_eq!(Operation::SetParameters.code(), 0xc020_7508);
    }

    #[test]
    fn a_description_survives() {
        let info = DeviceInfo {
            device: 3,
            queues: 1,
            depth: 128,
            io_buffer_bytes: 1 << 20,
            token: 0x0123_4567_89ab_cdef,
        };
        assert_eq!(DeviceInfo::decode(&info.encode()), info);
    }

    /// Prints the structures as C lays them out, filled with what the same values are here.
    const PROGRAM: &str = r#"
#include <stdio.h>
#include <string.h>
#include <linux/ublk_cmd.h>
static void show(const void *p, unsigned n) {
  const unsigned char *b = p;
  for (unsigned i = 0; i < n; i++) printf("%02x", b[i]);
  printf("\n");
}
int main(void) {
  struct ublksrv_ctrl_cmd c; memset(&c, 0, sizeof c);
  c.dev_id = 7; c.queue_id = (__u16)-1; c.len = 64; c.addr = 0x1122334455667788ULL; c.data[0] = 4242;
  show(&c, sizeof c);
  struct ublksrv_ctrl_dev_info i; memset(&i, 0, sizeof i);
  i.nr_hw_queues = 1; i.queue_depth = 128; i.max_io_buf_bytes = 1 << 20; i.dev_id = 7;
  i.flags = 1ULL << 6; i.ublksrv_flags = 0x0123456789abcdefULL;
  show(&i, sizeof i);
  struct ublk_params p; memset(&p, 0, sizeof p);
  p.len = 60; p.types = UBLK_PARAM_TYPE_BASIC | UBLK_PARAM_TYPE_DISCARD;
  p.basic.attrs = UBLK_ATTR_VOLATILE_CACHE | UBLK_ATTR_FUA;
  p.basic.logical_bs_shift = p.basic.physical_bs_shift = p.basic.io_opt_shift = p.basic.io_min_shift = 12;
  p.basic.max_sectors = 2048; p.basic.dev_sectors = 16384;
  p.discard.discard_granularity = 4096;
  p.discard.max_discard_sectors = p.discard.max_write_zeroes_sectors = 0xffffffffu / 512;
  p.discard.max_discard_segments = 1;
  show(&p, 60);
  return 0;
}
"#;

    #[test]
    fn structures_are_laid_out_as_the_kernels_header_says() {
        let header = Path::new("/usr/include/linux/ublk_cmd.h");
        let Some(compiler) = find_program("cc") else { skip!("needs a C compiler") };
        if !header.exists() {
            skip!("needs the kernel's header linux/ublk_cmd.h");
        }
        let folder = tempfile::tempdir().unwrap();
        let (source, program) = (folder.path().join("layout.c"), folder.path().join("layout"));
        std::fs::write(&source, PROGRAM).unwrap();
        let arguments = ["-o".as_ref(), program.as_os_str(), source.as_os_str()];
        run_program(compiler, &arguments, None).unwrap();
        let printed = run_program::<&str>(&program, &[], None).unwrap();
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let command =
            ControlCommand { device: 7, address: 0x1122_3344_5566_7788, length: 64, data: 4242 };
        let info = DeviceInfo {
            device: 7,
            queues: 1,
            depth: 128,
            io_buffer_bytes: 1 << 20,
            token: 0x0123_4567_89ab_cdef,
        };
        let parameters =
            Parameters { capacity_bytes: 8 << 20, sector_bytes: 4096, request_bytes_max: 1 << 20 };
        let expected = [
            hex(&command.encode()[..COMMAND_BYTES]),
            hex(&info.encode()[..INFO_BYTES]),
            hex(&parameters.encode()[..PARAMETER_BYTES]),
        ];
        assert_eq!(printed.lines().collect::<Vec<_>>(), expected);
    }
}
