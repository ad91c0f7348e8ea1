//! TPC-C as scripts: what its procedures lock, touch and log, from the drawn keys.
//!
//! Locks are those that sessions wait for: warehouse and district rows, stock rows, the oldest new
//! order of a district, customers. Their order is that of the procedures, which is free of
//! deadlocks.

use crate::demand::{DemandProfile, TypeDemand};
use crate::draw::{below, scatter, scatter_below};
use crate::layout::Relation;
use crate::layout::row_versions::{Room, RowVersions};
use crate::layout::tpcc::{LINES_PER_ORDER, TpccPages};
use crate::page::PageId;
use crate::script::Script;
use crate::spec::EngineSpec;
use rand_pcg::Pcg64;
use underlay_core::{Nanos, RootSeed};
use underlay_workload::tpcc::cardinality::{
    CUSTOMERS_PER_DISTRICT, DISTRICTS_PER_WAREHOUSE, FIRST_UNDELIVERED_ORDER, INITIAL_NEXT_ORDER,
    INITIAL_ORDERS_PER_DISTRICT, ITEMS,
};
use underlay_workload::tpcc::{
    CustomerSelector, Delivery, NewOrder, OrderStatus, Payment, StockLevel, Terminal, Tpcc,
    Transaction, UNUSED_ITEM,
};
use underlay_workload::transactional::{Mix, User, Workload};

/// Lines of the 20 orders that Stock-Level counts.
const RECENT_LINES: usize = 20 * LINES_PER_ORDER as usize;
/// Customers of one last name in a district on average: 3,000 among 1,000 names.
const CUSTOMERS_PER_NAME: u32 = 3;

/// Where PostgreSQL has the versions of rows that users change. Warehouses and districts are loaded
/// with room for them.
#[derive(Clone, Debug)]
struct Heaps {
    stock: RowVersions,
    customers: RowVersions,
    orders: Room,
    order_lines: Room,
    /// Whether new versions are left out: of transactions that only fill caches.
    is_frozen: bool,
}

/// What is kept of a district.
#[derive(Clone, Debug)]
struct District {
    next_order: u32,
    oldest_new_order: u32,
    /// Pages of ORDERS and ORDER_LINE of the orders that were inserted, from order number 3,001.
    inserted: Vec<(u32, u32)>,
    /// Where the next line goes in the items of recent lines.
    recent: u16,
}

/// Users and database state.
#[derive(Clone)]
pub(crate) struct TpccSource {
    users: Vec<Terminal>,
    /// Per user: what was drawn and has not begun.
    drawn: Vec<Option<Transaction>>,
    pages: TpccPages,
    demands: Vec<TypeDemand>,
    districts: Vec<District>,
    /// Items of the most recent lines, [`RECENT_LINES`] per district.
    recent_items: Vec<u32>,
    /// Rows at the ends of the heaps.
    orders: u64,
    order_lines: u64,
    history: u64,
    /// Transactions that changed something.
    written: u64,
    warehouses: u32,
    /// `None` where rows are changed in place.
    heaps: Option<Box<Heaps>>,
    /// What the database draws for clients that leave it the lines.
    random: Pcg64,
    /// Lines of the order in hand: warehouse and item, sorted.
    lines: Vec<(u32, u32)>,
}

impl Heaps {
    fn change_stock(&mut self, row: u64) -> (PageId, Option<PageId>) {
        if self.is_frozen { (self.stock.page(row), None) } else { self.stock.change(row) }
    }

    fn change_customer(&mut self, row: u64) -> (PageId, Option<PageId>) {
        if self.is_frozen { (self.customers.page(row), None) } else { self.customers.change(row) }
    }
}

/// Names of rows among the locks.
fn row(table: u64, number: u64) -> u64 {
    table << 56 | number
}

