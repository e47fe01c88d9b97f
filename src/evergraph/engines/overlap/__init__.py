"""Updates that overlap (Illich, Glimm 2023): the steps that several updates at a time are made of, at one shard."""
