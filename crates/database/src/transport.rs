//! The socket of a session that speaks its engine's protocol itself: bytes in, bytes out, one request at a time.
//!
//! A virtual user has one request in flight, so nothing is queued and nothing wakes another task: a request is one
//! `send`, an answer usually one `recv`. It knows no protocol and does not reconnect; it encrypts when it is told to.
//!
//! Of an answer that comes in several packets of the network the kernel acknowledges the receipt by a packet of its own, as
//! soon as it is read and nothing is left, which costs as much as half of a request. [`Transport::peek`] reads such an answer
//! and leaves it in the socket until the next request is sent, which acknowledges it on its way.

use std::future::poll_fn;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rustix::net::{RecvFlags, recv};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use crate::tls::{Material, TlsFailure, handshake};

/// Most answers fit; longer ones make it grow.
const INPUT_BYTES: usize = 16 << 10;
/// Most of what is left fits; more is taken piece by piece.
const LEFT_BYTES: usize = 2 << 10;

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

/// What a transport is over.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin {
    /// Like [`AsyncRead::poll_read`], but what was read is left to be read again, where that can be done and is of use.
    fn poll_peek(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<Peeked>>;

    /// Waits for what comes behind bytes that were left, or for the end.
    fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Reads bytes that were left, and no more than `buffer` has room for.
    fn take_left(&mut self, buffer: &mut [u8]) -> io::Result<usize>;
}

/// Where bytes are that [`Stream::poll_peek`] read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peeked {
    /// Here and in the stream.
    Left,
    /// Here.
    Taken,
}

impl Stream for Socket {
    fn poll_peek(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<Peeked>> {
        match self {
            Socket::Tcp(stream) => {
                std::task::ready!(poll_peek(stream, context, buffer))?;
                Poll::Ready(Ok(Peeked::Left))
            }
            // No acknowledgement is sent, or not for what is read here.
            Socket::Unix(_) | Socket::Tls(_) => {
                std::task::ready!(Pin::new(self).poll_read(context, buffer))?;
                Poll::Ready(Ok(Peeked::Taken))
            }
        }
    }

    fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Tcp(stream) => stream.poll_read_ready(context),
            // Nothing is ever left in them.
            Socket::Unix(_) | Socket::Tls(_) => Poll::Ready(Ok(())),
        }
    }

    fn take_left(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => Ok(rustix::io::read(stream, buffer)?),
            Socket::Unix(_) | Socket::Tls(_) => Ok(0),
        }
    }
}