impl TpccSource {
    pub(crate) fn new(
        tpcc: Tpcc,
        engine: &EngineSpec,
        demands: &DemandProfile,
        users: u32,
        seed: RootSeed,
    ) -> TpccSource {
        let pages = Self::pages(&tpcc, engine);
        let districts = pages.districts();
        let district = District {
            next_order: INITIAL_NEXT_ORDER,
            oldest_new_order: FIRST_UNDELIVERED_ORDER,
            inserted: Vec::new(),
            recent: 0,
        };
        let recent = u64::from(districts) * RECENT_LINES as u64;
        // The items of loaded orders are drawn uniformly.
        let items = (0..recent).map(|line| scatter_below(line, u64::from(ITEMS)) as u32 + 1);
        let orders = u64::from(districts) * u64::from(INITIAL_ORDERS_PER_DISTRICT);
        TpccSource {
            users: (0..users).map(|user| tpcc.user(u64::from(user), seed)).collect(),
            drawn: (0..users).map(|_| None).collect(),
            pages,
            demands: demands.types.clone(),
            districts: vec![district; districts as usize],
            recent_items: items.collect(),
            orders,
            order_lines: orders * u64::from(LINES_PER_ORDER),
            history: 0,
            written: 0,
            warehouses: tpcc.parameters.warehouses,
            heaps: (!pages.is_clustered()).then(|| {
                Box::new(Heaps {
                    stock: pages.stock_versions(),
                    customers: pages.customer_versions(),
                    orders: Room::default(),
                    order_lines: Room::default(),
                    is_frozen: false,
                })
            }),
            random: seed.stream("engine.tpcc.server", 0),
            lines: Vec::with_capacity(16),
        }
    }

    /// The rows of `other`; users stay.
    pub(crate) fn restore(&mut self, other: &TpccSource) {
        let users = std::mem::take(&mut self.users);
        *self = TpccSource { users, random: self.random.clone(), ..other.clone() };
    }

    /// Whether changes of rows leave no new versions from now on.
    pub(crate) fn freeze(&mut self, is_frozen: bool) {
        if let Some(heaps) = &mut self.heaps {
            heaps.is_frozen = is_frozen;
        }
    }

    fn pages(tpcc: &Tpcc, engine: &EngineSpec) -> TpccPages {
        match engine {
            EngineSpec::Postgresql(_) => TpccPages::postgresql(tpcc.parameters.warehouses),
            EngineSpec::Mariadb(_) => TpccPages::innodb(tpcc.parameters.warehouses),
        }
    }

    pub(crate) fn relations(tpcc: &Tpcc, engine: &EngineSpec) -> Vec<Relation> {
        Self::pages(tpcc, engine).relations()
    }

    pub(crate) fn keying_time(&self, user: u32, kind: usize) -> Nanos {
        User::keying_time(&self.users[user as usize], kind)
    }

    pub(crate) fn think_time(&mut self, user: u32, kind: usize) -> Nanos {
        User::think_time(&mut self.users[user as usize], kind)
    }

    pub(crate) fn draw(&mut self, user: u32, mix: &Mix) -> usize {
        let transaction = self.users[user as usize].next_of(mix);
        let kind = transaction.transaction_type().index();
        self.drawn[user as usize] = Some(transaction);
        kind
    }

    pub(crate) fn has_drawn(&self, user: u32) -> bool {
        self.drawn[user as usize].is_some()
    }

    pub(crate) fn write_down(&mut self, user: u32, script: &mut Script) {
        let transaction = self.drawn[user as usize].take();
        let transaction = transaction.expect("a transaction is drawn before it begins");
        script.begin(transaction.transaction_type().index());
        match &transaction {
            Transaction::NewOrder(order) => self.new_order(order, script),
            Transaction::Payment(payment) => self.payment(payment, script),
            Transaction::OrderStatus(status) => self.order_status(status, script),
            Transaction::Delivery(delivery) => self.delivery(delivery, script),
            Transaction::StockLevel(level) => self.stock_level(level, script),
        }
        if self.pages.is_clustered() && script.touches.iter().any(|touch| touch.writes) {
            // Undo records are written with the changes; at the end they are found in one place.
            script.append_write(self.pages.undo(self.written));
            self.written += 1;
        }
    }

