"""`evergraph bench gpu`: closures of many copies of LUBM on a device, from tables to tables, and updates."""
