"""Statistics over seeds: means, intervals, paired tests, power laws."""