    fn new_order(&mut self, order: &NewOrder, script: &mut Script) {
        let number = TpccPages::district_number(order.warehouse, order.district);
        let rolls_back = self.draw_lines(order);
        let (pages, units) = (self.pages, self.lines.len() as u32);
        let demand = &self.demands[script.kind];
        let (base, lines) = (demand.cpu_base, Nanos(demand.cpu_per_unit.0 * u64::from(units)));
        let log_lines = u64::from(demand.log_bytes_per_unit) * u64::from(units);
        let log_base = u64::from(demand.log_bytes_base);

        // The call and its arguments, before the first lock.
        script.end_step(Nanos(base.0 / 3), 0);

        script.lock(row(1, u64::from(number)));
        script.write(pages.district(number));
        script.read(pages.warehouse(order.warehouse));
        script.read_all(self.customer(number, order.customer));
        let district = &mut self.districts[number as usize];
        let id = district.next_order;
        let is_clustered = pages.is_clustered();
        let last_line = self.order_lines + u64::from(units) - 1;
        let [order_page, line_page, last_line_page] = if is_clustered {
            let lines = pages.order_line_key(number, id);
            [pages.orders_key(number, id), lines, lines]
        } else {
            let lines = [self.order_lines, last_line].map(|line| pages.order_line(line));
            [pages.orders(self.orders), lines[0], lines[1]]
        };
        script.write(order_page);
        script.write(pages.orders_key(number, id));
        script.write(pages.orders_of_customer(number, order.customer));
        script.write_all(pages.new_order(number, id));
        script.end_step(Nanos(base.0 * 2 / 3), log_base);

        for &(warehouse, item) in &self.lines {
            script.lock(row(2, u64::from(warehouse) << 20 | u64::from(item)));
            script.read(pages.item(item));
            let [key, stock] = pages.stock(warehouse, item);
            let Some(heaps) = &mut self.heaps else {
                script.write(stock);
                continue;
            };
            let (stock, moved) = heaps.change_stock(TpccPages::stock_row(warehouse, item));
            script.change_row([key], stock, moved);
        }
        script.write_rows(line_page, units as u16);
        script.write_rows(last_line_page, 0);
        script.write(pages.order_line_key(number, id));
        script.end_step(lines, log_lines);

        // What a rollback leaves in the heaps stays until vacuum; the order's number is free again.
        self.orders += 1;
        self.order_lines += u64::from(units);
        script.commits = !rolls_back;
        script.succeeds = !rolls_back;
        if !rolls_back {
            district.next_order += 1;
            if !is_clustered {
                district.inserted.push((order_page.block(), line_page.block()));
            }
            let begin = number as usize * RECENT_LINES;
            for &(_, item) in &self.lines {
                self.recent_items[begin + usize::from(district.recent)] = item;
                district.recent = (district.recent + 1) % RECENT_LINES as u16;
            }
        }
    }

    /// The lines in the order in which their stock is locked; whether the order rolls back.
    fn draw_lines(&mut self, order: &NewOrder) -> bool {
        self.lines.clear();
        if !order.is_drawn_by_server() {
            let valid = order.lines.iter().filter(|line| line.item != UNUSED_ITEM);
            self.lines.extend(valid.map(|line| (line.supply_warehouse, line.item)));
            self.lines.sort_unstable();
            return order.rolls_back();
        }
        for _ in &order.lines {
            let is_remote = self.warehouses > 1 && below(&mut self.random, 100) == 0;
            let warehouse = if is_remote {
                below(&mut self.random, u64::from(self.warehouses)) as u32 + 1
            } else {
                order.warehouse
            };
            self.lines.push((warehouse, below(&mut self.random, u64::from(ITEMS)) as u32 + 1));
        }
        self.lines.sort_unstable();
        below(&mut self.random, 100) == 0
    }

