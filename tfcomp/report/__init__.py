"""The analysis report: sections make exhibits, a page shows them."""
