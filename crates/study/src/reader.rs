//! Reading a TOML table key by key, collecting problems instead of stopping at the first.
//!
//! The shape of every read function is the same: take each key by name, then [`Keys::finish`], which
//! reports what is left over as unknown. The keys taken are therefore exactly the keys known.

use std::ops::{Range, RangeInclusive};
use std::str::FromStr;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use underlay_core::printable::is_unprintable;
use underlay_core::{Bytes, Dilation, Nanos};

use crate::entry::{Entry, Section};
use crate::plan::{Repeats, TimeDilation};
use crate::report::Report;
use crate::suggest::{listed, nearest};
use underlay_core::Words;

/// The largest count without a range of its own.
const COUNT_MAX: u64 = u32::MAX as u64;

/// A value of the file with its place.
pub(crate) struct Item<'t> {
    value: &'t DeValue<'t>,
    /// Its bytes in the file.
    pub span: Range<usize>,
    /// Dotted path, for messages.
    pub path: String,
}

/// A value as it is written: for tables that hold values of other keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// A text without its quotes.
    pub text: String,
    /// Its bytes in the file.
    pub span: Range<usize>,
}

/// A table being read.
pub(crate) struct Keys<'t, 'r> {
    table: &'t DeTable<'t>,
    path: String,
    known: Vec<&'static str>,
    /// Whether every key is allowed.
    free: bool,
    /// Keys that people write for another one, with that other one.
    aliases: Vec<(&'static str, &'static str)>,
    report: &'r mut Report,
}

impl<'t, 'r> Keys<'t, 'r> {
    /// Starts to read `table`, which lies at `path` (empty for the whole file).
    pub fn new(table: &'t DeTable<'t>, path: &str, report: &'r mut Report) -> Keys<'t, 'r> {
        Keys {
            table,
            path: path.to_string(),
            known: Vec::new(),
            free: false,
            aliases: Vec::new(),
            report,
        }
    }

    /// Makes `finish` propose `key` instead of `wrong`.
    pub fn alias(&mut self, wrong: &'static str, key: &'static str) {
        self.aliases.push((wrong, key));
    }