    /// Touches what names a customer, and returns the customer and how many were looked at.
    fn find_customer(
        &self,
        district: u32,
        by: &CustomerSelector,
        script: &mut Script,
    ) -> (u32, u32) {
        let name = match by {
            CustomerSelector::ById(customer) => return (*customer, 1),
            CustomerSelector::ByLastName(name) => name,
        };
        let name =
            name.bytes().fold(u64::from(district), |hash, byte| scatter(hash ^ u64::from(byte)));
        script.read(self.pages.customers_of_name(district, scatter_below(name, 1_000) as u32));
        // Which customers have a name was drawn when the database was loaded.
        let all = u64::from(CUSTOMERS_PER_DISTRICT);
        let customer = |place: u32| scatter_below(name ^ u64::from(place), all) as u32 + 1;
        for place in 0..CUSTOMERS_PER_NAME {
            let [_, page] = self.customer(district, customer(place));
            script.read(page);
        }
        (customer(CUSTOMERS_PER_NAME / 2), CUSTOMERS_PER_NAME)
    }

    /// The leaf of the key of a customer, and the page where the customer is.
    fn customer(&self, district: u32, customer: u32) -> [PageId; 2] {
        let [key, loaded] = self.pages.customer(district, customer);
        match &self.heaps {
            Some(heaps) => [key, heaps.customers.page(TpccPages::customer_row(district, customer))],
            None => [key, loaded],
        }
    }

    /// The leaf of the key of a row of STOCK, and the page where the row is.
    fn stock(&self, warehouse: u32, item: u32) -> [PageId; 2] {
        let [key, loaded] = self.pages.stock(warehouse, item);
        match &self.heaps {
            Some(heaps) => [key, heaps.stock.page(TpccPages::stock_row(warehouse, item))],
            None => [key, loaded],
        }
    }

    fn change_customer(&mut self, district: u32, customer: u32, script: &mut Script) {
        let [key, loaded] = self.pages.customer(district, customer);
        let row = TpccPages::customer_row(district, customer);
        let Some(heaps) = &mut self.heaps else { return script.write(loaded) };
        let (page, moved) = heaps.change_customer(row);
        // Which name a customer has was drawn when the database was loaded.
        let by_name = self.pages.customers_of_name(district, scatter_below(row, 1_000) as u32);
        script.change_row([key, by_name], page, moved);
    }

    fn payment(&mut self, payment: &Payment, script: &mut Script) {
        let number = TpccPages::district_number(payment.warehouse, payment.district);
        let of = TpccPages::district_number(payment.customer_warehouse, payment.customer_district);
        let (customer, units) = self.find_customer(of, &payment.customer, script);
        let demand = &self.demands[script.kind];
        let (cpu, log_bytes) = (demand.cpu_base.0, demand.log_bytes(units));
        script.end_step(Nanos(cpu / 3 + demand.cpu_per_unit.0 * u64::from(units)), 0);
        script.lock(row(0, u64::from(payment.warehouse)));
        script.lock(row(1, u64::from(number)));
        script.lock(row(3, u64::from(of) << 12 | u64::from(customer)));
        script.write(self.pages.warehouse(payment.warehouse));
        script.write(self.pages.district(number));
        self.change_customer(of, customer, script);
        script.write(self.pages.history(self.history));
        self.history += 1;
        script.end_step(Nanos(cpu * 2 / 3), log_bytes);
        script.commits = true;
    }

    /// The pages of an order and of its lines.
    fn order_pages(&self, district: u32, order: u32) -> (PageId, PageId) {
        if self.pages.is_clustered() {
            let lines = self.pages.order_line_key(district, order);
            return (self.pages.orders_key(district, order), lines);
        }
        let inserted = order.checked_sub(INITIAL_NEXT_ORDER);
        let known = inserted
            .and_then(|place| self.districts[district as usize].inserted.get(place as usize));
        match known {
            Some((orders, lines)) => (
                PageId::new(self.pages.orders(0).relation(), *orders),
                PageId::new(self.pages.order_line(0).relation(), *lines),
            ),
            None => {
                let row = TpccPages::loaded_order(district, order.min(INITIAL_ORDERS_PER_DISTRICT));
                let lines = row * u64::from(LINES_PER_ORDER);
                (self.pages.orders(row), self.pages.order_line(lines))
            }
        }
    }

