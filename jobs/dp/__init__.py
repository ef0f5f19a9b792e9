"""Jobs of differential privacy: settings, result, report, files, charge."""
