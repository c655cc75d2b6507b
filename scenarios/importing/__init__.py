"""From the command lines of vLLM and SGLang to a scenario's YAML.

Text becomes words (`shell`), words a call of a known program (`command_line`), its flags are told apart (`flags`) by
tables, one a program (`vllm_flags`, `sglang_flags`, `vllm_bench`, `sglang_bench`), and fill a draft (`draft`), which is
written as YAML with what could not be carried over (`writing`).
"""
