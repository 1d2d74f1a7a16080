"""Archived binlog files, decoded file by file in any process, such as a task of a cluster.

A first pass (`survey`) reads the files in order, without their rows, and finds what the rows of each file
need: the table definitions at its start. Then each file is decoded alone (`change_rows`), with the batcher
and the decoder of the pipeline.
"""
