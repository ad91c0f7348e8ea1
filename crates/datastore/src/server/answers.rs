//! How an answer finds its way to whoever asked: the kernel's FUSE, an NBD client, or another request of which this one is a part.

use std::ops::Range;

use rustix::io::Errno;

use super::fuse_protocol::written;
use super::reply::{Client, Content, Reply};
use super::service::Service;

impl Service {
    /// Sends an answer on its way.
    pub(super) fn send(&mut self, reply: Reply) {
        let client = reply.client;
        match reply.content {
            Content::Data { buffer, length } => {
                self.send_pooled(client, buffer.into_vec(), 0..length);
            }
            Content::FromCluster { buffer, from, length } => {
                self.send_pooled(client, buffer, from..from + length);
            }
            Content::Written { length } => self.send_written(client, length),
            Content::Durable { volume, offset, length } => {
                if let Ok(data) = self.data(volume) {
                    data.persist(offset, u64::from(length));
                }
                self.send_written(client, length);
            }
            Content::Flushed { volume, generation } => {
                // Before the answer: once the client has it, a power cut must not take anything.
                if let (Some(generation), Ok(data)) = (generation, self.data(volume)) {
                    data.flush_completes(generation);
                }
                self.send_done(client);
            }
            Content::Done => self.send_done(client),
        }
    }

    /// Sends data that is in a buffer of the pool, which has the buffer back when the data has left.
    fn send_pooled(&mut self, client: Client, buffer: Vec<u8>, data: Range<usize>) {
        self.send_data(client, &buffer[data]);
        self.give_back(buffer);
    }

    pub(super) fn send_data(&mut self, client: Client, data: &[u8]) {
        match client {
            Client::Fuse { unique } => self.fuse_answer(unique, data),
            Client::Nbd { .. } => self.nbd_data(client, data),
            Client::Joint { joint } => self.joint_done(joint, Ok(())),
        }
    }

    fn send_written(&mut self, client: Client, length: u32) {
        match client {
            Client::Fuse { unique } => self.fuse_answer(unique, &written(length)),
            Client::Nbd { .. } => self.nbd_done(client),
            Client::Joint { joint } => self.joint_done(joint, Ok(())),
        }
    }

    pub(super) fn send_done(&mut self, client: Client) {
        match client {
            Client::Fuse { unique } => self.fuse_answer(unique, &[]),
            Client::Nbd { .. } => self.nbd_done(client),
            Client::Joint { joint } => self.joint_done(joint, Ok(())),
        }
    }

    /// Answers with an error.
    pub(super) fn refuse(&mut self, client: Client, errno: Errno) {
        match client {
            Client::Fuse { unique } => self.fuse_refuse(unique, errno),
            Client::Nbd { .. } => self.nbd_refuse(client, errno),
            Client::Joint { joint } => self.joint_done(joint, Err(errno)),
        }
    }

    /// Answers with an I/O error.
    pub(super) fn fail(&mut self, reply: Reply) {
        self.refuse(reply.client, Errno::IO);
        match reply.content {
            Content::Data { buffer, .. } => self.buffers.give(buffer),
            Content::FromCluster { buffer, .. } => self.give_back(buffer),
            _ => {}
        }
    }
}
