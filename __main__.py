"""`python -m llmsim`: the command line."""

from .cli import main

main()
