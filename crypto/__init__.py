"""Two- and n-party protocols as generators over rounds; pure: no network, files, clocks or logging."""
