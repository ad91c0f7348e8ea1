//! Commands from outside: one thread per connection, each command on its own line.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;

use tracing::warn;

use super::commands::{CommandSender, Managed};
use crate::control::{Answer, Command};

/// Accepts connections for ever.
pub(crate) fn listen<B: Managed>(commands: &CommandSender<B>, listener: &UnixListener) {
    for connection in listener.incoming() {
        let Ok(connection) = connection else { continue };
        let commands = commands.clone();
        let served = thread::Builder::new().name("control-client".to_string()).spawn(move || {
            if let Err(error) = converse(&commands, &connection) {
                warn!("control connection lost: {error}");
            }
        });
        if let Err(error) = served {
            warn!("no thread for a control connection: {error}");
        }
    }
}

fn converse<B: Managed>(commands: &CommandSender<B>, connection: &UnixStream) -> io::Result<()> {
    let mut writer = connection;
    for line in BufReader::new(connection).lines() {
        let command = serde_json::from_str::<Command>(&line?);
        let ends = matches!(command, Ok(Command::End));
        let answer = match command {
            // Answered before it is carried out, because the server may not be able to answer
            // afterwards.
            Ok(Command::End) => Answer::Done,
            Ok(command) => commands.ask(command),
            Err(error) => Answer::Refused { reason: error.to_string() },
        };
        let mut text = serde_json::to_string(&answer)?;
        text.push('\n');
        let written = writer.write_all(text.as_bytes());
        if ends {
            commands.ask(Command::End);
        }
        written?;
    }
    Ok(())
}
