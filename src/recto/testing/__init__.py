"""Public fakes and the conformance suites of the ports. Refuses to be imported by the product."""
