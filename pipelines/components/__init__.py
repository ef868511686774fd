"""The steps of the pipeline, as Kubeflow components, one a file.

A component is a thin shell: the SDK copies its source into a process of its
own, so everything that it needs is imported inside of it.
"""
