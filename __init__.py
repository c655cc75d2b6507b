"""llmsim: the policies of an LLM inference engine, run in a discrete-event simulator and on a real one."""

__version__ = "0.1.0"
