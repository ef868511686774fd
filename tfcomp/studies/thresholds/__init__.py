"""How much data a decoder needs (section 4.2, figure 4c)."""
