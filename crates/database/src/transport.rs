//! The socket of a connection whose protocol is implemented here: bytes in, bytes out, one request at a time.
//!
//! A virtual user has one request in flight, so nothing is queued and no other task is woken: a request is one `send`,
//! an answer usually one `recv`. It knows no protocol and does not reconnect; it encrypts on request.

use std::future::poll_fn;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use crate::tls::{Material, TlsFailure, handshake};

/// Most answers fit; longer ones make it grow.
const INPUT_BYTES: usize = 16 << 10;

/// A connected socket.
#[derive(Debug)]
pub(crate) enum Socket {
    /// Of the network, without Nagle's algorithm.
    Tcp(TcpStream),
    /// Of this host.
    Unix(UnixStream),
    /// Of the network, encrypted.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Socket {
    /// Connects to a host within `limit`.
    pub(crate) async fn tcp(host: &str, port: u16, limit: Duration) -> io::Result<Socket> {
        let stream = timeout(limit, TcpStream::connect((host, port))).await??;
        stream.set_nodelay(true)?;
        Ok(Socket::Tcp(stream))
    }

    /// Connects to a socket's file within `limit`.
    pub(crate) async fn unix(path: &Path, limit: Duration) -> io::Result<Socket> {
        Ok(Socket::Unix(timeout(limit, UnixStream::connect(path)).await??))
    }

    /// The same connection with TLS. Nothing may have been received that was not looked at.
    pub(crate) async fn encrypt(
        self,
        material: &Material,
        host: &str,
    ) -> Result<Socket, TlsFailure> {
        match self {
            Socket::Tcp(stream) => {
                Ok(Socket::Tls(Box::new(handshake(material, host, stream).await?)))
            }
            Socket::Unix(_) | Socket::Tls(_) => Err(TlsFailure::Refused(
                "only plain connections with a host are encrypted".to_string(),
            )),
        }
    }

    /// Whether it is.
    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(self, Socket::Tls(_))
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Socket::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
            Socket::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Socket::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
            Socket::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Socket::Unix(stream) => Pin::new(stream).poll_flush(context),
            Socket::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Socket::Unix(stream) => Pin::new(stream).poll_shutdown(context),
            Socket::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

/// A socket and what was received through it and not looked at yet.
#[derive(Debug)]
pub(crate) struct Transport<S> {
    stream: S,
    input: Vec<u8>,
    /// What is in `input`: from here
    begin: usize,
    /// to here.
    end: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Transport<S> {
    /// Nothing was received yet.
    pub(crate) fn new(stream: S) -> Transport<S> {
        Transport { stream, input: vec![0; INPUT_BYTES], begin: 0, end: 0 }
    }

    /// The stream alone; what was received is forgotten.
    pub(crate) fn into_stream(self) -> S {
        self.stream
    }

    /// What was received and not consumed.
    pub(crate) fn received(&self) -> &[u8] {
        &self.input[self.begin..self.end]
    }

    /// The first `count` received bytes were looked at.
    pub(crate) fn consume(&mut self, count: usize) {
        self.begin += count;
        debug_assert!(self.begin <= self.end, "no more than was received");
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
        }
    }

    /// Sends all of `bytes`.
    pub(crate) async fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let stream = &mut self.stream;
        while !bytes.is_empty() {
            let sent = poll_fn(|context| Pin::new(&mut *stream).poll_write(context, bytes)).await?;
            if sent == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            bytes = &bytes[sent..];
        }
        // A socket has nothing to flush, a stream that encrypts has.
        poll_fn(|context| Pin::new(&mut *stream).poll_flush(context)).await
    }

    /// Sends `bytes` if that needs no waiting: the last message before the connection is closed, which has no
    /// answer.
    pub(crate) fn send_at_once(&mut self, bytes: &[u8]) {
        let context = &mut Context::from_waker(Waker::noop());
        // The connection is closed next, so failures are ignored.
        let _unheard = Pin::new(&mut self.stream).poll_write(context, bytes);
        let _unheard = Pin::new(&mut self.stream).poll_flush(context);
    }

    /// Waits for more bytes. The end of the connection is an error, because callers expect an answer.
    pub(crate) async fn receive(&mut self) -> io::Result<()> {
        poll_fn(|context| self.poll_receive(context)).await
    }

    /// Takes what came unasked, without waiting. An idle connection on which nothing came costs no system call.
    pub(crate) fn look(&mut self) -> io::Result<()> {
        match self.poll_receive(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => result,
            Poll::Pending => Ok(()),
        }
    }

    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.end == self.input.len() {
            if self.begin > 0 {
                self.input.copy_within(self.begin..self.end, 0);
                (self.begin, self.end) = (0, self.end - self.begin);
            } else {
                self.input.resize(self.input.len() * 2, 0);
            }
        }
        let mut buffer = ReadBuf::new(&mut self.input[self.end..]);
        std::task::ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
        let count = buffer.filled().len();
        self.end += count;
        Poll::Ready(match count {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::{INPUT_BYTES, Transport};

    fn on_a_runtime(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
    }

    #[test]
    fn bytes_come_in_order_however_they_are_cut_and_the_buffer_grows() {
        on_a_runtime(async {
            let (near, mut far) = duplex(1 << 20);
            let mut transport = Transport::new(near);
            let sent: Vec<u8> = (0..3 * INPUT_BYTES).map(|index| (index * 7) as u8).collect();
            let mut got = Vec::new();
            for (step, piece) in sent.chunks(999).enumerate() {
                far.write_all(piece).await.unwrap();
                transport.receive().await.unwrap();
                // Every third time only a part is taken: the rest must be there later.
                let received = transport.received();
                let count = if step % 3 == 0 { received.len() / 2 } else { received.len() };
                got.extend_from_slice(&received[..count]);
                transport.consume(count);
            }
            got.extend_from_slice(transport.received());
            assert_eq!(got, sent);
            // All of it at once is more than the buffer held at first.
            transport.consume(transport.received().len());
            far.write_all(&sent).await.unwrap();
            while transport.received().len() < sent.len() {
                transport.receive().await.unwrap();
            }
            assert_eq!(transport.received(), sent);
        });
    }

    #[test]
    fn sends_everything_through_a_narrow_pipe() {
        on_a_runtime(async {
            let (near, mut far) = duplex(10);
            let mut transport = Transport::new(near);
            let sent = vec![7; 1000];
            let mut got = vec![0; 1000];
            let (a, b) = tokio::join!(transport.send(&sent), far.read_exact(&mut got));
            a.unwrap();
            b.unwrap();
            assert_eq!(got, sent);
        });
    }

    #[test]
    fn last_words_are_sent_without_waiting() {
        on_a_runtime(async {
            let (near, mut far) = duplex(4);
            let mut transport = Transport::new(near);
            transport.send_at_once(b"bye");
            // No room for all of it: what there is room for, and no wait.
            transport.send_at_once(b"bye");
            drop(transport);
            let mut got = Vec::new();
            far.read_to_end(&mut got).await.unwrap();
            assert_eq!(got, b"byeb");
        });
    }

    #[test]
    fn looking_does_not_wait_and_notices_the_end() {
        on_a_runtime(async {
            let (near, mut far) = duplex(100);
            let mut transport = Transport::new(near);
            transport.look().unwrap();
            assert!(transport.received().is_empty());
            far.write_all(b"bye").await.unwrap();
            transport.look().unwrap();
            assert_eq!(transport.received(), b"bye");
            drop(far);
            assert_eq!(transport.look().unwrap_err().kind(), ErrorKind::UnexpectedEof);
        });
    }
}