    /// Takes one key; `read` returns `None` when it refused and reported the value.
    pub fn take<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&Item<'t>, &mut Report) -> Option<T>,
    ) -> Entry<T> {
        match self.item(key) {
            None => Entry::Absent,
            Some(item) => match read(&item, self.report) {
                Some(value) => Entry::Given { value, span: item.span },
                None => Entry::Refused,
            },
        }
    }

    /// Takes a sub-table.
    pub fn section<T: Default>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut Keys<'t, '_>) -> T,
    ) -> Section<T> {
        match self.item(key) {
            None => Section::default(),
            Some(item) => item.section(self.report, read),
        }
    }

    /// Takes an array of tables, `[[key]]`.
    pub fn sections<T: Default>(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(&mut Keys<'t, '_>) -> T,
    ) -> Entry<Vec<Section<T>>> {
        self.take(key, |item, report| {
            let elements =
                item.array(report, &format!("tables, each written [[{}]]", item.path))?;
            Some(elements.iter().map(|element| element.section(report, &mut read)).collect())
        })
    }

    /// Takes every key: for tables whose keys are free. `read` gets the name, the bytes of the name,
    /// and the value.
    pub fn take_each<T>(
        &mut self,
        mut read: impl FnMut(&str, Range<usize>, &Item<'t>, &mut Report) -> T,
    ) -> Vec<T> {
        self.free = true;
        let mut taken = Vec::new();
        for (key, value) in self.table.iter() {
            let name = key.get_ref().as_ref();
            let item = Item::new(value, join(&self.path, name));
            taken.push(read(name, key.span(), &item, self.report));
        }
        taken
    }

    /// Reports the keys that were not read.
    pub fn finish(self) {
        if self.free {
            return;
        }
        for (key, _) in self.table.iter() {
            let name = key.get_ref().as_ref();
            if self.known.contains(&name) {
                continue;
            }
            let aliased =
                self.aliases.iter().find(|(wrong, _)| *wrong == name).map(|(_, key)| *key);
            let meant = aliased.or_else(|| nearest(name, self.known.iter().copied()));
            let label = match meant {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "not a key here".to_string(),
            };
            let place = match self.path.as_str() {
                "" => "at the top of the file".to_string(),
                path => format!("in `{path}`"),
            };
            self.report.at(
                &key.span(),
                "unknown-key",
                format!("unknown key `{name}` {place}"),
                label,
                format!("the keys here are {}", listed(self.known.iter().copied())),
            );
        }
    }

    fn item(&mut self, key: &'static str) -> Option<Item<'t>> {
        self.known.push(key);
        let (_, value) = self.table.iter().find(|(name, _)| name.get_ref() == key)?;
        Some(Item::new(value, join(&self.path, key)))
    }
}

impl<'t> Item<'t> {
    fn new(value: &'t Spanned<DeValue<'t>>, path: String) -> Item<'t> {
        Item { value: value.get_ref(), span: value.span(), path }
    }

    /// Whether it is a table.
    pub fn is_table(&self) -> bool {
        matches!(self.value, DeValue::Table(_))
    }

    /// A text.
    pub fn text(&self, report: &mut Report) -> Option<String> {
        match self.value {
            DeValue::String(text) => self.printable(report, text),
            _ => self.wrong_type(report, "a text in quotes", ""),
        }
    }

    /// A text that terminals and pages show as it is written: control characters would act on them instead.
    fn printable(&self, report: &mut Report, text: &str) -> Option<String> {
        let Some(found) = text.chars().find(|character| is_unprintable(*character)) else {
            return Some(text.to_string());
        };
        report.at(
            &self.span,
            "control-character",
            format!("`{}` contains the control character U+{:04X}", self.path, u32::from(found)),
            "a terminal would interpret it",
            "remove it; line breaks and tabs are allowed",
        );
        None
    }

    /// A whole number of `range`.
    pub fn integer(&self, report: &mut Report, range: RangeInclusive<u64>) -> Option<u64> {
        let bounds = match *range.end() {
            COUNT_MAX => "a whole number".to_string(),
            end => format!("a whole number from {} to {end}", range.start()),
        };
        let DeValue::Integer(integer) = self.value else {
            return self.wrong_type(report, &bounds, &self.unquoted_help());
        };
        match i128::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(number)
                if number >= 0 && u64::try_from(number).is_ok_and(|n| range.contains(&n)) =>
            {
                Some(number as u64)
            }
            _ => self.out_of_range(report, integer.as_str(), &bounds),
        }
    }

    /// A whole number of 32 bits, whose range someone else checks.
    pub fn count(&self, report: &mut Report) -> Option<u32> {
        self.integer(report, 0..=COUNT_MAX).map(|number| number as u32)
    }

    /// A factor of time dilation, or `auto`.
    pub fn time_dilation(&self, report: &mut Report) -> Option<TimeDilation> {
        let bounds = format!("a whole number from 1 to {}, or \"auto\"", Dilation::MAX);
        let text = match self.value {
            DeValue::Integer(integer) => integer.as_str(),
            DeValue::String(text) if text == "auto" => text,
            _ => return self.wrong_type(report, &bounds, &self.unquoted_help()),
        };
        text.parse().ok().or_else(|| self.out_of_range(report, text, &bounds))
    }

    /// A number of repeats, whose range someone else checks, or the precision that ends them.
    pub fn repeats(&self, report: &mut Report) -> Option<Repeats> {
        let DeValue::String(text) = self.value else {
            return self.count(report).map(Repeats::Exactly);
        };
        match text.parse() {
            Ok(until @ Repeats::Until(_)) => Some(until),
            _ => self.wrong_type(
                report,
                "a whole number, or a precision such as \"until 5 %\"",
                "write a number without quotes, or \"until 5 %\"",
            ),
        }
    }

    /// True or false.
    pub fn boolean(&self, report: &mut Report) -> Option<bool> {
        match self.value {
            DeValue::Boolean(value) => Some(*value),
            _ => self.wrong_type(report, "true or false", ""),
        }
    }

    /// A number of `range`.
    pub fn number(&self, report: &mut Report, range: RangeInclusive<f64>) -> Option<f64> {
        let bounds = format!("a number from {} to {}", range.start(), range.end());
        let (number, text) = match self.value {
            DeValue::Float(float) => (float.as_str().parse().ok(), float.as_str()),
            DeValue::Integer(integer) => {
                let whole = i64::from_str_radix(integer.as_str(), integer.radix()).ok();
                (whole.map(|whole| whole as f64), integer.as_str())
            }
            _ => return self.wrong_type(report, &bounds, &self.unquoted_help()),
        };
        match number {
            Some(number) if range.contains(&number) => Some(number),
            _ => self.out_of_range(report, text, &bounds),
        }
    }

    /// A length of time with its unit.
    pub fn time(&self, report: &mut Report) -> Option<Nanos> {
        self.quantity(report, "a time with its unit, such as \"30s\"", "s")
    }

    /// A size with its unit.
    pub fn size(&self, report: &mut Report) -> Option<Bytes> {
        self.quantity(report, "a size with its unit, such as \"512MiB\"", "MiB")
    }

    /// A size per second, written as a size.
    pub fn rate(&self, report: &mut Report) -> Option<u64> {
        self.quantity::<Bytes>(report, "bytes per second as a size, such as \"520MB\"", "MB")
            .map(|bytes| bytes.0)
    }

    /// One of a few words.
    pub fn word<W: Words>(&self, report: &mut Report) -> Option<W> {
        let words = || W::all().iter().map(|value| value.word());
        let expected = format!("one of {}", listed(words()));
        let DeValue::String(text) = self.value else {
            return self.wrong_type(report, &expected, "");
        };
        let found = W::from_word(text);
        if found.is_none() {
            let label = match nearest(text, words()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("not a known {}", W::NAME),
            };
            report.at(
                &self.span,
                "unknown-name",
                format!("`{text}` is not a known {} (`{}`)", W::NAME, self.path),
                label,
                format!("use {expected}"),
            );
        }
        found
    }

    /// The elements of an array; `of` names what it should hold.
    pub fn array(&self, report: &mut Report, of: &str) -> Option<Vec<Item<'t>>> {
        let DeValue::Array(array) = self.value else {
            return self.wrong_type(report, &format!("a list of {of}"), "");
        };
        let element = |(index, value)| Item::new(value, format!("{}[{index}]", self.path));
        Some(array.iter().enumerate().map(element).collect())
    }

    /// A list in which every element is read by `read`; refused as a whole if one is.
    pub fn list<T>(
        &self,
        report: &mut Report,
        of: &str,
        read: impl Fn(&Item<'t>, &mut Report) -> Option<T>,
    ) -> Option<Vec<T>> {
        let elements = self.array(report, of)?;
        let read: Vec<Option<T>> = elements.iter().map(|item| read(item, report)).collect();
        read.into_iter().collect()
    }

    /// A value, or a list of such values.
    pub fn one_or_more<T>(
        &self,
        report: &mut Report,
        of: &str,
        read: impl Fn(&Item<'t>, &mut Report) -> Option<T>,
    ) -> Option<Vec<T>> {
        match self.value {
            DeValue::Array(_) => self.list(report, of, read),
            _ => read(self, report).map(|value| vec![value]),
        }
    }

    /// A value of a settings table: texts as they are, numbers as written, booleans as on and off.
    pub fn setting(&self, report: &mut Report) -> Option<String> {
        match self.value {
            DeValue::String(text) => self.printable(report, text),
            DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
                .ok()
                .map(|number| number.to_string()),
            DeValue::Float(float) => Some(float.as_str().replace('_', "")),
            DeValue::Boolean(true) => Some("on".to_string()),
            DeValue::Boolean(false) => Some("off".to_string()),
            _ => self.wrong_type(report, "a text, a number or a boolean", ""),
        }
    }

    /// A text, a number or a boolean, as it is written.
    pub fn written(&self, report: &mut Report) -> Option<Written> {
        let text = match self.value {
            DeValue::String(text) => self.printable(report, text)?,
            DeValue::Integer(integer) => integer.as_str().to_string(),
            DeValue::Float(float) => float.as_str().to_string(),
            DeValue::Boolean(value) => value.to_string(),
            _ => return self.wrong_type(report, "a text, a number or a boolean", ""),
        };
        Some(Written { text, span: self.span.clone() })
    }

    /// The values at and below `path`: `{ a.b = 1, "c.d" = [2, 3] }` has `a.b` and `c.d`.
    pub fn leaves(&self, path: String, report: &mut Report) -> Vec<(String, Written)> {
        match self.value {
            DeValue::Table(table) => {
                let mut found = Vec::new();
                for (key, value) in table.iter() {
                    let name = key.get_ref().as_ref();
                    let item = Item::new(value, join(&self.path, name));
                    found.extend(item.leaves(join(&path, name), report));
                }
                found
            }
            DeValue::Array(_) => {
                let Some(elements) =
                    self.list(report, "values", |item, report| item.written(report))
                else {
                    return Vec::new();
                };
                let texts: Vec<String> = elements.into_iter().map(|one| one.text).collect();
                vec![(path, Written { text: texts.join(", "), span: self.span.clone() })]
            }
            _ => self.written(report).map(|written| (path, written)).into_iter().collect(),
        }
    }

    /// A table that is read where it stands.
    pub fn section<T: Default>(
        &self,
        report: &mut Report,
        read: impl FnOnce(&mut Keys<'t, '_>) -> T,
    ) -> Section<T> {
        let span = Some(self.span.clone());
        let DeValue::Table(table) = self.value else {
            self.wrong_type::<()>(report, "a table", &format!("write [{}]", self.path));
            return Section { content: T::default(), span, refused: true };
        };
        let mut keys = Keys::new(table, &self.path, report);
        let content = read(&mut keys);
        keys.finish();
        Section { content, span, refused: false }
    }

    fn quantity<Q: FromStr>(&self, report: &mut Report, expected: &str, unit: &str) -> Option<Q>
    where
        Q::Err: ToString,
    {
        let text = match self.value {
            DeValue::String(text) => text,
            DeValue::Integer(number) if number.as_str().starts_with('-') => {
                return self.negative(report, &format!("{number} is negative"), expected);
            }
            DeValue::Integer(number) => {
                let help = format!("write \"{number}{unit}\", in quotes and with its unit");
                return self.wrong_type(report, expected, &help);
            }
            _ => return self.wrong_type(report, expected, ""),
        };
        match text.parse::<Q>() {
            Ok(quantity) => Some(quantity),
            Err(error) if text.trim_start().starts_with('-') => {
                self.negative(report, &error.to_string(), expected)
            }
            Err(error) => {
                report.at(
                    &self.span,
                    "wrong-unit",
                    format!("`{}` cannot be read as {expected}", self.path),
                    error.to_string(),
                    format!("write {expected}"),
                );
                None
            }
        }
    }

    /// The remedy for a number that was written in quotes; empty for everything else.
    fn unquoted_help(&self) -> String {
        match self.value {
            DeValue::String(text) if text.trim().parse::<f64>().is_ok_and(f64::is_finite) => {
                format!("write {}, without quotes", text.trim())
            }
            _ => String::new(),
        }
    }

    fn wrong_type<T>(&self, report: &mut Report, expected: &str, help: &str) -> Option<T> {
        let help = match help {
            "" => format!("write {expected}"),
            help => help.to_string(),
        };
        report.at(
            &self.span,
            "wrong-type",
            format!("`{}` must be {expected}", self.path),
            format!("this is {}", kind(self.value)),
            help,
        );
        None
    }

    fn negative<T>(&self, report: &mut Report, label: &str, expected: &str) -> Option<T> {
        let message = format!("`{}` cannot be below zero", self.path);
        report.at(&self.span, "out-of-range", message, label, format!("write {expected}"));
        None
    }

    fn out_of_range<T>(&self, report: &mut Report, found: &str, bounds: &str) -> Option<T> {
        report.at(
            &self.span,
            "out-of-range",
            format!("`{}` must be {bounds}", self.path),
            format!("{found} is out of range"),
            format!("write {bounds}"),
        );
        None
    }
}

/// Path of a key below a table.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_string() } else { format!("{path}.{key}") }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date or time of day",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
