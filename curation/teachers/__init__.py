"""Everything that asks for judgement, behind one interface."""
