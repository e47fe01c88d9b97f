"""Facts that expire: windows over streams beside a graph that stays (Barbieri et al. 2010, §3)."""
