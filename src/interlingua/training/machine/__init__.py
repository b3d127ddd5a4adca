"""The machine of a run: devices, processes, memory, signals and the clock."""
