"""What a person looks at: catalogue, report, traces."""
