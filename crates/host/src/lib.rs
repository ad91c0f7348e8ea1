//! What Underlay creates on a host, and its removal: teardown stack, processes, cgroups, mounts, loop devices.
