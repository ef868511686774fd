"""The work of each step; `pipelines.components` has the interfaces."""
