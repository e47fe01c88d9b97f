"""Programs of very many rules, and vocabularies that change: what a rule costs that comes or goes."""
