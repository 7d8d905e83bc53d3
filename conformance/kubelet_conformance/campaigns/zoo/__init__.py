"""The zoo's keeper: which contracts catch which bug."""
