"""Updates that are submitted: tickets, the queue and who works it off, stretches of updates that overlap, the state between."""
