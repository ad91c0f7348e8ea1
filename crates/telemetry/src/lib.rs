//! Samplers: every layer, every second, with what each costs and why it is absent.
