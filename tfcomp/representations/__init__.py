"""Representations from elsewhere: their structure, codes, and readers."""
