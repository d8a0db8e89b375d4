"""The small program that launches kernels: loads a bundle, makes inputs, checks the result, warms up, times.

It runs in a child process, alone or under a profiler, and imports neither TVM nor pandas.
"""
