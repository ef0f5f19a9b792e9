"""Jobs of LKC-privacy: settings, result, report, files."""