fn poll_peek(
    stream: &TcpStream,
    context: &mut Context<'_>,
    buffer: &mut ReadBuf<'_>,
) -> Poll<io::Result<()>> {
    loop {
        std::task::ready!(stream.poll_read_ready(context))?;
        let mut seen = None;
        let tried = stream.try_io(Interest::READABLE, || {
            let room = buffer.initialize_unfilled();
            let (count, _) = recv(stream, &mut *room, RecvFlags::PEEK)?;
            seen = Some(count);
            match count {
                // There is no more: the next look shall wait for the kernel's word, not ask in vain.
                1.. if count < room.len() => Err(io::ErrorKind::WouldBlock.into()),
                _ => Ok(()),
            }
        });
        match (tried, seen) {
            (_, Some(count)) => {
                buffer.advance(count);
                return Poll::Ready(Ok(()));
            }
            (Err(error), None) if error.kind() != io::ErrorKind::WouldBlock => {
                return Poll::Ready(Err(error));
            }
            (_, None) => {}
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
    /// So many bytes that were received last are still in the stream.
    left: usize,
}

impl<S: Stream> Transport<S> {
    /// Nothing was received yet.
    pub(crate) fn new(stream: S) -> Transport<S> {
        Transport { stream, input: vec![0; INPUT_BYTES], begin: 0, end: 0, left: 0 }
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
        poll_fn(|context| Pin::new(&mut *stream).poll_flush(context)).await?;
        self.take_left()
    }

    /// Sends `bytes` if that needs no waiting: the last words before the connection is closed, which nobody answers.
    pub(crate) fn send_at_once(&mut self, bytes: &[u8]) {
        let context = &mut Context::from_waker(Waker::noop());
        // Whoever closes a connection does not care whether the other side hears of it. What is left in it would make the
        // kernel break it off instead.
        let _unheard = Pin::new(&mut self.stream).poll_write(context, bytes);
        let _unheard = Pin::new(&mut self.stream).poll_flush(context);
        let _unread = self.take_left();
    }

    /// Waits for more bytes. The other side's end is an error: nobody calls this who does not expect an answer.
    pub(crate) async fn receive(&mut self) -> io::Result<()> {
        poll_fn(|context| self.poll_receive(context, How::Take)).await
    }

    /// Like [`Transport::receive`], for an answer that comes in several packets and is followed by a request soon.
    pub(crate) async fn peek(&mut self) -> io::Result<()> {
        poll_fn(|context| self.poll_receive(context, How::Peek)).await
    }

    /// Takes what came unasked, without waiting. An idle connection on which nothing came costs no system call.
    pub(crate) fn look(&mut self) -> io::Result<()> {
        match self.poll_receive(&mut Context::from_waker(Waker::noop()), How::Take) {
            Poll::Ready(result) => result,
            Poll::Pending => Ok(()),
        }
    }

    fn poll_receive(&mut self, context: &mut Context<'_>, how: How) -> Poll<io::Result<()>> {
        if self.end == self.input.len() {
            if self.begin > 0 {
                self.input.copy_within(self.begin..self.end, 0);
                (self.begin, self.end) = (0, self.end - self.begin);
            } else {
                self.input.resize(self.input.len() * 2, 0);
            }
        }
        if self.left > 0 {
            std::task::ready!(self.stream.poll_more(context))?;
            self.take_left()?;
        }
        let mut buffer = ReadBuf::new(&mut self.input[self.end..]);
        let peeked = match how {
            How::Take => {
                std::task::ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
                Peeked::Taken
            }
            How::Peek => std::task::ready!(self.stream.poll_peek(context, &mut buffer))?,
        };
        let count = buffer.filled().len();
        self.end += count;
        self.left = if peeked == Peeked::Left { count } else { 0 };
        Poll::Ready(match count {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        })
    }

    /// Takes what was left in the stream and is here already.
    fn take_left(&mut self) -> io::Result<()> {
        let mut known = [0; LEFT_BYTES];
        while self.left > 0 {
            let room = self.left.min(known.len());
            match self.stream.take_left(&mut known[..room])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.left -= count,
            }
        }
        Ok(())
    }
}

/// How bytes are received.
#[derive(Clone, Copy)]
enum How {
    Take,
    Peek,
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use std::io;
    use std::task::{Context, Poll};

    use rustix::net::{RecvFlags, recv};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadBuf, duplex};
    use tokio::net::{TcpListener, TcpStream};

    use super::{INPUT_BYTES, Peeked, Socket, Stream, Transport};

    impl Stream for DuplexStream {
        fn poll_peek(
            &mut self,
            _: &mut Context<'_>,
            _: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<Peeked>> {
            unreachable!("peeking is tested with sockets")
        }

        fn poll_more(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            unreachable!("nothing is left in it")
        }

        fn take_left(&mut self, _: &mut [u8]) -> io::Result<usize> {
            unreachable!("nothing is left in it")
        }
    }

    /// Both ends of a connection.
    async fn connection() -> (Transport<Socket>, TcpStream) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (Transport::new(Socket::Tcp(near)), listener.accept().await.unwrap().0)
    }

    /// What the kernel still has for a transport.
    fn in_the_socket(transport: &Transport<Socket>) -> usize {
        let Socket::Tcp(stream) = &transport.stream else { panic!("a plain connection") };
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        recv(stream, &mut [0; 4 * INPUT_BYTES][..], flags).map_or(0, |(count, _)| count)
    }

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

    #[test]
    fn what_is_peeked_at_is_left_until_the_next_request_and_never_seen_twice() {
        on_a_runtime(async {
            let (mut transport, mut far) = connection().await;
            let mut asked = [0; 3];
            // More than is taken in one piece, and more than the buffer has room for at first.
            for length in [1, 5_000, 3 * INPUT_BYTES] {
                let answer: Vec<u8> = (0..length).map(|index| (index * 7) as u8).collect();
                far.write_all(&answer).await.unwrap();
                while transport.received().len() < length {
                    transport.peek().await.unwrap();
                }
                assert_eq!(transport.received(), answer);
                assert!(in_the_socket(&transport) > 0, "{length}");
                transport.consume(length);
                // Nothing new: looking takes nothing, and shows nothing again.
                transport.look().unwrap();
                assert!(transport.received().is_empty());
                assert!(in_the_socket(&transport) > 0, "{length}");
                transport.send(b"ask").await.unwrap();
                assert_eq!(in_the_socket(&transport), 0, "{length}");
                far.read_exact(&mut asked).await.unwrap();
            }
        });
    }

    #[test]
    fn what_comes_behind_what_was_left_is_received_however_it_is_asked_for() {
        on_a_runtime(async {
            let (mut transport, mut far) = connection().await;
            far.write_all(b"a").await.unwrap();
            transport.peek().await.unwrap();
            far.write_all(b"b").await.unwrap();
            transport.peek().await.unwrap();
            far.write_all(b"c").await.unwrap();
            transport.receive().await.unwrap();
            assert_eq!(transport.received(), b"abc");
            transport.consume(3);
            far.write_all(b"d").await.unwrap();
            transport.peek().await.unwrap();
            drop(far);
            assert_eq!(transport.receive().await.unwrap_err().kind(), ErrorKind::UnexpectedEof);
            assert_eq!(transport.received(), b"d");
        });
    }

    #[test]
    fn last_words_arrive_although_an_answer_was_left() {
        on_a_runtime(async {
            let (mut transport, mut far) = connection().await;
            far.write_all(b"answer").await.unwrap();
            transport.peek().await.unwrap();
            transport.send_at_once(b"bye");
            drop(transport);
            let mut got = Vec::new();
            far.read_to_end(&mut got).await.unwrap();
            assert_eq!(got, b"bye");
        });
    }
}
