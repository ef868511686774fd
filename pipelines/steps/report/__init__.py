"""The step `report`."""
