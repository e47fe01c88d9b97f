"""Updates that overlap measured: how soon one is in place beside a large one, what cancelling saves, what it costs alone."""
