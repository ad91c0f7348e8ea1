//! The plain keys of `[procedure]`, each declared once.
//!
//! A plain key is decided by itself: its option, else the study, else `defaults.toml`. One line here yields its
//! field, reader and schema (`file::procedure`), its field of the plan and the plan's JSON (`plan::procedure`), and
//! its decision, its provenance and its refusal where it has no meaning (`resolve::procedure_keys`), and its option with
//! the field that carries it (`options`, and the command line itself). Keys that depend on others or are scaled are not here. The list imports nothing: each user gives its words their meaning.

/// Calls a macro with the plain keys and what follows. Of each key: description, name, field, type and kind of value; the key
/// of the plan's JSON; the loads that it has a meaning for; the value in a plan that does not use it; its option of the command
/// line, with the name of its value and its help.
#[doc(hidden)]
#[macro_export]
macro_rules! procedure_keys {
    ($then:ident! $($rest:tt)*) => {
        $then! {
            [
                /// Idle time between the start of the server and the warm-up.
                "settle" settle: Nanos = time(),
                    plan "settle_ns", of [Users, Block, Job], unused Nanos::ZERO;
                /// Once per run, before `settle`: load of the warm-up's users without the delays of emulated storage, so that
                /// caches are as full as after hours. Not measured.
                "cache-warm-up" cache_warm_up: Nanos = time(),
                    plan "cache_warm_up_ns", of [Users], unused Nanos::ZERO, option "--cache-warm-up" "TIME"
                    "Unmeasured load before all other phases, without the delays of emulated storage: fills caches \
                     quickly";
                /// Once per run: load rising from one user to the top of the ladder, not measured.
                "warm-up" warm_up: Nanos = time(),
                    plan "warm_up_ns", of [Users, Block], unused Nanos::ZERO, option "--warm-up" "TIME" "Unmeasured load before the ladder";
                /// Once per rung: users rise to the number of the rung, not measured.
                "ramp-up" ramp_up: Nanos = time(),
                    plan "ramp_up_ns", of [Users, Block], unused Nanos::ZERO, option "--ramp-up" "TIME" "Unmeasured time at the start of each rung";
                /// Once per rung: the measured window, at least 5 s; of a block load at least 5 s of this host's time (625 ms of
                /// design time at a time dilation of 8).
                "measure" measure: Nanos = time(),
                    plan "measure_ns", of [Users, Block, Job], unused Nanos::ZERO, option "--measure" "TIME" "The measured window of each rung";
                /// How the runs of the designs are interleaved: `random` draws it by the seed, balanced;
                /// `abba` reverses every second repeat.
                "order" order: Order = word::<Order>(),
                    plan "order", of [Users, Block, Job], unused Order::Abba;
                /// How many times longer everything takes than what it stands for: 1 = real time, or `auto` =
                /// the smallest factor at which this host's own share of storage times is small. Emulated
                /// storage only.
                "time-dilation" time_dilation: TimeDilation = time_dilation(),
                    plan "time_dilation", of [Users, Block], unused TimeDilation::NONE, option "--time-dilation" "N|auto"
                    "Slow everything down by this factor, and report results in design time: emulated storage only. \
                     `auto` chooses the smallest factor at which this host's share of storage times is small";
                /// At the end of the first run of each emulated design, its load without the delays of the storage, for
                /// some seconds: what this host can do at most.
                "null-twin" null_twin: bool = boolean(),
                    plan "null_twin", of [Users, Block], unused false;
            ]
            $($rest)*
        }
    };
}
