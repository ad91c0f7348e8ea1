//! The study file: TOML, checked, resolved into a plan; built-in studies, designs and device profiles.
