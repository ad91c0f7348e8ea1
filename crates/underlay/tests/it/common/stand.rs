//! A loaded database on an emulated datastore, with users, checks and a ledger.

use super::{Bench, cannot_run_servers};
use std::path::Path;
use std::time::{Duration, Instant};
use underlay_core::{Bytes, Dilation, RootSeed};
use underlay_database::Target;
use underlay_database::postgres::{Server, ServerSpec, find_installs};
use underlay_database::tpcc::{
    CheckMoment, CheckOptions, CheckOutcome, CheckReport, LoadOptions, Mode, OrderNumbers,
    TableNames, TpccConnector, check, load, order_numbers,
};
use underlay_datastore::{Context, Datastore, DatastoreSpec, Timing, VolumeRequest, open};
use underlay_driver::{DriveSpec, DriveSummary, Driver};
use underlay_host::{FileSystem, StateDir, Teardown, unprivileged_user};
use underlay_testbed::spec_in;
use underlay_workload::tpcc::{Entropy, Parameters, TpccAccounting};

const SERVER_LIMIT: Duration = Duration::from_secs(2);

/// A database on two emulated volumes.
pub struct Stand {
    bench: Bench,
    teardown: Teardown,
    pub datastore: Box<dyn Datastore>,
    pub server: Server,
    parameters: Parameters,
    runtime: tokio::runtime::Runtime,
}

impl Stand {
    /// Stands a loaded database on the datastore; `None`, and a line that says why, where that is not possible.
    pub fn new(spec: &DatastoreSpec, seed: u64) -> Option<Stand> {
        if let Some(reason) = cannot_run_servers() {
            eprintln!("skip: {reason}");
            return None;
        }
        let bench = Bench::new();
        let state = StateDir::at(bench.state()).expect("a state folder");
        let teardown = Teardown::create(&state, "power cut test").expect("a teardown stack");
        let user = unprivileged_user().expect("a user");
        let scratch = state.scratch_dir("power-cut");
        teardown.create_directory(&scratch).expect("a folder");
        let volume = |name: &str, mib| VolumeRequest {
            name: name.to_string(),
            capacity: Bytes::from_mib(mib),
            file_system: FileSystem::Ext4,
            device: None,
            host: None,
        };
        let context = Context {
            teardown: &teardown,
            scratch: &scratch,
            server_program: Path::new(env!("CARGO_BIN_EXE_underlay")),
            owner: user.as_ref(),
            dilation: Dilation::NONE,
        };
        let mut datastore =
            open(spec, &[volume("data", 1024), volume("wal", 512)], &context).expect("a datastore");
        // Loading at the speed of the devices would measure nothing.
        datastore.set_timing(Timing::Off).expect("timing off");
        let directory = |index: usize, name: &str| datastore.volumes()[index].path.join(name);
        let buffers = [("shared_buffers", "128MB")];
        let spec = ServerSpec {
            data: directory(0, "pgdata"),
            wal: directory(1, "pgwal"),
            backup: directory(0, "backup"),
            ..spec_in(&scratch, find_installs(None).remove(0), "power-cut", &buffers)
        };
        let mut server = Server::create(&teardown, spec).expect("a cluster");
        server.start().expect("a running server");
        let parameters = Parameters::new(1, RootSeed(seed), Entropy::FULL).expect("parameters");
        load(&server.target(), &parameters, &LoadOptions { parallel: 2, progress: &|_| {} })
            .expect("a load");
        datastore.set_timing(Timing::Modelled).expect("timing on");
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        Some(Stand { bench, teardown, datastore, server, parameters, runtime })
    }

    pub fn target(&self) -> Target {
        self.server.target()
    }

    pub fn numbers(&self) -> OrderNumbers {
        let target = self.target();
        let tables = TableNames::underlay();
        self.runtime.block_on(order_numbers(&target, &tables)).expect("order numbers")
    }

    /// Starts four users.
    pub fn drive(&self) -> Driver<TpccAccounting> {
        let mut spec = DriveSpec::new(self.parameters.seed, 4);
        spec.stop_grace = SERVER_LIMIT;
        let connector = TpccConnector::new(self.target(), self.parameters, Mode::Procedures);
        let driver = Driver::start(spec, connector, Instant::now()).expect("a driver");
        driver.set_users(4);
        driver
    }

    /// Runs four users, cuts the power under them, and returns what they know.
    pub fn drive_into_power_cut(&mut self) -> DriveSummary<TpccAccounting> {
        let driver = self.drive();
        std::thread::sleep(Duration::from_secs(3));
        self.datastore.power_cut().expect("a power cut");
        // A host that loses its power takes the server with it.
        self.server.kill().expect("the server is gone");
        driver.stop()
    }

    pub fn recover(&mut self) -> Result<(), String> {
        self.datastore.power_on().map_err(|error| error.to_string())?;
        self.server.start().map(|_| ()).map_err(|error| error.to_string())
    }

    pub fn check(
        &self,
        ledger: Option<(&DriveSummary<TpccAccounting>, &OrderNumbers)>,
    ) -> CheckReport {
        let tables = TableNames::underlay();
        let options = CheckOptions {
            warehouses: 1,
            parallel: 1,
            moment: CheckMoment::AfterRun,
            ledger: ledger.map(|(summary, before)| (&summary.accounting.ledger, before)),
            tables: &tables,
        };
        let report = self.runtime.block_on(check(&self.target(), options)).expect("checks");
        assert!(report.results.iter().any(|result| result.id == "c1"));
        for result in &report.results {
            if let CheckOutcome::Failed { error } = &result.outcome {
                eprintln!("{} could not be made: {error}", result.id);
            }
        }
        report
    }

    pub fn close(self) {
        let Stand { bench, teardown, datastore, mut server, .. } = self;
        // After a lying device the server may not be there any more.
        let _ = server.kill();
        drop(server);
        let _ = datastore.close();
        assert!(teardown.unwind().is_empty(), "something could not be removed");
        assert_eq!(bench.left_on_host(), Vec::<String>::new());
    }
}