    fn order_status(&mut self, status: &OrderStatus, script: &mut Script) {
        let number = TpccPages::district_number(status.warehouse, status.district);
        let (customer, units) = self.find_customer(number, &status.customer, script);
        script.read_all(self.customer(number, customer));
        script.read(self.pages.orders_of_customer(number, customer));
        // The latest order of a customer: one of as many of the latest as there are customers.
        let next = self.districts[number as usize].next_order;
        let back = scatter_below(
            u64::from(number) << 32 | u64::from(customer),
            u64::from(CUSTOMERS_PER_DISTRICT),
        );
        let order = next - 1 - back as u32;
        let (orders, lines) = self.order_pages(number, order);
        script.read(orders);
        script.read(self.pages.order_line_key(number, order));
        script.read(lines);
        let demand = &self.demands[script.kind];
        script.end_step(demand.cpu(units), demand.log_bytes(units));
    }

    fn delivery(&mut self, delivery: &Delivery, script: &mut Script) {
        let demand = self.demands[script.kind].clone();
        script.end_step(demand.cpu_base, u64::from(demand.log_bytes_base));
        for district in 1..=DISTRICTS_PER_WAREHOUSE {
            let number = TpccPages::district_number(delivery.warehouse, district);
            let order = self.districts[number as usize].oldest_new_order;
            if order >= self.districts[number as usize].next_order {
                continue;
            }
            self.districts[number as usize].oldest_new_order += 1;
            script.lock(row(4, u64::from(number)));
            let [key, page] = self.pages.new_order(number, order);
            script.write(page);
            script.read(key);
            let (orders, lines) = self.order_pages(number, order);
            let of = u64::from(number) << 32 | u64::from(order);
            let customer = scatter_below(of, u64::from(CUSTOMERS_PER_DISTRICT)) as u32 + 1;
            self.deliver((number, order, customer), orders, lines, script);
            script.lock(row(3, u64::from(number) << 12 | u64::from(customer)));
            self.change_customer(number, customer, script);
            script.end_step(demand.cpu_per_unit, u64::from(demand.log_bytes_per_unit));
            script.commits = true;
        }
    }

    /// Changes an order and its lines.
    fn deliver(
        &mut self,
        (district, order, customer): (u32, u32, u32),
        orders: PageId,
        lines: PageId,
        script: &mut Script,
    ) {
        let pages = self.pages;
        let orders_key = pages.orders_key(district, order);
        let lines_key = pages.order_line_key(district, order);
        let (mut order_end, mut line_end) = (None, None);
        if let Some(heaps) = &mut self.heaps
            && !heaps.is_frozen
        {
            if !heaps.orders.insert(orders.block()) {
                order_end = Some(pages.orders(self.orders));
                self.orders += 1;
            }
            // The lines of an order change together: none of them finds the place of another one.
            if !heaps.order_lines.insert(lines.block()) {
                line_end = Some(pages.order_line(self.order_lines));
                self.order_lines += u64::from(LINES_PER_ORDER);
            }
        }
        let of_customer = pages.orders_of_customer(district, customer);
        script.change_row([orders_key], orders, order_end);
        if order_end.is_some() {
            script.write(of_customer);
        }
        script.change_rows(LINES_PER_ORDER as u16, [lines_key], lines, line_end);
    }

    fn stock_level(&mut self, level: &StockLevel, script: &mut Script) {
        let number = TpccPages::district_number(level.warehouse, level.district);
        script.read(self.pages.district(number));
        let next = self.districts[number as usize].next_order;
        for order in (next - 20)..next {
            script.read(self.pages.order_line_key(number, order));
            let (_, lines) = self.order_pages(number, order);
            script.read(lines);
        }
        let begin = number as usize * RECENT_LINES;
        for &item in &self.recent_items[begin..begin + RECENT_LINES] {
            let [key, stock] = self.stock(level.warehouse, item);
            script.read(key);
            script.read(stock);
        }
        let demand = &self.demands[script.kind];
        let units = RECENT_LINES as u32;
        script.end_step(demand.cpu(units), demand.log_bytes(units));
    }
}
