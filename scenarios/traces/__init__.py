"""Readers of public traces, one format a file, each a stream of rows."""
