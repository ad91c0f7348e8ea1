//! The end in the load generator's process: carries out its commands, and stops when the connection ends.

use std::io::{self, BufRead, BufReader, Write as _};
use std::os::unix::net::UnixStream;

use underlay_core::Nanos;
use underlay_workload::transactional::RunAccounting;

use super::wire::{Answer, Command, mix_of};
use crate::driver::Driver;
use crate::error::DriveError;
use crate::spec::Slowdown;

/// Serves until it is told to stop, or the other end is gone.
///
/// # Errors
/// If the connection fails, or says what no end of it says.
pub fn serve<B: RunAccounting>(driver: Driver<B>, mut stream: UnixStream) -> io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    while let Some(line) = lines.next().transpose()? {
        let command = serde_json::from_str(&line)?;
        if command == Command::Stop {
            let summary = driver.stop();
            return say(&mut stream, &Answer::Summary(Box::new((&summary).into())));
        }
        say(&mut stream, &carry_out(&driver, command))?;
    }
    Ok(())
}

fn carry_out<B: RunAccounting>(driver: &Driver<B>, command: Command) -> Answer {
    let done = |outcome: Result<(), DriveError>| match outcome {
        Ok(()) => Answer::Done,
        Err(error) => Answer::Refused(error.to_string()),
    };
    match command {
        Command::SetUsers(users) => {
            driver.set_users(users);
            Answer::Done
        }
        Command::SetRate { rate_per_second, ramp_ns } => {
            done(driver.set_rate(rate_per_second, Nanos(ramp_ns)))
        }
        Command::SetMix(line) => match mix_of(line.as_deref()) {
            Some(mix) => done(driver.set_mix(mix)),
            None => Answer::Refused("all weights are 0".to_string()),
        },
        Command::SetSlowdown { cpu, connections } => {
            driver.set_slowdown(Slowdown { cpu, connections });
            Answer::Done
        }
        Command::Tick => Answer::Tick(Box::new((&driver.tick()).into())),
        Command::Stop => Answer::Refused("it was already asked to stop".to_string()),
    }
}

fn say(stream: &mut UnixStream, answer: &Answer) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    stream.write_all(&line)
}
