//! How fast the population is generated, on one core: rows and megabytes of text per second and
//! table; and how fast terminals decide their transactions. Run it with `cargo run --release -p underlay-workload --example generate_rate [WAREHOUSES]`.
//!
//! Rates are per second of processor time of this thread, which the kernel counts, so that other
//! work on the machine does not enter. Only text bytes are counted (numbers cost time but no bytes), so the rates are a lower bound of
//! what an encoder of rows can be fed with. The rates of ORDER and NEW_ORDER, which have no
//! text, are rows only.

use std::error::Error;
use std::hint::black_box;

use underlay_core::RootSeed;
use underlay_workload::tpcc::population::{
    CustomerRows, HistoryRows, ItemRows, NewOrderRows, OrderLineRows, OrderRows, StockRows, Table,
};
use underlay_workload::tpcc::{Entropy, Parameters, Terminal};

/// The tables that are large enough to have a rate.
const TABLES: [Table; 7] = [
    Table::Item,
    Table::Customer,
    Table::History,
    Table::Stock,
    Table::Order,
    Table::NewOrder,
    Table::OrderLine,
];

/// Rows and bytes of text.
#[derive(Clone, Copy, Default)]
struct Volume {
    rows: u64,
    text_bytes: usize,
}

impl Volume {
    fn add(&mut self, text_bytes: usize) {
        self.rows += 1;
        self.text_bytes += text_bytes;
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let warehouses: u32 = std::env::args().nth(1).map_or(Ok(20), |text| text.parse())?;
    if cfg!(debug_assertions) {
        eprintln!("warning: not a release build, the rates mean nothing");
    }
    for percent in [100, 50, 0] {
        let parameters = Parameters::new(warehouses, RootSeed(42), Entropy::new(percent)?)?;
        println!("entropy {percent} %, {warehouses} warehouses, one core");
        print_rates(&parameters);
    }
    let parameters = Parameters::new(warehouses, RootSeed(42), Entropy::FULL)?;
    println!("inputs: {:.2} million transactions/s", inputs_per_second(&parameters) / 1e6);
    Ok(())
}

fn print_rates(parameters: &Parameters) {
    let mut total = Volume::default();
    let mut total_seconds = 0.0;
    for table in TABLES {
        let begin = cpu_seconds();
        let volume = generate(parameters, table);
        let seconds = cpu_seconds() - begin;
        print_rate(table.as_str(), volume, seconds);
        total.rows += volume.rows;
        total.text_bytes += volume.text_bytes;
        total_seconds += seconds;
    }
    print_rate("all tables", total, total_seconds);
}

fn print_rate(name: &str, volume: Volume, seconds: f64) {
    println!(
        "  {name:<12}{:>12} rows {:>8.2} million rows/s {:>9.0} MB/s of text",
        volume.rows,
        volume.rows as f64 / seconds / 1e6,
        volume.text_bytes as f64 / seconds / 1e6,
    );
}

/// The processor time of this thread so far, to about a millisecond.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")
        .expect("the kernel counts processor time per thread");
    let nanos = text.split_ascii_whitespace().next().and_then(|field| field.parse::<u64>().ok());
    nanos.expect("the first field is the time on a processor in nanoseconds") as f64 / 1e9
}

/// Generates one table for all warehouses.
fn generate(parameters: &Parameters, table: Table) -> Volume {
    let mut volume = Volume::default();
    if table == Table::Item {
        items(parameters, &mut volume);
        return volume;
    }
    for warehouse in 1..=parameters.warehouses {
        match table {
            Table::Item | Table::Warehouse | Table::District => {}
            Table::Customer => customers(parameters, warehouse, &mut volume),
            Table::History => history(parameters, warehouse, &mut volume),
            Table::Stock => stock(parameters, warehouse, &mut volume),
            Table::Order => orders(parameters, warehouse, &mut volume),
            Table::NewOrder => new_orders(warehouse, &mut volume),
            Table::OrderLine => order_lines(parameters, warehouse, &mut volume),
        }
    }
    volume
}

fn items(parameters: &Parameters, volume: &mut Volume) {
    let mut rows = ItemRows::new(parameters);
    while let Some(row) = rows.next_row() {
        volume.add(black_box(row).name.as_bytes().len() + row.data.as_bytes().len());
    }
}

fn customers(parameters: &Parameters, warehouse: u32, volume: &mut Volume) {
    let mut rows = CustomerRows::new(parameters, warehouse);
    while let Some(row) = rows.next_row() {
        let address = black_box(row).address;
        let texts = [
            row.first,
            row.last,
            row.phone,
            row.data,
            address.street_1,
            address.street_2,
            address.city,
            address.state,
            address.zip,
        ];
        volume.add(texts.iter().map(|text| text.as_bytes().len()).sum());
    }
}

fn history(parameters: &Parameters, warehouse: u32, volume: &mut Volume) {
    let mut rows = HistoryRows::new(parameters, warehouse);
    while let Some(row) = rows.next_row() {
        volume.add(black_box(row).data.as_bytes().len());
    }
}

fn stock(parameters: &Parameters, warehouse: u32, volume: &mut Volume) {
    let mut rows = StockRows::new(parameters, warehouse);
    while let Some(row) = rows.next_row() {
        let districts: usize =
            black_box(row).districts.iter().map(|text| text.as_bytes().len()).sum();
        volume.add(districts + row.data.as_bytes().len());
    }
}

fn orders(parameters: &Parameters, warehouse: u32, volume: &mut Volume) {
    let mut rows = OrderRows::new(parameters, warehouse);
    while let Some(row) = rows.next_row() {
        black_box(row);
        volume.add(0);
    }
}

fn new_orders(warehouse: u32, volume: &mut Volume) {
    let mut rows = NewOrderRows::new(warehouse);
    while let Some(row) = rows.next_row() {
        black_box(row);
        volume.add(0);
    }
}

fn order_lines(parameters: &Parameters, warehouse: u32, volume: &mut Volume) {
    let mut rows = OrderLineRows::new(parameters, warehouse);
    while let Some(row) = rows.next_row() {
        volume.add(black_box(row).district_info.as_bytes().len());
    }
}

/// The rate of a hundred users' inputs, each user in turn.
fn inputs_per_second(parameters: &Parameters) -> f64 {
    const ROUNDS: u32 = 20_000;
    let mut terminals: Vec<Terminal> =
        (0..100).map(|user| Terminal::new(parameters, user)).collect();
    let begin = cpu_seconds();
    for _ in 0..ROUNDS {
        for terminal in &mut terminals {
            black_box(terminal.next());
        }
    }
    f64::from(ROUNDS) * terminals.len() as f64 / (cpu_seconds() - begin)
}
