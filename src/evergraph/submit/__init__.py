"""Updates that are submitted: tickets, the queue and who works it off, stretches of updates that overlap, what is in between."""
