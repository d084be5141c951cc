"""Assembly steps from conversation to page, in the order `assemble` runs them."""
