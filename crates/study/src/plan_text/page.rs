//! Lines of a plan as text, broken at the width of the page. What they say is not decided here.

use std::fmt::Write;

/// Lines of limited width.
pub(super) struct Page {
    pub text: String,
    pub width: usize,
}

impl Page {
    pub fn line(&mut self, line: &str) {
        writeln!(self.text, "{}", line.trim_end()).expect("writing to a String cannot fail");
    }

    pub fn blank(&mut self) {
        self.line("");
    }

    pub fn heading(&mut self, heading: &str) {
        self.blank();
        self.line(heading);
    }

    pub fn row(&mut self, name: &str, value: &str) {
        self.wrapped(&format!("  {name:<10}"), "            ", value);
    }

    /// Words broken into lines, the first with `first` before it, the others with `next`.
    pub fn wrapped(&mut self, first: &str, next: &str, text: &str) {
        let mut line = first.to_string();
        let mut empty = true;
        for word in text.split_whitespace() {
            if !empty && line.chars().count() + 1 + word.chars().count() > self.width {
                self.line(&line);
                line = next.to_string();
                empty = true;
            }
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
            empty = false;
        }
        if !empty {
            self.line(&line);
        }
    }
}
