"""The algebra behind `derive`: expressions, how they are typeset, proofs and counterexamples."""
